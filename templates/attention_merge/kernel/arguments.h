// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Byte for byte what an attention_merge kernel reads, and how a launch is divided. Strides are in bytes.
//
// Workgroups: x = tokens, y = batch, z = groups of as many heads as one wave holds, eight dims a lane. Each wave takes
// one token of its heads, and all their parts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wavejit::attention_merge {

// Dims that a lane holds.
inline constexpr int dims_of_lane = 8;
inline constexpr int threads = 256;
// Parts that stand anywhere; each may be the first of a stack.
inline constexpr std::size_t max_stacks = 8;

// O and LSE of one part, or of several that stand at one distance from each other.
struct Stack {
  std::uint64_t o = 0;
  std::uint64_t o_batch_stride = 0;
  std::uint64_t o_token_stride = 0;
  std::uint64_t o_part_stride = 0;
  std::uint64_t lse = 0;
  std::uint64_t lse_batch_stride = 0;
  std::uint64_t lse_token_stride = 0;
  std::uint64_t lse_part_stride = 0;
  std::uint32_t o_head_stride = 0;
  std::uint32_t o_row_bytes = 0;  // of a token: to its last element
  std::uint32_t lse_head_stride = 0;
  std::uint32_t lse_row_bytes = 0;  // 0: there is none
  std::uint32_t parts = 0;
  float o_scale = 1;                         // of the result, in 8 bits, without an address of it
  std::array<std::uint32_t, 2> unused = {};  // read along with the rest
};
static_assert(sizeof(Stack) == 96);

struct Arguments {
  Stack result;
  std::uint32_t stacks = 0;
  std::uint32_t tokens = 0;  // of a batch
  std::uint32_t heads = 0;
  std::uint32_t pieces = 0;      // of a head: dims / dims_of_lane
  std::uint32_t lane_shift = 0;  // a head has 1 << lane_shift lanes of a wave
  std::uint32_t heads_of_wave = 0;
  std::uint64_t o_scale = 0;  // of a result in 8 bits, in device memory; null: the result's own
  std::array<Stack, max_stacks> parts = {};
};
static_assert(sizeof(Arguments) == (max_stacks + 1) * sizeof(Stack) + 32);

}  // namespace wavejit::attention_merge
