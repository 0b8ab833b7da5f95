// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/parameters.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "templates/attention/kernel/coverage.h"
#include "templates/attention_forward/kernel/argument_tail.h"
#include "templates/attention_forward/kernel/head_dims.h"
#include "templates/attention_forward/kernel/ladders.h"
#include "templates/attention_forward/kernel/lds_plan.h"
#include "templates/attention_forward/kernel/room.h"
#include "templates/attention_forward/kernel/rules.h"

namespace wavejit::attention_forward {
namespace {

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

std::string missing_for(Pipeline pipeline, const targets::Target& target) {
  const std::string name = "pipeline=" + std::string(to_text(pipeline));
  const std::string id(target.id);
  if (pipeline == Pipeline::dualwave) {
    if (const std::string missing = missing_for_dualwave(target); !missing.empty())
      return name + " needs " + missing + ", which " + id + " does not have";
  }
  // Its walk moves tiles through registers; a target with wider ways would only lose by it.
  if (pipeline == Pipeline::interleaved && target.matrix_form == targets::MatrixForm::wmma)
    return name + " puts vector work beside matrix instructions; on " + id + " nothing runs beside them";
  if (pipeline == Pipeline::interleaved && lds_layout(target) != LdsLayout::swizzled)
    return name + " is for tiles that pass through registers; " + id + " fills LDS by 16-byte DMA";
  return {};
}

std::span<const HeadDims> all_head_dims() { return whole_head_dims; }

QueryRows query_rows(std::uint64_t query_length) {
  return query_length <= 32    ? QueryRows::up_to_32
         : query_length <= 64  ? QueryRows::up_to_64
         : query_length <= 255 ? QueryRows::up_to_255
                               : QueryRows::more;
}

RowPlan plan_rows(std::uint64_t query_length, std::uint64_t group) {
  if (group <= 1 || query_length > longest_packed_query) return {.rows = query_rows(query_length)};
  return {.rows = query_rows(query_length * group), .packed_heads = true};
}

namespace {
// What `wavejit tune` found (docs/tune.md).
struct TunedDefault {
  std::string_view target;
  QueryRows rows;
  Pipeline pipeline;
  int tile_queries;
  std::string_view ladder;  // empty: the pipeline has none
};
constexpr TunedDefault tuned_defaults[] = {
#include "templates/attention_forward/kernel/tuned_defaults.inc"
};
// Null for a pair that it was not asked about.
const TunedDefault* find_tuned(const targets::Target& target, QueryRows rows) {
  const auto* const tuned = std::ranges::find_if(
      tuned_defaults, [&](const TunedDefault& each) { return each.target == target.id && each.rows == rows; });
  return tuned == std::end(tuned_defaults) ? nullptr : tuned;
}
}  // namespace

Pipeline default_pipeline(const targets::Target& target, QueryRows rows) {
  const TunedDefault* tuned = find_tuned(target, rows);
  if (tuned != nullptr && missing_for(tuned->pipeline, target).empty()) return tuned->pipeline;
  // Nobody tuned for it: what it can do says what it prefers.
  if (rows == QueryRows::more && missing_for(Pipeline::dualwave, target).empty()) return Pipeline::dualwave;
  return missing_for(Pipeline::interleaved, target).empty() ? Pipeline::interleaved : Pipeline::generic;
}

bool shares_in_registers(const AskedWords& words, bool split) {
  // The short queries of a mix look up which sequences are theirs, too.
  const bool few_in_window = words.rows == QueriesOf::few && words.paged && words.mask == Mask::window;
  const bool short_of_registers =
      !split && (few_in_window || (words.head_dim_v > 64 && (words.has(Modifier::bias) || words.query_fp32 ||
                                                             (words.paged && words.mask != Mask::none))));
  return words.head_dim_v <= 128 && !short_of_registers && !words.bias_fp32 &&
         !words.key_layout().looks_up_each_key() && !(words.paged && (words.modified() || has_kind(words.mask)));
}

bool small_tiles_fit(const HeadDims& dims) { return dims.qk <= 128 && dims.v <= 128; }

std::span<const int> tile_queries(const targets::Target& target, Pipeline pipeline) {
  static constexpr std::array<int, 1> dualwave = {256};
  static constexpr std::array<int, 1> interleaved = {128};
  static constexpr std::array<int, 3> generic = {32, 64, 128};
  // Half of the registers hold no more of a tile than an eighth of 128 dims.
  static constexpr std::array<int, 1> eight_waves = {128};
  if (target.vgprs_per_wave <= 256 && pipeline == Pipeline::generic) return eight_waves;
  if (pipeline == Pipeline::dualwave) return dualwave;
  return pipeline == Pipeline::interleaved ? std::span<const int>(interleaved) : generic;
}

int default_tile_queries(const targets::Target& target, Pipeline pipeline, QueryRows rows, const HeadDims& dims) {
  constexpr std::array<int, 4> wanted = {32, 64, 128, 256};
  const std::span<const int> possible = tile_queries(target, pipeline);
  if (!small_tiles_fit(dims)) return possible.back();
  const TunedDefault* tuned = find_tuned(target, rows);
  if (tuned != nullptr && tuned->pipeline == pipeline && std::ranges::contains(possible, tuned->tile_queries))
    return tuned->tile_queries;
  // Small ones have not been asked for there: packed heads have them.
  if (lds_layout(target) == LdsLayout::swizzled) return possible.back();
  int best = possible.front();
  for (const int tile : possible)
    if (tile <= wanted[static_cast<std::size_t>(rows)]) best = tile;
  return best;
}

int packed_tile_queries(const targets::Target& target, QueryRows rows, const HeadDims& dims) {
  const std::span<const int> possible = tile_queries(target, Pipeline::generic);
  if (!small_tiles_fit(dims) || possible.size() == 1) return possible.back();
  return rows == QueryRows::up_to_32 ? 32 : rows == QueryRows::up_to_64 ? 64 : possible.back();
}

std::string default_ladder(const targets::Target& target, Pipeline pipeline, QueryRows rows) {
  const TunedDefault* tuned = find_tuned(target, rows);
  if (tuned == nullptr || tuned->pipeline != pipeline) return {};
  const Ladder* ladder = find_ladder(pipeline, tuned->ladder);
  return ladder == nullptr || ladder == find_ladder(pipeline, "") ? std::string() : std::string(ladder->name);
}

std::expected<Resources, std::string> resources_of(const ForwardKernel& spec) {
  const targets::Target* target = targets::find_target(spec.target);
  if (target == nullptr)
    return std::unexpected("target=" + spec.target +
                           " is not in the target table; accepted: " + targets::known_targets());
  if (auto lacking = attention::lacks_kernels(*target, attention::Need::row_of_two, ForwardKernel::kernel))
    return std::unexpected(*std::move(lacking));
  if (std::string refusal = first_refusal({spec, *target}); !refusal.empty())
    return std::unexpected(std::move(refusal));

  return resources_with(spec, *target, measured_budget(spec, *target));
}

Resources resources_with(const ForwardKernel& spec, const targets::Target& target, int vgpr_budget) {
  Resources resources;
  resources.waves = spec.waves(targets::wave_shape(target).rows);
  resources.threads = resources.waves * target.wave_size;
  const LdsPlan plan = lds_plan(spec, target);
  resources.lds_bytes = plan.total_bytes();
  resources.lds_buffers = plan.buffers;
  resources.vgpr_budget = vgpr_budget;
  const int waves_by_registers = std::min(targets::waves_with(target, resources.vgpr_budget), target.waves_per_simd) *
                                 target.simds_per_compute_unit;
  resources.workgroups_per_compute_unit =
      std::min(target.lds_bytes / resources.lds_bytes, waves_by_registers / resources.waves);
  return resources;
}

std::optional<std::string> refusal_of(const ForwardKernel& spec) {
  auto resources = resources_of(spec);
  if (resources) return std::nullopt;
  return std::move(resources.error());
}

std::size_t argument_bytes(const ForwardKernel& spec) {
  if (spec.scales_output()) return sizeof(OutputScaleArguments);
  const std::size_t bytes = end_of(tail_of(spec));
  return spec.causal_flags ? std::max(bytes, sizeof(FlaggedArguments)) : bytes;
}

OutputStore default_output_store(const targets::Target& target) {
  return target.permlane32_swap ? OutputStore::permlane : OutputStore::scalar;
}

LaunchGeometry launch_geometry(const ForwardKernel& spec, const targets::Target& target, std::uint32_t batch,
                               std::uint32_t query_heads, std::uint32_t query_length, std::uint32_t splits,
                               std::uint32_t group) {
  const auto rows = static_cast<std::uint32_t>(spec.tile_queries);
  if (spec.packed_heads) {
    query_heads /= group;
    query_length *= group;
  }
  LaunchGeometry geometry;
  geometry.grid_x = query_heads * splits;
  geometry.grid_y = query_length / rows + (query_length % rows != 0 ? 1 : 0);
  if (spec.paired_tiles) geometry.grid_y -= geometry.grid_y / 2;
  geometry.grid_z = batch;
  if (spec.listed)
    geometry = {
        .grid_x = batch * (query_length / group), .grid_y = (group + rows - 1) / rows, .grid_z = geometry.grid_x};
  geometry.threads = static_cast<std::uint32_t>(spec.waves(targets::wave_shape(target).rows) * target.wave_size);
  geometry.dynamic_lds_bytes = 0;  // LDS is a static array: the descriptor in the code object says its size
  return geometry;
}

}  // namespace wavejit::attention_forward
