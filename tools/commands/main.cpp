// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The program `wavejit`: a thin face over the C ABI. Parsing is CLI11's; each subcommand is a file in commands/.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "tools/commands/commands.h"
#include "tools/exit_code.h"
#include "tools/families.h"
#include "vocabulary/nearest_word.h"
#include "wavejit/options.hpp"

namespace wavejit::tools {
namespace {

// One line, whatever CLI11 or the library put into its text.
std::string one_line(std::string text) {
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return text;
}

int report(const std::string& command, const Failure& failure) {
  std::fflush(stdout);
  fmt::print(stderr, "{}: {}\n", command, one_line(failure.what));
  return static_cast<int>(failure.code);
}

// The deepest subcommand that was named, and how a user writes it: "wavejit cache verify".
struct Named {
  const CLI::App* command;
  std::string text;
};

Named named_command(const CLI::App& program) {
  Named named{.command = &program, .text = program.get_name()};
  while (!named.command->get_subcommands().empty()) {
    named.command = named.command->get_subcommands().front();
    named.text += " " + named.command->get_name();
  }
  return named;
}

// Every option or subcommand that could have stood there.
std::vector<std::string> accepted_words(const CLI::App& command) {
  std::vector<std::string> words;
  const auto every = [](const CLI::App*) { return true; };
  for (const CLI::App* subcommand : command.get_subcommands(every)) words.push_back(subcommand->get_name());
  if (!words.empty()) return words;
  for (const CLI::Option* option : command.get_options()) {
    if (option->nonpositional()) words.push_back(option->get_name());
  }
  return words;
}

// CLI11's text, but for words that it only calls unexpected or leaves unmentioned.
std::string problem_text(const CLI::ParseError& problem, const Named& named) {
  const std::vector<std::string> remaining = named.command->remaining();
  const bool lacks_subcommand = named.command->get_require_subcommand_min() > 0;
  if (!lacks_subcommand && dynamic_cast<const CLI::ExtrasError*>(&problem) == nullptr) return problem.what();
  const std::vector<std::string> words = accepted_words(*named.command);
  // Batches that a command draws have shapes of their own.
  if (!remaining.empty() && named.command->get_option_no_throw("--family") != nullptr)
    if (const Family* family = family_of(remaining.front()))
      return fmt::format("'{}' is a descriptor, and {} draws its shapes; --family {} asks that family alone",
                         remaining.front(), named.command->get_name(), family->name());
  if (remaining.empty()) return fmt::format("a subcommand is missing; {} are accepted", fmt::join(words, ", "));
  const std::string& stranger = remaining.front();
  if (stranger.starts_with("--") && named.command->get_option_no_throw("--pipeline") != nullptr)
    if (const std::string meant = meant_pipeline(stranger.substr(2, stranger.find('=') - 2)); !meant.empty())
      return fmt::format("'{}' is not accepted here; write --pipeline \"{}\"", stranger, meant);
  return fmt::format("'{}' is not accepted here{}", remaining.front(),
                     vocabulary::meant_or_list(remaining.front(), words, {}));
}

// The words of a descriptor that stand apart, since the shell was not told that they are one: "attention_forward bf16
// b1 …". Empty: none does. `run` takes the family's name by itself, and what stands behind an option may be its value.
std::string descriptor_in_pieces(int argument_count, char** arguments) {
  if (argument_count < 3 || std::string_view(arguments[1]) == "run") return {};
  for (int i = 2; i < argument_count; ++i) {
    if (find_family(arguments[i]) == nullptr || *arguments[i - 1] == '-') continue;
    std::string words = arguments[i];
    for (int next = i + 1; next < argument_count && *arguments[next] != '-'; ++next)
      words += std::string(" ") + arguments[next];
    return words.find(' ') == std::string::npos ? std::string() : words;
  }
  return {};
}

Failure unquoted(const std::string& descriptor) {
  return {.code = ExitCode::usage, .what = fmt::format("a descriptor is one word: quote it: \"{}\"", descriptor)};
}

// Options of `run` are a family's own: that of the first word that names one, wherever it stands.
const Family& family_on(int argument_count, char** arguments) {
  for (int i = 1; i < argument_count; ++i)
    if (const Family* family = find_family(arguments[i])) return *family;
  return *all_families().front();
}

int run(int argument_count, char** arguments) {
  CLI::App program("Attention kernels for AMD GPUs, emitted at the first call that needs them", "wavejit");
  program.set_version_flag(
      "--version", []() { return fmt::format("wavejit {}", wavejit_version()); }, "Print the version");
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  program.footer(std::string("`wavejit <subcommand> --help` explains each, with examples.\n\n") + exit_code_table());

  Chosen chosen;
  add_run(program, chosen, family_on(argument_count, arguments));
  add_explain(program, chosen);
  add_prebuild(program, chosen);
  add_sweep(program, chosen);
  add_invariance(program, chosen);
  add_profile(program, chosen);
  add_compare(program, chosen);
  add_tune(program, chosen);
  add_doctor(program, chosen);
  add_sim(program, chosen);
  add_cache(program, chosen);
  add_variants(program, chosen);
  add_supported(program, chosen);
  add_version(program, chosen);
  add_completion(program, chosen);

  try {
    program.parse(argument_count, arguments);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return program.exit(problem);  // --help, --version
    const Named named = named_command(program);
    if (const std::string pieces = descriptor_in_pieces(argument_count, arguments); !pieces.empty())
      return report(named.text, unquoted(pieces));
    const std::string what = fmt::format("{}; `{} --help` tells more", problem_text(problem, named), named.text);
    return report(named.text, {.code = ExitCode::usage, .what = what});
  }

  const std::string command = named_command(program).text;
  if (const std::string pieces = descriptor_in_pieces(argument_count, arguments); !pieces.empty())
    return report(command, unquoted(pieces));
  const auto outcome = chosen();
  if (!outcome) return report(command, outcome.error());
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return report(command, {.code = ExitCode::file, .what = "cannot write to standard output"});
  }
  return static_cast<int>(*outcome);
}

}  // namespace
}  // namespace wavejit::tools

int main(int argument_count, char** arguments) {
  try {
    return wavejit::tools::run(argument_count, arguments);
  } catch (const std::bad_alloc&) {
    std::fputs("wavejit: out of memory\n", stderr);
  } catch (const std::system_error& problem) {
    // fmt::print throws where standard output takes no more.
    if (std::ferror(stdout) != 0) {
      std::fputs("wavejit: cannot write to standard output\n", stderr);
      return static_cast<int>(wavejit::tools::ExitCode::file);
    }
    fmt::print(stderr, "wavejit: {}\n", problem.what());
  } catch (const std::exception& problem) {
    fmt::print(stderr, "wavejit: {}\n", problem.what());
  }
  return static_cast<int>(wavejit::tools::ExitCode::internal);
}
