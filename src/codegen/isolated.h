// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Compiles in a process of their own: a crash, a hang or a library that misbehaves is a status.
#pragma once

#include <cstdint>
#include <expected>
#include <string>

#include "codegen/compiled.h"

namespace wavejit::codegen::isolated {

struct Options {
  std::string program;  // empty: beside this library
  std::uint32_t time_limit_ms = 60'000;
};

// Starts wavejit-compile, hands it the request and waits for its answer, at most the time limit.
Compiled compile(const Request& request, const Options& options);

// What wavejit-compile says of a lowering, or why it cannot.
std::expected<std::string, Failure> lowering_identity(const std::string& lowering, const Options& options);

}  // namespace wavejit::codegen::isolated
