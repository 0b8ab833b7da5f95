// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A result of the tests' attention cases before the checker that the program asks too (tools/checker.h).
#pragma once

#include <cstdint>
#include <span>

#include "support/attention_reference.h"
#include "support/storage_types.h"
#include "tools/checker.h"

namespace wavejit::tests {

inline constexpr tools::StorageFormat format_of(Storage storage) {
  return storage == Storage::fp16 ? tools::fp16_format : tools::bf16_format;
}

// Row `row` of a sequence. `exact` is the whole answer.
void check_row(tools::Checker& checker, const AttentionInputs& inputs, const AttentionAnswer& exact, int sequence,
               int row, int head, const tools::ResultRow& result);

// Every row of an O in f32.
tools::Comparison compare_rows(tools::Checker checker, const AttentionInputs& inputs, const AttentionAnswer& exact,
                               std::span<const float> o, std::span<const float> lse);
// Every row. O holds storage bits; `lse` is empty where none was asked for.
tools::Comparison compare_rows(Storage storage, const AttentionInputs& inputs, const AttentionAnswer& exact,
                               std::span<const std::uint16_t> o, std::span<const float> lse);

}  // namespace wavejit::tests
