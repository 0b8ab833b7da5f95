// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of attention_merge in plain numbers: what is left of the struct when every field was looked at.
#pragma once

#include <cstdint>

#include "families/call/family.h"
#include "families/call/shape_of.h"
#include "targets/targets.h"
#include "templates/attention/call/limits.h"
#include "templates/attention_merge/kernel/spec.h"

namespace wavejit::attention_merge {

using families::fail;
using families::Failure;
using families::Result;

const families::Family& family();

// Everything of a call that changes code.
using MergeShape = families::ShapeOf<AskedWords, families::AskedBits<AskedWords>, family>;

// Pointers and strides stay where the caller put them.
struct MergeProblem {
  MergeShape shape;
  std::uint32_t batch = 0;
  std::uint32_t tokens = 0;  // of a batch
  std::uint32_t heads = 0;
  std::uint32_t dims = 0;
  std::int64_t parts = 0;  // in all stacks
};

using attention::max_batch;
using attention::max_heads;

inline constexpr std::int64_t max_dims = 512;
inline constexpr std::int64_t max_tokens = 0x7FFFFFFF;
// The most parts of a stack.
inline constexpr std::int64_t max_parts = 4096;

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<MergeProblem> check(const wavejit_attention_merge_arguments* arguments);

// A head has lanes of one wave, eight dims each.
Result<void> fits_waves(std::int64_t dims, const targets::Target& target);

}  // namespace wavejit::attention_merge
