// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of cache_append in plain numbers: what is left of the struct when every field was looked at.
#pragma once

#include <cstdint>

#include "families/call/family.h"
#include "families/call/shape_of.h"
#include "targets/targets.h"
#include "templates/attention/call/limits.h"
#include "templates/cache_append/kernel/spec.h"

namespace wavejit::cache_append {

using families::fail;
using families::Failure;
using families::Result;

const families::Family& family();

// Everything of a call that changes code.
using AppendShape = families::ShapeOf<AskedWords, families::AskedBits<AskedWords>, family>;

// Pointers and strides stay where the caller put them.
struct AppendProblem {
  AppendShape shape;
  std::uint32_t batch = 0;
  std::uint32_t tokens = 0;  // of a batch
  std::uint32_t page_size = 0;
  std::uint32_t slots = 0;  // of the cache
  bool values = false;
  std::int64_t widest_head = 0;  // dims of K, V or Q
};

using attention::max_batch;
using attention::max_heads;

inline constexpr std::int64_t max_dims = 512;
inline constexpr std::int64_t max_rotary_dims = 2 * static_cast<std::int64_t>(max_pairs);
inline constexpr std::int64_t rotary_granule = 2 * dims_of_lane;
// Slots and positions are 31 bits of a kernel's numbers.
inline constexpr std::int64_t max_slots = 0x7FFFFFFF;

// Reads the struct only as far as its size allows. Does not touch what the tensors point to.
Result<AppendProblem> check(const wavejit_cache_append_arguments* arguments);

// Whether a head fits the lanes of one wave, eight dims a lane. `dims`: those of the widest head.
Result<void> fits_waves(std::int64_t dims, const targets::Target& target);

}  // namespace wavejit::cache_append
