// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/room.h"

#include <algorithm>
#include <functional>
#include <ranges>
#include <tuple>

#include "templates/attention_forward/kernel/lds_plan.h"

namespace wavejit::attention_forward {
namespace {

constexpr RoomLine lines[] = {
#include "templates/attention_forward/kernel/room.inc"
};
static_assert(std::ranges::is_sorted(lines, {}, &RoomLine::line));

bool has_lines(std::string_view target) {
  const auto* const found = std::ranges::lower_bound(lines, target, {}, &RoomLine::line);
  return found != std::end(lines) && found->line.starts_with(target) && found->line[target.size()] == ' ';
}

// Targets of the same registers, LDS and products share lines: gfx1200 has gfx1201's, and gfx90a, which only compiles,
// has gfx942's.
std::string_view measured_as(const targets::Target& target) {
  const auto shape = [](const targets::MatrixInstruction& product) {
    return std::tuple(product.m, product.n, product.k, product.element);
  };
  const auto is_like = [&](const targets::Target& other) {
    return std::ranges::equal(other.matrix, target.matrix, {}, shape, shape) && other.wave_size == target.wave_size &&
           other.vgprs_per_wave == target.vgprs_per_wave && other.vgprs_per_simd_lane == target.vgprs_per_simd_lane &&
           other.vgprs_handed_out == target.vgprs_handed_out && other.lds_bytes == target.lds_bytes &&
           other.lds_bytes_per_workgroup == target.lds_bytes_per_workgroup && has_lines(other.id);
  };
  const auto found = std::ranges::find_if(targets::all_targets(), is_like);
  return found == targets::all_targets().end() ? target.id : found->id;
}

std::string walk_of(const ForwardKernel& spec) {
  return std::string(to_text(spec.pipeline)) + std::to_string(spec.tile_queries);
}

std::string_view dims_of(const ForwardKernel& spec) {
  const bool padded = is_padded({spec.head_dim_qk, spec.head_dim_v});
  const auto up_to = [&](int qk, int v) { return spec.head_dim_qk <= qk && spec.head_dim_v <= v; };
  if (up_to(64, 64)) return padded ? "d<64" : "d64";
  if (up_to(128, 128)) return padded ? "d<128" : "d128";
  if (up_to(192, 128)) return padded ? "d<192/128" : "d192/128";
  return padded ? "d<256" : "d256";
}

// Q in f32 is told apart where it was seen to matter: where a wave has 256 registers.
std::string numbers_of(const ForwardKernel& spec, const targets::Target& target) {
  std::string kind = spec.narrow_queries                   ? "queries8"
                     : spec.integers                       ? "qk8"
                     : spec.cache != CacheType::as_queries ? "cache8"
                                                           : "16bits";
  if (spec.token_scales) kind += "+tokens";
  if (spec.query_fp32 && target.vgprs_per_wave <= 256) kind += "+q32";
  return kind;
}

std::string keys_of(const ForwardKernel& spec) {
  if (spec.bias_by_tile) return "bias_by_tile";
  if (spec.trans_k || spec.trans_v) return "scattered";
  if (spec.trans_any()) return "scattered_rows";
  const std::string pages = spec.single_keys ? "singles" : spec.whole_tiles ? "tiles" : spec.paged ? "pages" : "dense";
  if (spec.listed) return "listed+" + pages;
  if (spec.vectorised) return "vectorised";
  std::string kind = pages;
  if (spec.first_keys && spec.paged && !spec.block_lists) kind += "+first";
  if (spec.block_lists) kind += "+blocks";
  if (spec.bool_mask) kind += "+mask";
  return kind;
}

}  // namespace

std::string room_line(const ForwardKernel& spec, const targets::Target& target) {
  std::string line(measured_as(target));
  for (const std::string& word : {walk_of(spec), std::string(dims_of(spec)), numbers_of(spec, target), keys_of(spec)})
    line += ' ' + word;
  return line;
}

RoomCell room_cell(const ForwardKernel& spec) {
  const bool bias = spec.has(Modifier::bias);
  const bool softcap = spec.has(Modifier::softcap);
  const bool alibi = spec.has(Modifier::alibi);
  return {.end = spec.split_keys == 0 ? RowEnd::whole
                 : spec.merged        ? RowEnd::merged
                                      : RowEnd::split,
          .scores = spec.bias_fp32               ? ScoreKind::wide
                    : bias && (softcap || alibi) ? ScoreKind::all
                    : bias                       ? ScoreKind::bias
                    : softcap && alibi           ? ScoreKind::softcap_alibi
                    : softcap                    ? ScoreKind::softcap
                    : alibi                      ? ScoreKind::alibi
                                                 : ScoreKind::plain,
          .limits = spec.causal_flags           ? LimitKind::flags
                    : spec.mask == Mask::window ? LimitKind::window
                    : has_kind(spec.mask)       ? LimitKind::chunked
                    : spec.mask == Mask::none   ? LimitKind::none
                                                : LimitKind::diagonal};
}

char digit_of_waves(int waves) {
  constexpr std::string_view digits = "-123456789abcdef";
  return digits[static_cast<std::size_t>(waves)];
}

char cell_of(const RoomLine& line, const RoomCell& cell) {
  const std::string_view text = line.ends[static_cast<std::size_t>(cell.end)];
  // A space behind each group.
  return text.size() == 1 ? text.front() : text[cell.place() + static_cast<std::size_t>(cell.scores)];
}

std::span<const RoomLine> room_table() { return lines; }

const RoomLine* find_room(std::string_view line) {
  const auto* const found = std::ranges::lower_bound(lines, line, {}, &RoomLine::line);
  return found == std::end(lines) || found->line != line ? nullptr : found;
}

std::string_view room_llvm_version() { return find_room("LLVM")->ends.front(); }

std::optional<int> measured_waves(const ForwardKernel& spec, const targets::Target& target) {
  if (spec.chunk_waves != 0) return std::nullopt;  // rules.cpp says which there are
  const RoomLine* const line = find_room(room_line(spec, target));
  if (line == nullptr) return std::nullopt;
  const char cell = cell_of(*line, room_cell(spec));
  if (cell == unmeasured) return std::nullopt;
  return cell == spills ? 0 : cell <= '9' ? cell - '0' : cell - 'a' + 10;
}

namespace {

// Registers of a wave if a SIMD has `waves`: as they are handed out.
int budget_of(const targets::Target& target, int waves) {
  const int each = target.vgprs_per_simd_lane / waves / target.vgprs_handed_out * target.vgprs_handed_out;
  return std::min(each, target.vgprs_per_wave);
}

// A SIMD that LDS leaves to one wave gives it all registers if something fills them: O, what waves exchange, or a tile
// that a wave or two hold. Elsewhere those beyond 256 would be for copies.
bool fills_all_registers(const ForwardKernel& spec, const LdsPlan& plan) {
  if (spec.chunk_waves != 0 || spec.head_dim_v > 128) return true;
  return plan.layout == LdsLayout::swizzled && spec.tile_queries < 128 &&
         (spec.head_dim_qk > 64 || spec.key_layout().looks_up_each_key());
}

// Small workgroups that walk lists of dense keys merge in registers if they have all, else in memory
// (merged_rows_plan.h), which is slower.
bool had_better_have_all_registers(const ForwardKernel& spec) {
  return spec.tile_queries < 128 && (spec.block_lists || spec.bool_mask) && !spec.paged && spec.head_dim_v > 64;
}

}  // namespace

std::vector<int> vgpr_budgets(const ForwardKernel& spec, const targets::Target& target) {
  const LdsPlan plan = lds_plan(spec, target);
  // No kernel of this family needs less. Where waves of 32 lanes share swizzled tiles, ten waves a SIMD take 1 % more
  // predicted cycles than eight, which have 192 registers.
  const int least = target.paired_compute_units && plan.layout == LdsLayout::swizzled ? 192 : 128;
  // Compute units in pairs share LDS and SIMDs.
  const int units = target.paired_compute_units ? 2 : 1;
  const int simds = target.simds_per_compute_unit * units;
  const int waves_of_workgroup = spec.waves(targets::wave_shape(target).rows);
  constexpr int half = 256;
  const bool fills = fills_all_registers(spec, plan);
  std::vector<int> budgets;
  for (int workgroups = target.lds_bytes * units / plan.total_bytes(); workgroups > 0; --workgroups) {
    const int waves = (workgroups * waves_of_workgroup + simds - 1) / simds;
    const int budget = budget_of(target, waves);
    if (budget < least || (!budgets.empty() && budget == budgets.back())) continue;
    if (budgets.empty() && budget > half && !fills) budgets.push_back(half);
    budgets.push_back(budget);
  }
  if (had_better_have_all_registers(spec)) std::ranges::reverse(budgets);
  return budgets;
}

int measured_budget(const ForwardKernel& spec, const targets::Target& target) {
  const int waves = measured_waves(spec, target).value_or(1);
  const std::vector<int> budgets = vgpr_budgets(spec, target);
  const auto first = [&](auto compare) {
    return std::ranges::find_if(budgets,
                                [&](int budget) { return compare(targets::waves_with(target, budget), waves); });
  };
  if (const auto same = first(std::equal_to()); same != budgets.end()) return *same;
  // Smaller head dims than the measured ones leave LDS for more waves.
  const auto enough = first(std::less());
  return enough == budgets.end() ? budgets.back() : *enough;
}

}  // namespace wavejit::attention_forward
