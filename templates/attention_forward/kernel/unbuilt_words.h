// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Words of this family that have no kernel where a wave has 32 lanes: what stands in the way of each, as a table.
//
// Two things do. A key of a tile is looked up by a lane of its own, and a tile has 64. And a wave has half of the
// registers: what puts tiles, parts or numbers of single keys into the other half has none.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

struct UnbuiltWord {
  bool (*asked)(const ForwardKernel& spec);
  std::string_view word;
  std::string_view accepted;
};

inline constexpr UnbuiltWord words_unbuilt_for_32_lanes[] = {
    {[](const ForwardKernel& spec) { return spec.narrow_queries; }, "queries=e4m3", "bf16, fp16"},
    {[](const ForwardKernel& spec) { return spec.integers; }, "qk=i8", "bf16, fp16"},
    {[](const ForwardKernel& spec) { return spec.head_dim_qk > 192 || spec.head_dim_v > 128; },
     "a head dim beyond 192/128, whose O, Q and scores are more than 256 registers,", "multiples of 8 up to 192/128"},
    {[](const ForwardKernel& spec) {
       return spec.token_scales && spec.key_layout().looks_up_each_key() && spec.modified() &&
              (spec.head_dim_qk > 64 || spec.head_dim_v > 64);
     },
     "a scale for each token beside keys that are looked up one by one, modified scores and more than 64 dims, which "
     "are more than 256 registers,",
     "pages of 16 n keys without first keys, or no bias, softcap and alibi"},
    {[](const ForwardKernel& spec) { return spec.trans_any(); }, "a tensor whose dims are not contiguous",
     "contiguous dims"},
    {[](const ForwardKernel& spec) { return spec.vectorised; }, "page_layout=vectorised", "pages of rows"},
    {[](const ForwardKernel& spec) { return spec.listed; }, "a list of keys", "keys in their order"},
    {[](const ForwardKernel& spec) { return spec.block_lists; }, "a list of key blocks", "masks none, causal, window"},
    {[](const ForwardKernel& spec) { return spec.bool_mask; }, "a bool mask", "masks none, causal, window, a bias"},
    {[](const ForwardKernel& spec) { return spec.chunk_waves != 0; }, "chunk_waves=, waves that share a chunk,",
     "waves with rows of their own"},
    {[](const ForwardKernel& spec) { return spec.merged; }, "merged, parts that the last workgroup merges,",
     "two launches"},
};

// Nothing where the target has the lanes.
inline std::optional<std::string> unbuilt_word(const ForwardKernel& spec, const targets::Target& target) {
  constexpr int lanes_that_look_up_a_tile = attention::tile_keys;
  if (target.wave_size >= lanes_that_look_up_a_tile) return std::nullopt;
  for (const UnbuiltWord& row : words_unbuilt_for_32_lanes)
    if (row.asked(spec))
      return std::string(row.word) + " has no kernel where waves have " + std::to_string(target.wave_size) +
             " lanes, as on " + std::string(target.id) + "; accepted: " + std::string(row.accepted);
  return std::nullopt;
}

}  // namespace wavejit::attention_forward
