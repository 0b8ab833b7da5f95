// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/kernel/spec.h"

#include <algorithm>
#include <array>
#include <span>

#include "targets/wave_shape.h"
#include "templates/attention/kernel/canon.h"
#include "templates/attention/kernel/coverage.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"
#include "templates/attention_backward/kernel/words.h"

namespace wavejit::attention_backward {
namespace {

constexpr std::array<HeadDims, 4> head_dims = {{{64, 64}, {128, 128}, {192, 128}, {256, 256}}};

// Operands and a sum of 192 dims leave too few of 256 registers for scores and for what is on its way.
constexpr int most_dims_of_half_the_registers = 128;
bool has_room(const HeadDims& dims, const targets::Target& target) {
  return has_registers_of_accumulation(target) || dims.qk <= most_dims_of_half_the_registers;
}

std::optional<std::string> words_refusal(const KernelWords& words, std::string_view kernel) {
  if (auto refusal = attention::target_refusal(words.target, attention::Need::row_of_two, kernel)) return refusal;
  const targets::Target& target = *targets::find_target(words.target);
  const bool is_known = std::ranges::contains(head_dims, words.head_dims());
  if (!is_known || !has_room(words.head_dims(), target)) {
    std::string accepted;
    for (const HeadDims& dims : head_dims)
      if (has_room(dims, target)) accepted += (accepted.empty() ? "d" : ", d") + to_text(dims);
    return "d" + to_text(words.head_dims()) +
           (is_known ? " takes more than the " + std::to_string(target.vgprs_per_wave) + " registers of a wave of " +
                           words.target
                     : "") +
           "; accepted: " + accepted;
  }
  if (words.blocks < 1 || words.blocks > most_blocks)
    return "blocks=" + std::to_string(words.blocks) + "; accepted: 1, 2";
  if (words.blocks > 1 && !has_registers_of_accumulation(target))
    return "blocks=" + std::to_string(words.blocks) + ": waves of " + words.target + " have " +
           std::to_string(target.vgprs_per_wave) + " registers; accepted: 1";
  if (words.bias_fp32 && !words.has(Modifier::bias))
    return "bias_type=fp32 needs a bias; accepted: bias bias_type=fp32";
  return std::nullopt;
}

// Registers beside those that a wave keeps: scores, dP, P and dS of its blocks, 3.5 accumulators of 16 registers each.
constexpr int all_registers = 2 * vector_registers;
constexpr int registers_of_scores = 56;
template <typename Spec>
std::optional<std::string> blocks_refusal(const Spec& spec) {
  const int scores = spec.blocks * registers_of_scores;
  if (held_registers(spec) + scores <= all_registers) return std::nullopt;
  return "blocks=" + std::to_string(spec.blocks) + " of d" + to_text(spec.head_dims()) + " takes " +
         std::to_string(held_registers(spec)) + " registers for operands and sums and " + std::to_string(scores) +
         " for scores, of " + std::to_string(all_registers) + "; accepted: 1";
}

// In LDS of what is read by rows and by columns: two buffers, or two images.
constexpr int copies = 2;

// Two blocks halve what is read from LDS for each product, and take a whole SIMD's registers. Where LDS is as fast as
// two of the matrix instructions that take a fragment (32x32x8), one is enough; and of 64 dims, where two waves of one
// block fit on a SIMD and hide more of each other's vector work.
bool has_two_blocks(const KernelWords& words, const targets::Target& target) {
  return target.transpose_read && !words.has(Modifier::bias) && words.head_dim_qk > 64;
}

}  // namespace

std::span<const HeadDims> all_head_dims() { return head_dims; }

std::string to_text(const QueryKernel& spec) { return families::text_of_spec(spec_words<QueryKernel>, spec); }
std::string to_text(const KeyKernel& spec) { return families::text_of_spec(spec_words<KeyKernel>, spec); }
std::string to_text(const BiasKernel& spec) { return families::text_of_spec(spec_words<BiasKernel>, spec); }
std::string to_text(const SinkKernel& spec) { return families::text_of_spec(sink_words, spec); }
std::expected<QueryKernel, std::string> parse_query_kernel(std::string_view text) {
  return families::parse_words(spec_words<QueryKernel>, text);
}
std::expected<KeyKernel, std::string> parse_key_kernel(std::string_view text) {
  return families::parse_words(spec_words<KeyKernel>, text);
}
std::expected<BiasKernel, std::string> parse_bias_kernel(std::string_view text) {
  return families::parse_words(spec_words<BiasKernel>, text);
}
std::expected<SinkKernel, std::string> parse_sink_kernel(std::string_view text) {
  return families::parse_words(sink_words, text);
}

std::optional<std::string> refusal_of(const QueryKernel& spec) {
  if (auto refusal = words_refusal(spec, QueryKernel::kernel)) return refusal;
  if (auto refusal = blocks_refusal(spec)) return refusal;
  if (spec.head_dim_qk > 128 && spec.blocks > default_query_blocks(spec, *targets::find_target(spec.target)))
    return "blocks=" + std::to_string(spec.blocks) + " of d" + to_text(spec.head_dims()) + " with these words on " +
           spec.target + " takes more than " + std::to_string(all_registers) +
           " registers; accepted: 1, or on gfx950 no modifiers, gradients=fp32 and o=fp32";
  return std::nullopt;
}
std::optional<std::string> refusal_of(const KeyKernel& spec) {
  if (auto refusal = words_refusal(spec, KeyKernel::kernel)) return refusal;
  if (spec.shared) return sharing_refusal(spec);
  return blocks_refusal(spec);
}
std::optional<std::string> refusal_of(const BiasKernel& spec) {
  if (auto refusal = words_refusal(spec, BiasKernel::kernel)) return refusal;
  if (!spec.has(Modifier::bias)) return "dBias without a bias; accepted: bias";
  if (spec.blocks != 1) return "blocks=" + std::to_string(spec.blocks) + "; accepted: 1";
  return std::nullopt;
}
std::optional<std::string> refusal_of(const SinkKernel& spec) {
  return attention::target_refusal(spec.target, attention::Need::row_of_two, SinkKernel::kernel);
}
std::size_t argument_bytes(const QueryKernel&) { return sizeof(Arguments); }
std::size_t argument_bytes(const KeyKernel&) { return sizeof(Arguments); }
std::size_t argument_bytes(const SinkKernel&) { return sizeof(Arguments); }
std::size_t argument_bytes(const BiasKernel&) { return sizeof(Arguments); }

// And b and -delta of each row, a copy for each wave.
int row_stream_bytes(const KernelWords& words, const targets::Target& target, int rows) {
  const int buffers = target.transpose_read ? 2 : 1;
  return (copies * rows * (words.head_dim_qk + words.head_dim_v) * attention::bytes_of(words.dtype)) +
         (waves_of(target) * buffers * 2 * tile_rows * static_cast<int>(sizeof(float)));
}

// A lane brings the numbers of a row: no more rows than lanes.
int rows_at_once(const KernelWords& words, const targets::Target& target) {
  if (target.wave_size < tile_rows) return target.wave_size;
  return row_stream_bytes(words, target, tile_rows) <= target.lds_bytes_per_workgroup ? tile_rows : tile_rows / 2;
}

int rows_of_step(const KeyKernel& spec, const targets::Target& target) {
  return spec.shared && !target.transpose_read ? tile_rows / 2 : rows_at_once(spec, target);
}

std::span<const Sums> walks_of(const KernelWords& words, const targets::Target& target) {
  static constexpr std::array one = {Sums::both};
  static constexpr std::array two = {Sums::values, Sums::keys};
  // Operands and both sums of 128 dims are 192 of 256 registers.
  if (!has_registers_of_accumulation(target) && words.head_dim_qk > 64) return two;
  if (row_stream_bytes(words, target, tile_rows / 2) <= target.lds_bytes_per_workgroup) return one;
  return two;
}

// Two buffers of K and V, or K's two images beside V's one. Where registers are few, scores of half a tile.
int keys_at_once(const KernelWords& words, const targets::Target& target) {
  if (!has_registers_of_accumulation(target)) return attention::tile_keys / 2;
  const int dims = copies * words.head_dim_qk + (target.transpose_read ? copies : 1) * words.head_dim_v;
  const int bytes = attention::tile_keys * dims * attention::bytes_of(words.dtype);
  return bytes <= target.lds_bytes_per_workgroup ? attention::tile_keys : attention::tile_keys / 2;
}

namespace {
constexpr int most_shared_dims = 128;
}
bool may_share(const AskedWords& words) {
  return words.head_dim_qk <= most_shared_dims && !words.has(Modifier::softcap);
}

std::optional<std::string> sharing_refusal(const KeyKernel& spec) {
  if (const targets::Target* target = targets::find_target(spec.target);
      target != nullptr && !has_registers_of_accumulation(*target))
    return "keys=shared: waves of " + spec.target + " own " + std::to_string(targets::wave_shape(*target).rows) +
           " keys as they are; accepted: none";
  if (spec.head_dim_qk > most_shared_dims)
    return "keys=shared of d" + to_text(spec.head_dims()) + ": LDS has no room for it; accepted: d64, d128";
  if (spec.has(Modifier::softcap))
    return "keys=shared with softcap: its slopes stay with the wave that makes weights; accepted: none";
  if (spec.blocks != 1) return "keys=shared blocks=" + std::to_string(spec.blocks) + "; accepted: blocks=1";
  return std::nullopt;
}

// With 192 dims there is room for two blocks while nothing else takes registers.
int default_query_blocks(const KernelWords& words, const targets::Target& target) {
  const bool is_plain = !words.modifiers.any() && !words.gradients_fp32 && !words.output_fp32;
  const bool fit = words.head_dim_qk <= 128 || (words.head_dim_qk < 256 && is_plain);
  return has_two_blocks(words, target) && fit ? 2 : 1;
}
// With 128 dims two blocks take all 512 registers: what modifies scores does not fit beside them.
int default_key_blocks(const KernelWords& words, const targets::Target& target) {
  return has_two_blocks(words, target) && words.head_dim_qk <= 128 && !words.modifiers.any() ? 2 : 1;
}

// If waves have half the registers, a SIMD has two of each workgroup: 4, 3 or 2 workgroups.
namespace {
constexpr int many_waves = 8;
constexpr int some_waves = 6;
constexpr int few_waves = 5;
}  // namespace
bool takes_all_registers(const KernelWords& words, const targets::Target& target) {
  return !has_registers_of_accumulation(target) && words.head_dim_qk > 64 &&
         (words.modifiers.any() || words.gradients_fp32);
}
int waves_per_simd(const QueryKernel& spec, const targets::Target& target) {
  if (!has_registers_of_accumulation(target)) return spec.head_dim_qk <= 64 ? many_waves : some_waves;
  return spec.head_dim_qk <= 64 && spec.blocks == 1 && !spec.has(Modifier::bias) ? 2 : 1;
}
int waves_per_simd(const KeyKernel& spec, const targets::Target& target) {
  if (!has_registers_of_accumulation(target)) return takes_all_registers(spec, target) ? few_waves : some_waves;
  if (spec.shared) return 1;  // LDS has room for one workgroup
  return spec.head_dim_qk <= 64 && spec.blocks == 1 && !spec.has(Modifier::bias) ? 2 : 1;
}
// Its waves wait for memory most of the time: a second one works meanwhile.
int waves_per_simd(const BiasKernel& spec, const targets::Target& target) {
  if (!has_registers_of_accumulation(target)) return spec.head_dim_qk <= 64 ? some_waves : few_waves;
  return spec.head_dim_qk <= 128 ? 2 : 1;
}
int waves_per_simd(const SinkKernel& /*spec*/, const targets::Target& target) {
  return has_registers_of_accumulation(target) ? 2 : many_waves;
}

std::span<const families::KernelKind> own_kernel_kinds() {
  static constexpr std::array kinds = {
      families::kind_of<QueryKernel, parse_query_kernel>, families::kind_of<KeyKernel, parse_key_kernel>,
      families::kind_of<SinkKernel, parse_sink_kernel>, families::kind_of<BiasKernel, parse_bias_kernel>};
  return kinds;
}

}  // namespace wavejit::attention_backward
