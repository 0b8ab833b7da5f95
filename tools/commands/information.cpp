// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// version: what the library says of itself.
#include <fmt/format.h>

#include "tools/commands/commands.h"

namespace wavejit::tools {

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
