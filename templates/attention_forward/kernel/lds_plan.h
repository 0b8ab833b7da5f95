// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel of this family has in LDS: tiles of K and V, and what dual-wave workgroups keep behind them.
#pragma once

#include <algorithm>

#include "targets/wave_shape.h"
#include "templates/attention/kernel/lds_layout.h"
#include "templates/attention_forward/kernel/chunk_exchange_plan.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// What is kept of O for later chunks: four dims of a lane, eight of a row.
inline constexpr int dims_of_kept_slot = 8;
constexpr int kept_slots_of(const ForwardKernel& spec) { return blocks_of_dims(spec.head_dim_v, dims_of_kept_slot); }

// O stands in blocks of the rows that a wave has.
constexpr int padded_dims_of_output(int dims) {
  constexpr int block = 32;
  return blocks_of_dims(dims, block) * block;
}

// Where a wave has 256 registers none are left for a tile that waits in them: beside O and Q of more than 192/128 dims;
// beside an address of each key and more than 128 dims of K, or a bias and more than 64; and of bytes beside scales of
// tokens or a bias in f32 and more than 128 dims, or Q in f32 and more than 64.
constexpr bool tiles_come_late(const ForwardKernel& spec, const targets::Target& target) {
  if (target.vgprs_per_wave > 256) return false;
  constexpr int usual_dims = 128;
  constexpr int few_dims = 64;
  if (spec.head_dim_qk > 192 || spec.head_dim_v > usual_dims) return true;
  const auto has_more = [&](int dims) { return spec.head_dim_qk > dims || spec.head_dim_v > dims; };
  if (spec.key_layout().looks_up_each_key() && has_more(spec.has(Modifier::bias) ? few_dims : usual_dims)) return true;
  if (spec.cache == CacheType::as_queries) return false;
  return (has_more(usual_dims) && (spec.token_scales || spec.bias_fp32)) || (has_more(few_dims) && spec.query_fp32);
}

constexpr TileShape tile_shape(const ForwardKernel& spec, const targets::Target& target) {
  return {.dims_k = spec.head_dim_qk,
          .dims_v = spec.head_dim_v,
          .k_type = spec.query_type(),
          .v_type = spec.integers ? spec.dtype : spec.query_type(),
          .waves = spec.waves(targets::wave_shape(target).rows),
          .cache = spec.cache,
          .layout = spec.tile_layout(),
          .two_buffers = spec.pipeline == Pipeline::dualwave,
          .scattered = spec.trans_k || spec.trans_v,
          .three_buffers = spec.pipeline == Pipeline::dualwave && spec.narrow_queries,
          // Workgroups of a few rows whose lists differ live on what memory delivers.
          .apart = spec.block_lists && !spec.paged && spec.pipeline == Pipeline::generic,
          .late = tiles_come_late(spec, target)};
}

constexpr LdsPlan lds_plan(const ForwardKernel& spec, const targets::Target& target) {
  const TileShape shape = tile_shape(spec, target);
  LdsPlan plan = attention::tile_plan(shape, target);
  // Its registers let a compute unit hold one workgroup, so that LDS behind its tiles is free. In private memory each
  // group of waves would wait for the other's traffic through one cache.
  if (spec.pipeline == Pipeline::dualwave && spec.split_keys == 0) {
    constexpr int slot_bytes = 16;
    plan.merged_slot_bytes = shape.waves * target.wave_size * slot_bytes;
    const int slots = 1 + kept_slots_of(spec);  // statistics, and O
    const int room = (target.lds_bytes_per_workgroup - plan.total_bytes()) / plan.merged_slot_bytes;
    plan.merged_slots = room < slots ? room : slots;
  }
  if (spec.chunk_waves != 0) {
    plan.buffers = spec.chunk_waves;  // an image for each wave's tile
    if (plan.layout == LdsLayout::swizzled) {
      // It takes half of the tile's K, 32 keys, and then V of the wave's dims.
      plan.k_tile_bytes =
          std::max(plan.k_tile_bytes / 2, plan.v_tile_bytes / spec.waves_with_dims(targets::wave_shape(target).rows));
      plan.v_tile_bytes = 0;
    }
    const ChunkExchangePlan exchange{spec.chunk_waves, target.wave_size};
    plan.exchange_bytes = exchange.total_bytes();
    // Q passes through it, behind the maxima, if there is room.
    const int with_query = exchange.maxima_bytes() + plan.k_tile_bytes;
    if (plan.layout == LdsLayout::lines && with_query > plan.exchange_bytes &&
        plan.exchange_offset() + with_query <= target.lds_bytes_per_workgroup)
      plan.exchange_bytes = with_query;
  }
  return plan;
}

}  // namespace wavejit::attention_forward
