// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/kernel/spec.h"

#include <array>
#include <span>

#include "templates/attention/kernel/cache_encoding.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention/kernel/lds_layout.h"
#include "templates/attention_latent/kernel/arguments.h"
#include "templates/attention_latent/kernel/words.h"

namespace wavejit::attention_latent {
std::string to_text(const WalkKernel& spec) { return families::text_of_spec(walk_words, spec); }
std::string to_text(const CombineKernel& spec) { return families::text_of_spec(combine_words, spec); }
std::expected<WalkKernel, std::string> parse_walk_kernel(std::string_view text) {
  return families::parse_words(walk_words, text);
}
std::expected<CombineKernel, std::string> parse_combine_kernel(std::string_view text) {
  return families::parse_words(combine_words, text);
}

std::string kernel_name(const WalkKernel& spec) { return families::name_of_kernel(walk_words, spec); }
std::string kernel_name(const CombineKernel& spec) { return families::name_of_kernel(combine_words, spec); }

bool stands_swizzled(const AskedWords& words, const targets::Target& target) {
  return words.has_row_scales() || attention::lds_layout(target) == attention::LdsLayout::swizzled;
}

ColumnOrder column_order(const AskedWords& words, const targets::Target& target) {
  return stands_swizzled(words, target) ? ColumnOrder::in_pairs : ColumnOrder::in_blocks;
}

Rows most_rows(const AskedWords& words, const targets::Target& target) {
  if (words.has_row_scales()) return Rows::r32;
  // Bytes on their way, and widened ones: beside them and what a soft cap or the place of each key takes, 6 registers
  // of 64 rows spill.
  if (words.widens() && stands_swizzled(words, target) &&
      (words.modifiers.any() || words.listed || words.layout().single_keys))
    return Rows::r32;
  return !stands_swizzled(words, target) && !words.modifiers.any() ? Rows::r128 : Rows::r64;
}

KeyRingPlan key_ring_plan(const AskedWords& words, const targets::Target& target) {
  using attention::LdsPlan;
  constexpr int score_bytes = wave_rows * wave_rows * static_cast<int>(sizeof(float));
  // Where two tiles and scores have room, a tile is made while the one before it is worked on.
  KeyRingPlan two = {.buffers = 2,
                     .line_bytes = LdsPlan::piece_bytes * LdsPlan::lines_per_piece,
                     .latent_bytes = attention::tile_keys * words.dims_v() * bytes_of(words.dtype),
                     .wave_score_bytes = score_bytes};
  if (words.has_row_scales() && two.total_bytes() <= target.lds_bytes_per_workgroup) return two;
  if (stands_swizzled(words, target))
    return {.buffers = 1, .latent_bytes = attention::tile_keys * words.dims_v() * bytes_of(words.dtype)};
  return {.buffers = words.widens() ? 4 : 2,
          .line_bytes = LdsPlan::piece_bytes * LdsPlan::lines_per_piece,
          .latent_bytes = attention::tile_keys * words.dims_v() * bytes_of(words.key_type()),
          .rope_bytes = attention::tile_keys * words.rope_dims() * bytes_of(words.key_type()),
          .wave_score_bytes = waves_of_rows(words) > 1 ? score_bytes : 0,
          .query_latent_bytes = attention::tile_keys * words.dims_v() * bytes_of(words.dtype)};
}

std::optional<std::string> refusal_of(const WalkKernel& spec) {
  if (auto refusal = attention::target_refusal(spec.target, attention::Need::square_of_32, WalkKernel::kernel))
    return refusal;
  const targets::Target& target = *targets::find_target(spec.target);
  if (spec.widens() && !attention::reads(target, spec.key_type())) return attention::other_encoding(spec.cache, target);
  if (spec.has_row_scales()) {
    const std::string rows = "row_scales=" + std::string(families::name_in(row_scales_names, spec.row_scales)) + " of ";
    if (spec.cache != CacheType::e4m3 && spec.cache != CacheType::e4m3_fnuz)
      return rows + std::string(attention::to_text(spec.key_type())) + "; accepted: cache=e4m3, cache=e4m3_fnuz";
    if (spec.dims != dims_of(spec.row_scales) || spec.dtype != DataType::bf16)
      return rows + std::string(attention::to_text(spec.dtype)) + " d" +
             std::string(families::name_in(dims_names, spec.dims)) + "; accepted: bf16 d" +
             std::string(families::name_in(dims_names, dims_of(spec.row_scales))) + ", whose rope is in bf16";
  }
  if (spec.has_row_scales() && spec.rows > most_rows(spec, target))
    return "rows=" + std::string(families::name_in(rows_names, spec.rows)) +
           " with row_scales need more registers than there are; accepted: rows=32";
  if (spec.rows != Rows::r32 && most_rows(spec, target) == Rows::r32)
    return "rows=" + std::string(families::name_in(rows_names, spec.rows)) +
           " of cache=" + std::string(attention::to_text(spec.key_type())) + " on target=" + spec.target +
           ", where registers have no room for them beside softcap, pages=keys or listed keys; accepted: rows=32";
  if (spec.rows > most_rows(spec, target))
    return "rows=128 of target=" + spec.target + (spec.modifiers.any() ? " with softcap" : "") +
           ", for which it has not enough registers; accepted: rows=32, rows=64";
  if (spec.pages == Pages::tiles && !spec.parts)
    return "pages=tiles needs parts (split keys); accepted: pages=granules, or add parts";
  if (spec.merged && !spec.parts) return "merged without parts; accepted: both, or neither";
  if (spec.slots && !spec.listed) return "slots without listed; accepted: both, or neither";
  if (spec.listed && spec.mask != Mask::none)
    return "mask=causal of listed keys; accepted: mask=none, since the diagonal is an argument there";
  if (spec.listed && spec.pages == Pages::tiles)
    return "pages=tiles of listed keys; accepted: pages=granules, since each key is looked up";
  if (const int bytes = key_ring_plan(spec, target).total_bytes(); bytes > target.lds_bytes_per_workgroup)
    return "tiles of keys take " + std::to_string(bytes) + " bytes of LDS; target=" + spec.target + " has " +
           std::to_string(target.lds_bytes_per_workgroup);
  return std::nullopt;
}
std::optional<std::string> refusal_of(const CombineKernel& spec) {
  if (auto refusal = attention::target_refusal(spec.target, attention::Need::waves_of_64, CombineKernel::kernel))
    return refusal;
  if (spec.head_dim != 512 && spec.head_dim != 256)
    return "head dim " + std::to_string(spec.head_dim) + " has no kernel; accepted: 256, 512";
  return std::nullopt;
}

std::size_t argument_bytes(const WalkKernel& spec) {
  return argument_bytes_of(spec.listed, spec.widens(), spec.merged);
}
std::size_t argument_bytes(const CombineKernel& spec) { return argument_bytes_of(spec.listed, spec.scaled); }

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {families::kind_of<WalkKernel, parse_walk_kernel>,
                                       families::kind_of<CombineKernel, parse_combine_kernel>};
  return kinds;
}

}  // namespace wavejit::attention_latent
