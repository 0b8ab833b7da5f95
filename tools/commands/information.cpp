// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// supported, version: what the library says, line by line.
#include <fmt/format.h>

#include "tools/commands/commands.h"

namespace wavejit::tools {

namespace {

void print_line(void* /*context*/, const char* line) { fmt::print("{}\n", line); }

}  // namespace

void add_supported(CLI::App& program, Chosen& chosen) {
  CLI::App* command = program.add_subcommand("supported", "List what this version has kernels for");
  command->footer("The list comes from the tables that the route itself asks.");
  command->callback([&chosen] {
    chosen = []() -> Result<ExitCode> {
      if (auto done = checked(wavejit_supported(print_line, nullptr)); !done) return std::unexpected(done.error());
      return ExitCode::ok;
    };
  });
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
