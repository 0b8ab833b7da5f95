// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the program answers to its caller, and how a failure travels there: one line and one code.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "wavejit/wavejit.h"

namespace wavejit::tools {

// Printed by `wavejit --help`; numbers are stable.
enum class ExitCode : std::uint8_t {
  ok = 0,
  check_failed = 1,    // --check beyond the bound, a damaged cache entry
  usage = 2,           // an option, a value or a descriptor that cannot be right
  file = 3,            // an input that cannot be read or is no such array, an output that cannot be written
  unsupported = 4,     // right, but this version and target have no kernel for it
  compile_failed = 5,  // the compiler refused, crashed or is not there
  device = 6,          // no such device, or it refused work or memory
  internal = 7,
};

struct Failure {
  ExitCode code = ExitCode::internal;
  std::string what;  // one line: the field, the value, and what is accepted
};

template <typename T>
using Result = std::expected<T, Failure>;

inline std::unexpected<Failure> failed(ExitCode code, std::string what) {
  return std::unexpected(Failure{.code = code, .what = std::move(what)});
}

// The table of exit codes for help texts.
const char* exit_code_table();

// A status of the library with its detail text, which belongs to the last call of this thread.
Result<void> checked(wavejit_status status);

}  // namespace wavejit::tools
