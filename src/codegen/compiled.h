// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a compile is asked for and what it gives back: plain values that every file of this folder shares. No LLVM here.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <utility>
#include <vector>

#include "codegen/codegen_api.h"
#include "families/kernel/kernel_spec.h"
#include "targets/targets.h"

namespace wavejit::codegen {

using Bytes = std::vector<unsigned char>;
using Facts = wavejit_codegen_facts;

enum class Status : std::int32_t {
  ok = WAVEJIT_CODEGEN_OK,
  unsupported = WAVEJIT_CODEGEN_UNSUPPORTED,
  invalid = WAVEJIT_CODEGEN_INVALID,
  crashed = WAVEJIT_CODEGEN_CRASHED,
  rejected = WAVEJIT_CODEGEN_REJECTED,
  unavailable = WAVEJIT_CODEGEN_UNAVAILABLE,
  internal = WAVEJIT_CODEGEN_INTERNAL,
};

// Why there is no code object; `detail` is one line for people.
struct Failure {
  Status status = Status::internal;
  std::string detail;
};

inline std::unexpected<Failure> fail(Status status, std::string detail) {
  return std::unexpected(Failure{.status = status, .detail = std::move(detail)});
}

using Lowering = families::Lowering;

// One kernel to compile. Either a spec's text, or (for tests and experiments) IR text with target and lowering.
struct Request {
  enum class Source : std::uint8_t { spec, ir };
  Source source = Source::spec;
  std::string text;
  std::string target;                  // for IR: a row of the target table
  Lowering lowering = Lowering::llvm;  // for IR
};

struct PhaseTimes {
  std::uint64_t emit_ns = 0;
  std::uint64_t lower_ns = 0;
  std::uint64_t link_ns = 0;
  std::uint64_t inspect_ns = 0;
};

// A finished compile: the code object when status is ok, text for emit_ir and disassemble.
struct Compiled {
  Status status = Status::internal;
  std::string detail;
  Bytes bytes;
  Facts facts = {};
  PhaseTimes times;
};

}  // namespace wavejit::codegen
