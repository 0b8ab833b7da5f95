// The program `wavejit`: a thin face over the C ABI. Parsing is CLI11's; each subcommand is a file in commands/.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>

#include "tools/commands/commands.h"
#include "tools/exit_code.h"

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

// "wavejit cache verify": the deepest subcommand that was named.
std::string named_command(const CLI::App& program) {
  std::string name = program.get_name();
  const CLI::App* at = &program;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    name += " " + at->get_name();
  }
  return name;
}

int run(int argument_count, char** arguments) {
  CLI::App program("Attention kernels for AMD GPUs, emitted at the first call that needs them", "wavejit");
  program.set_version_flag(
      "--version", []() { return fmt::format("wavejit {}", wavejit_version()); }, "Print the version");
  program.require_subcommand(1);
  program.get_formatter()->column_width(34);
  program.footer(std::string("`wavejit <subcommand> --help` explains each, with examples.\n\n") + exit_code_table());

  Chosen chosen;
  add_run(program, chosen);
  add_explain(program, chosen);
  add_prebuild(program, chosen);
  add_cache(program, chosen);
  add_supported(program, chosen);
  add_version(program, chosen);

  try {
    program.parse(argument_count, arguments);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return program.exit(problem);  // --help, --version
    const std::string command = named_command(program);
    return report(
        command, {.code = ExitCode::usage, .what = fmt::format("{}; `{} --help` tells more", problem.what(), command)});
  }

  const std::string command = named_command(program);
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
  } catch (const std::exception& problem) {
    fmt::print(stderr, "wavejit: {}\n", problem.what());
  }
  return static_cast<int>(wavejit::tools::ExitCode::internal);
}
