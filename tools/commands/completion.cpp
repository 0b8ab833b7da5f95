// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// completion: what a shell offers behind `wavejit`, made from the commands and options that the program has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/engine_options.h"

namespace wavejit::tools {

namespace {

// A command with the words before it: " cache list"; "" of the program.
struct Command {
  const CLI::App* app;
  std::string path;
};

void add_commands(const CLI::App& app, const std::string& path, std::vector<Command>& commands) {
  commands.push_back({.app = &app, .path = path});
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    add_commands(*each, path + " " + each->get_name(), commands);
}

std::vector<Command> all_commands(const CLI::App& program) {
  std::vector<Command> commands;
  add_commands(program, "", commands);
  return commands;
}

// "--cache" and "-h" of an option.
std::vector<std::string> names_of(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& name : option.get_lnames()) names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) names.push_back("-" + name);
  return names;
}

// "off", "ro", "rw" of "off|ro|rw"; nothing of "FILE", which the shell completes.
std::vector<std::string> values_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  std::vector<std::string> values;
  if (type.find('|') == std::string::npos || std::ranges::any_of(type, [](char c) { return c >= 'A' && c <= 'Z'; }))
    return values;
  for (std::size_t at = 0; at <= type.size();) {
    const std::size_t end = std::min(type.find('|', at), type.size());
    values.push_back(type.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

std::vector<std::string> words_behind(const CLI::App& app) {
  std::vector<std::string> words;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; }))
    words.push_back(each->get_name());
  for (const CLI::Option* option : app.get_options()) {
    if (!option->nonpositional())
      for (std::string& value : values_of(*option)) words.push_back(std::move(value));
    for (std::string& name : names_of(*option)) words.push_back(std::move(name));
  }
  return words;
}

// A function that is the same in bash and zsh but for what its `{}` name: the word before, all words, and how many.
std::string shell_function(const CLI::App& program, std::string_view beginning, std::string_view end) {
  std::string paths;
  std::string values;
  std::string words;
  for (const Command& command : all_commands(program)) {
    if (!command.path.empty()) paths += fmt::format("{}\"{}\"", paths.empty() ? "" : " | ", command.path);
    for (const CLI::Option* option : command.app->get_options()) {
      const std::vector<std::string> accepted = values_of(*option);
      if (accepted.empty()) continue;
      std::string names;
      for (const std::string& name : names_of(*option))
        names += fmt::format("{}\"{} {}\"", names.empty() ? "" : " | ", command.path, name);
      if (!names.empty()) values += fmt::format("    {}) accepted=({}) ;;\n", names, fmt::join(accepted, " "));
    }
    words += fmt::format("      \"{}\") accepted=({}) ;;\n", command.path, fmt::join(words_behind(*command.app), " "));
  }
  return fmt::format(
      "{}"
      "    case \"$command $word\" in\n"
      "      {}) command=\"$command $word\" ;;\n"
      "    esac\n"
      "  done\n"
      "  case \"$command $before\" in\n"
      "{}"
      "    *) case \"$command\" in\n"
      "{}"
      "    esac ;;\n"
      "  esac\n"
      "{}",
      beginning, paths, values, words, end);
}

std::string for_bash(const CLI::App& program) {
  return shell_function(program,
                        "# Made by `wavejit completion bash`.\n"
                        "_wavejit() {\n"
                        "  local command= word before=${COMP_WORDS[COMP_CWORD-1]}\n"
                        "  local -a accepted=()\n"
                        "  for word in \"${COMP_WORDS[@]:1:COMP_CWORD-1}\"; do\n",
                        "  COMPREPLY=($(compgen -W \"${accepted[*]}\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
                        "}\n"
                        "complete -o default -F _wavejit wavejit\n");
}

std::string for_zsh(const CLI::App& program) {
  return shell_function(
      program,
      "#compdef wavejit\n"
      "# Made by `wavejit completion zsh`.\n"
      "_wavejit() {\n"
      "  local command= word before=${words[CURRENT-1]}\n"
      "  local -a accepted\n"
      "  for word in \"${(@)words[2,CURRENT-1]}\"; do\n",
      "  compadd -- $accepted\n"
      "  _files\n"
      "}\n"
      "if [ \"$funcstack[1]\" = _wavejit ]; then _wavejit \"$@\"; else compdef _wavejit wavejit; fi\n");
}

std::string in_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text.substr(0, text.find('\n')))
    quoted += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return quoted + "'";
}

// "__fish_seen_subcommand_from cache; and __fish_seen_subcommand_from list"
std::string seen_in_fish(const Command& command) {
  if (command.path.empty()) return "__fish_use_subcommand";
  std::string seen;
  for (std::size_t at = 1; at <= command.path.size();) {
    const std::size_t end = std::min(command.path.find(' ', at), command.path.size());
    seen += fmt::format("{}__fish_seen_subcommand_from {}", seen.empty() ? "" : "; and ",
                        command.path.substr(at, end - at));
    at = end + 1;
  }
  return seen;
}

std::string for_fish(const CLI::App& program) {
  std::string text = "# Made by `wavejit completion fish`.\n";
  for (const Command& command : all_commands(program)) {
    const std::string seen = seen_in_fish(command);
    for (const CLI::App* each : command.app->get_subcommands([](const CLI::App*) { return true; }))
      text += fmt::format("complete -c wavejit -n '{}' -f -a {} -d {}\n", seen, each->get_name(),
                          in_quotes(each->get_description()));
    for (const CLI::Option* option : command.app->get_options()) {
      if (!option->nonpositional()) continue;
      text += fmt::format("complete -c wavejit -n '{}'", seen);
      for (const std::string& name : option->get_lnames()) text += " -l " + name;
      for (const std::string& name : option->get_snames()) text += " -s " + name;
      const std::vector<std::string> accepted = values_of(*option);
      if (!accepted.empty())
        text += fmt::format(" -x -a '{}'", fmt::join(accepted, " "));
      else if (option->get_items_expected_max() > 0)
        text += " -r";
      text += fmt::format(" -d {}\n", in_quotes(option->get_description()));
    }
  }
  return text;
}

}  // namespace

void add_completion(CLI::App& program, Chosen& chosen) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command = program.add_subcommand(
      "completion", "Print what a shell completes, or the manual page, from this program's own tables");
  add_choice(*command, "shell", *shell, {"bash", "zsh", "fish", "man"},
             "whose completions; man: the page wavejit.1 instead")
      ->required();
  command->footer(
      "Packages install all four. Elsewhere:\n"
      "  source <(wavejit completion bash)      # ~/.bashrc\n"
      "  source <(wavejit completion zsh)       # ~/.zshrc, behind compinit\n"
      "  wavejit completion fish | source       # ~/.config/fish/config.fish\n"
      "  wavejit completion man | man -l -");
  command->callback([&program, &chosen, shell] {
    chosen = [&program, shell]() -> Result<ExitCode> {
      fmt::print("{}", *shell == "bash"   ? for_bash(program)
                       : *shell == "zsh"  ? for_zsh(program)
                       : *shell == "fish" ? for_fish(program)
                                          : manual_page(program));
      return ExitCode::ok;
    };
  });
}

}  // namespace wavejit::tools
