// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A code generator that writes the spec's text instead of machine code, counts, waits and fails as told.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string_view>

#include "runtime/libraries/codegen_library.h"

namespace wavejit::tests {

struct FakeCodegen {
  std::atomic<std::uint64_t> compiles{0};
  std::atomic<std::uint64_t> released{0};
  std::atomic<std::uint64_t> services{0};
  std::atomic<int> delay_ms{0};
  std::atomic<int> begun{0};
  std::atomic<int> together{0};         // each compile waits until this many have begun (20 s at most)
  std::atomic<int> met{0};              // how many saw that
  std::function<bool()> awaits;         // when set: each compile waits until it answers true (20 s at most)
  std::atomic<std::int32_t> status{0};  // enum wavejit_codegen_status
  std::atomic<std::uint32_t> kernarg_bytes{96};
  std::function<std::int32_t(std::string_view spec)> judges;  // when set: the status of each kernel
  std::atomic<int> under_way{0};
  std::atomic<int> most_under_way{0};
};

FakeCodegen& fake_codegen();
void reset_fake_codegen();
const runtime::CodegenTable* fake_codegen_table();

}  // namespace wavejit::tests
