// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// supported, version: what the library says.
#include <fmt/format.h>

#include <memory>

#include "tools/commands/commands.h"
#include "tools/nearest_word.h"
#include "tools/support_table.h"
#include "tools/targets.h"

namespace wavejit::tools {

namespace {

struct SupportedArguments {
  std::string target;
  bool markdown = false;
  bool json = false;
};

Result<ExitCode> print_supported(const SupportedArguments& arguments) {
  const Support found = support(arguments.target);
  if (found.rows.empty()) {
    const std::vector<std::string> targets = targets_that_run();
    return failed(ExitCode::usage,
                  fmt::format("--target '{}' is no target{}; accepted: {}, and the names of their products in brackets",
                              arguments.target, did_you_mean(arguments.target, targets), joined(targets, ", ")));
  }
  fmt::print("{}", arguments.json       ? support_json(found)
                   : arguments.markdown ? support_markdown(found)
                                        : support_text(found));
  return ExitCode::ok;
}

}  // namespace

void add_supported(CLI::App& program, Chosen& chosen) {
  const auto arguments = std::make_shared<SupportedArguments>();
  CLI::App* command =
      program.add_subcommand("supported", "List what this version has kernels for, by target and family");
  command->add_option("--target", arguments->target, "one target or product only: gfx950, mi355x (default: all)")
      ->type_name("TARGET");
  CLI::Option* markdown =
      command->add_flag("--markdown", arguments->markdown, "one table, families down, targets across");
  command->add_flag("--json", arguments->json, "every fact, for programs")->excludes(markdown);
  command->footer(
      "The list comes from the tables that the route itself asks. Whether one call has a kernel, and why not: wavejit explain.\n\n"
      "Examples\n"
      "  wavejit supported\n"
      "  wavejit supported --target mi300x\n"
      "  wavejit supported --markdown");
  command->callback([arguments, &chosen] { chosen = [arguments] { return print_supported(*arguments); }; });
}

void add_version(CLI::App& program, Chosen& chosen) {
  CLI::App* command = program.add_subcommand("version", "Print the version");
  command->callback([&chosen] {
    chosen = []() -> Result<ExitCode> {
      fmt::print("wavejit {}\n", wavejit_version());
      return ExitCode::ok;
    };
  });
}

}  // namespace wavejit::tools
