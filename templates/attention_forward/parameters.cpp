#include "templates/attention_forward/parameters.h"

#include <algorithm>
#include <array>

#include "templates/attention_forward/lds_layout.h"

namespace wavejit::attention_forward {
namespace {

// Registers a lane may have, chosen so that a whole number of waves fills a SIMD: O takes D/2, scores 32, Q D/4, and
// fragments in flight, addresses and (swizzled) the tile that waits in registers the rest. What the compiler used
// stands in tests/kernels/golden.txt.
int vgpr_budget(const KernelSpec& spec, const LdsPlan& plan) {
  if (spec.head_dim_v > 128) return 512;  // 1 wave; O alone takes 128, and accumulation registers help out
  // A tile that waits in registers, Q's 48 and a tile's bias: a few more than two waves leave.
  if (spec.bias && spec.head_dim_qk > 128 && plan.layout == LdsLayout::swizzled) return 512;
  if (spec.pipeline == Pipeline::dualwave) return 256;  // 2 waves: one of each group
  if (spec.head_dim_v > 64) return 256;                 // 2 waves
  // A tile's bias takes 16, other modifiers a few, and the kernels without them are at their limit.
  if (spec.modified()) return spec.bias && plan.layout == LdsLayout::swizzled ? 256 : 168;
  return plan.layout == LdsLayout::lines ? 128 : 168;  // 4 or 3 waves
}

constexpr int query_rows_per_wave = 32;

constexpr std::array<HeadDims, 4> head_dims = {{{64, 64}, {128, 128}, {192, 128}, {256, 256}}};

std::string known_head_dims() {
  std::string list;
  for (const HeadDims& dims : head_dims) list += (list.empty() ? "" : ", ") + to_text(dims);
  return list;
}

// Registers of a lane that live through a cluster of dualwave: O, Q, weights, scores, and all fragments of a K tile,
// which a memory cluster reads ahead of the products. Beyond 192/128 there is nothing left of 256.
bool fits_dualwave(const KernelSpec& spec) { return spec.head_dim_qk <= 128 && spec.head_dim_v <= 128; }

// What dualwave needs of a target; empty when it has all of it.
std::string missing_for_dualwave(const targets::Target& target) {
  std::string missing;
  const auto need = [&](bool has, const std::string& what) {
    if (!has) missing += (missing.empty() ? "" : " and ") + what;
  };
  need(target.transpose_read, "transpose reads of LDS");
  need(target.lds_dma_bytes >= 16, "16-byte LDS DMA");
  need(target.permlane32_swap, "v_permlane32_swap");
  return missing;
}

}  // namespace

std::span<const HeadDims> all_head_dims() { return head_dims; }

std::string to_text(const HeadDims& dims) {
  return std::to_string(dims.qk) + (dims.v == dims.qk ? "" : "/" + std::to_string(dims.v));
}

int tile_queries(Pipeline pipeline) { return pipeline == Pipeline::dualwave ? 256 : 128; }

Pipeline default_pipeline(const targets::Target& target, bool many_queries) {
  return many_queries && missing_for_dualwave(target).empty() ? Pipeline::dualwave : Pipeline::generic;
}

std::expected<Resources, std::string> resources_of(const KernelSpec& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (!target)
    return std::unexpected("target=" + spec.target +
                           " is not in the target table; accepted: " + targets::known_targets());
  if (std::ranges::find(head_dims, HeadDims{spec.head_dim_qk, spec.head_dim_v}) == head_dims.end()) {
    return std::unexpected("head dim " + to_text(HeadDims{spec.head_dim_qk, spec.head_dim_v}) +
                           " has no kernel; accepted: " + known_head_dims());
  }
  if (spec.tile_keys != 64)
    return std::unexpected("tile of " + std::to_string(spec.tile_keys) +
                           " keys would change the order of additions; accepted: 64");
  if (spec.split_keys % spec.tile_keys != 0)
    return std::unexpected("split=" + std::to_string(spec.split_keys) + " would cut a tile; accepted: multiples of " +
                           std::to_string(spec.tile_keys));
  if (spec.split_keys != 0 && (spec.lse || spec.output_store != OutputStore::scalar))
    return std::unexpected("split= leaves LSE and O to attention_combine; accepted: no lse, o_store=scalar");
  const std::string pipeline = "pipeline=" + std::string(to_text(spec.pipeline));
  if (spec.tile_queries != tile_queries(spec.pipeline))
    return std::unexpected("tile of " + std::to_string(spec.tile_queries) + " queries has no kernel in " + pipeline +
                           "; accepted: " + std::to_string(tile_queries(spec.pipeline)));
  if (spec.pipeline == Pipeline::dualwave) {
    if (const std::string missing = missing_for_dualwave(*target); !missing.empty())
      return std::unexpected(pipeline + " needs " + missing + ", which " + std::string(target->id) +
                             " does not have; accepted: auto, generic");
    if (!fits_dualwave(spec))
      return std::unexpected(pipeline + " holds O, Q and a whole tile of K in registers, which head dim " +
                             to_text(HeadDims{spec.head_dim_qk, spec.head_dim_v}) +
                             " leaves no room for; accepted: auto, generic");
  } else if (!spec.stagger || !spec.raised_priority) {
    return std::unexpected("stagger=off and setprio=off belong to pipeline=dualwave");
  }
  if (spec.output_store == OutputStore::permlane && !target->permlane32_swap)
    return std::unexpected("o_store=permlane needs v_permlane32_swap, which " + std::string(target->id) +
                           " does not have; accepted: auto, scalar");
  const bool has_matrix = std::ranges::any_of(
      target->matrix, [](const targets::MatrixInstruction& row) { return row.m == 32 && row.n == 32; });
  if (!has_matrix || target->wave_size != 64)
    return std::unexpected(pipeline + " needs 32x32 matrix instructions over 64 lanes, which " +
                           std::string(target->id) + " does not have");

  Resources resources;
  resources.waves = spec.tile_queries / query_rows_per_wave;
  resources.threads = resources.waves * target->wave_size;
  const LdsPlan plan = lds_plan(spec, *target);
  // 64 registers of a tile that waits, O's 128, Q's 64 and the scores' 32 do not go together.
  if (plan.layout == LdsLayout::swizzled && spec.head_dim_v > 128)
    return std::unexpected("head dim " + to_text(HeadDims{spec.head_dim_qk, spec.head_dim_v}) +
                           " needs LDS DMA of 16 bytes, which " + std::string(target->id) +
                           " does not have: the tile that waits in registers leaves no room; accepted: up to 192/128");
  resources.lds_bytes = plan.total_bytes();
  resources.lds_buffers = plan.buffers;
  resources.vgpr_budget = vgpr_budget(spec, plan);
  if (resources.lds_bytes > target->lds_bytes_per_workgroup)
    return std::unexpected("the tiles need " + std::to_string(resources.lds_bytes) + " bytes of LDS; " +
                           std::string(target->id) + " gives a workgroup " +
                           std::to_string(target->lds_bytes_per_workgroup));
  const int waves_by_registers = std::min(target->vgprs_per_simd_lane / resources.vgpr_budget, target->waves_per_simd) *
                                 target->simds_per_compute_unit;
  resources.workgroups_per_compute_unit =
      std::min(target->lds_bytes / resources.lds_bytes, waves_by_registers / resources.waves);
  return resources;
}

OutputStore default_output_store(const targets::Target& target) {
  return target.permlane32_swap ? OutputStore::permlane : OutputStore::scalar;
}

LaunchGeometry launch_geometry(const KernelSpec& spec, std::uint32_t batch, std::uint32_t query_heads,
                               std::uint32_t query_length, std::uint32_t splits) {
  const auto rows = static_cast<std::uint32_t>(spec.tile_queries);
  const targets::Target* target = targets::find_target(spec.target);
  const auto wave_size = static_cast<std::uint32_t>(target ? target->wave_size : 64);
  LaunchGeometry geometry;
  geometry.grid_x = query_heads * splits;
  geometry.grid_y = query_length / rows + (query_length % rows != 0 ? 1 : 0);
  geometry.grid_z = batch;
  geometry.threads = rows / query_rows_per_wave * wave_size;
  geometry.dynamic_lds_bytes = 0;  // LDS is a static array: the descriptor in the code object says its size
  return geometry;
}

std::uint32_t division_multiplier(std::uint32_t divisor) {
  if (divisor <= 1) return 0;  // stands for 2³²
  return static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + divisor - 1) / divisor);
}

std::uint32_t kv_head_multiplier(std::uint32_t query_heads, std::uint32_t kv_heads) {
  return kv_heads == 0 ? 0 : division_multiplier(query_heads / kv_heads);
}

}  // namespace wavejit::attention_forward
