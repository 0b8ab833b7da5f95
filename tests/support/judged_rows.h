// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A result of the tests' attention cases before the judge that the program asks too (tools/judge.h).
#pragma once

#include <cstdint>
#include <span>

#include "support/attention_reference.h"
#include "support/storage_types.h"
#include "tools/judge.h"

namespace wavejit::tests {

inline constexpr tools::StorageFormat format_of(Storage storage) {
  return storage == Storage::fp16 ? tools::fp16_format : tools::bf16_format;
}

// Row `row` of a sequence. `exact` is the whole answer.
void judge_row(tools::Judge& judge, const AttentionInputs& inputs, const AttentionAnswer& exact, int sequence, int row,
               int head, const tools::ResultRow& result);

// Every row of an O in f32.
tools::Judgement judge(tools::Judge judge, const AttentionInputs& inputs, const AttentionAnswer& exact,
                       std::span<const float> o, std::span<const float> lse);
// Every row. O holds storage bits; `lse` is empty where none was asked for.
tools::Judgement judge(Storage storage, const AttentionInputs& inputs, const AttentionAnswer& exact,
                       std::span<const std::uint16_t> o, std::span<const float> lse);

}  // namespace wavejit::tests
