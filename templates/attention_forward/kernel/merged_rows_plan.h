// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a walk over several chunks keeps what it has merged so far (emit/merged_rows.h): O, m and l of its rows, and
// the maximum of the chunk that ends, a lane. No LLVM: parameters.cpp knows what it costs, golden facts hold what came
// of it.
#pragma once

#include <algorithm>

#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// In memory R is slots of 16 bytes a lane: one of statistics (m, l, the maximum put aside, and nothing), then O, four
// dims each. The first of them stand in LDS as far as tiles leave room, the rest in private memory.
struct MergedRowsPlan {
  // workspace: kernels that split keys leave each part there. nowhere: a row is one chunk.
  enum class Place : std::uint8_t { registers, memory, workspace, nowhere };
  static constexpr int slot_bytes = 16;

  Place place = Place::memory;
  int lds_slots = 0;
  int private_bytes = 0;  // a lane
};

constexpr MergedRowsPlan merged_rows_plan(const ForwardKernel& spec, int vgpr_budget, const LdsPlan& lds) {
  if (!spec.has_chunks()) return {.place = MergedRowsPlan::Place::nowhere};
  if (spec.split_keys != 0) return {.place = MergedRowsPlan::Place::workspace};
  // A wave has its share of O's dims, and a SIMD to itself. Half of the dims are too many beside a tile of more than
  // 128 dims of K, and any beside tiles in registers and addresses of their keys.
  const bool has_addresses = lds.layout == LdsLayout::swizzled && spec.paged;
  if (spec.chunk_waves != 0 && spec.head_dim_qk <= 128 && !has_addresses)
    return {.place = MergedRowsPlan::Place::registers};
  // Half the dims, m, l and one maximum more. Of 64 dims that leaves two waves a SIMD what they need. Where another
  // workgroup works meanwhile, private memory is as fast, and a row of one chunk has nothing to begin with.
  // A wave that holds a whole tile and its bias has no more room.
  const bool full = lds.layout == LdsLayout::swizzled && spec.tile_queries < 128 && spec.has(Modifier::bias);
  if (spec.head_dim_v <= 64 && vgpr_budget >= 256 && spec.pipeline == Pipeline::generic && !full)
    return {.place = MergedRowsPlan::Place::registers};
  // With lists a chunk may have a tile or two, and private memory would be waited for with the next tile of keys.
  const bool spare = lds.layout == LdsLayout::lines && spec.head_dim_v <= 128 && vgpr_budget >= 512;
  if ((spec.block_lists || spec.bool_mask) && !spec.paged && spare) return {.place = MergedRowsPlan::Place::registers};
  const int dims = spec.chunk_waves != 0 ? spec.head_dim_v / spec.chunk_waves : spec.head_dim_v;  // of a wave
  const int slots =
      1 + (spec.pipeline == Pipeline::dualwave ? kept_slots_of(spec) : padded_dims_of_output(dims) / dims_of_kept_slot);
  const int lds_slots = std::min(slots, lds.merged_slots);
  return {.place = MergedRowsPlan::Place::memory,
          .lds_slots = lds_slots,
          .private_bytes = (slots - lds_slots) * MergedRowsPlan::slot_bytes};
}

}  // namespace wavejit::attention_forward
