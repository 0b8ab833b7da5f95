// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the compiled kernels of attention_backward are, and their texts (the cache keys):
//
//   attention_backward_dq bf16 d128 mask=causal softcap blocks=2 target=gfx950 lowering=llvm
//   attention_backward_dkdv bf16 d128 mask=causal softcap blocks=2 runs=one target=gfx950 lowering=llvm
//   attention_backward_dkdv bf16 d128 mask=causal blocks=1 keys=shared runs=one target=gfx950 lowering=llvm
//   attention_backward_dsink target=gfx950 lowering=llvm
//
// Lengths, strides, addresses and the group of heads are arguments of a launch. No LLVM in this header.
#pragma once

#include <cstddef>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "families/kernel/kernel_spec.h"
#include "families/kernel/names.h"
#include "targets/targets.h"
#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention_backward {

using attention::DataType;
using attention::HeadDims;
using attention::Mask;
using attention::Modifier;
using attention::Modifiers;
using families::Lowering;
using families::to_text;

inline constexpr std::string_view family_name = "attention_backward";
inline constexpr families::Names<Mask, 3> masks = {
    {{Mask::none, "none"}, {Mask::causal, "causal"}, {Mask::window, "window"}}};

// Head dims that kernels have.
std::span<const HeadDims> all_head_dims();

// How many runs of rows (canon.h) a workgroup of the dK/dV kernel adds up: their sum is in the workspace meanwhile.
enum class Runs : std::uint8_t { one, several };
inline constexpr families::Names<Runs, 2> runs_names = {{{Runs::one, "one"}, {Runs::several, "several"}}};

// What a problem asks for. A call's shape (call/problem.h) is made of the same.
struct AskedWords {
  DataType dtype = DataType::bf16;  // of q, k, v, o and dO
  int head_dim_qk = 128;
  int head_dim_v = 128;
  Mask mask = Mask::none;
  Modifiers modifiers = {};  // NOLINT(readability-redundant-member-init): for initializers
  bool gradients_fp32 = false;
  bool bias_fp32 = false;    // the bias is f32, not of `dtype`
  bool output_fp32 = false;  // o is f32, not of `dtype`: a word of the dQ kernel alone

  bool has(Modifier one) const { return modifiers.has(one); }
  DataType bias_type() const { return bias_fp32 ? DataType::fp32 : dtype; }
  HeadDims head_dims() const { return {.qk = head_dim_qk, .v = head_dim_v}; }
  bool operator==(const AskedWords&) const = default;
};

// The words of both.
struct KernelWords : AskedWords {
  int blocks = 1;  // of rows (dQ kernel) or keys that a wave owns: 32, or 16 where waves have 32 lanes
  std::string target;
  Lowering lowering = Lowering::llvm;

  bool operator==(const KernelWords&) const = default;
};

struct QueryKernel : KernelWords {
  static constexpr std::string_view kernel = "attention_backward_dq";
  static constexpr std::string_view family = family_name;
  bool operator==(const QueryKernel&) const = default;
};

struct KeyKernel : KernelWords {
  static constexpr std::string_view kernel = "attention_backward_dkdv";
  static constexpr std::string_view family = family_name;
  Runs runs = Runs::one;
  // Two waves own a block of keys: one makes weights and sums dV, the other takes them and sums dK. Else one has both.
  bool shared = false;
  bool operator==(const KeyKernel&) const = default;
};

// Gradients of a bias, in f32 with the word of the others: `blocks` is 1.
struct BiasKernel : KernelWords {
  static constexpr std::string_view kernel = "attention_backward_dbias";
  static constexpr std::string_view family = family_name;
  bool operator==(const BiasKernel&) const = default;
};

// Gradients of sinks, from LSE and delta: nothing of a problem changes its code.
struct SinkKernel {
  static constexpr std::string_view kernel = "attention_backward_dsink";
  static constexpr std::string_view family = family_name;
  std::string target;
  Lowering lowering = Lowering::llvm;
  bool operator==(const SinkKernel&) const = default;
};

std::string to_text(const QueryKernel& spec);
std::string to_text(const KeyKernel& spec);
std::string to_text(const SinkKernel& spec);
std::string to_text(const BiasKernel& spec);
std::expected<QueryKernel, std::string> parse_query_kernel(std::string_view text);
std::expected<KeyKernel, std::string> parse_key_kernel(std::string_view text);
std::expected<SinkKernel, std::string> parse_sink_kernel(std::string_view text);
std::expected<BiasKernel, std::string> parse_bias_kernel(std::string_view text);
std::optional<std::string> refusal_of(const QueryKernel& spec);
std::optional<std::string> refusal_of(const KeyKernel& spec);
std::optional<std::string> refusal_of(const SinkKernel& spec);
std::optional<std::string> refusal_of(const BiasKernel& spec);
std::size_t argument_bytes(const QueryKernel& spec);
std::size_t argument_bytes(const KeyKernel& spec);
std::size_t argument_bytes(const SinkKernel& spec);
std::size_t argument_bytes(const BiasKernel& spec);

// ---- What a workgroup is

inline constexpr int threads = 256;
// Four waves of 32 rows or keys, or eight of 16: two lanes have each.
inline constexpr int rows_of_workgroup = threads / 2;
constexpr int waves_of(const targets::Target& target) { return threads / target.wave_size; }
inline constexpr int most_blocks = 2;
inline int tile_queries_of(const QueryKernel& spec) { return rows_of_workgroup * spec.blocks; }
inline int tile_queries_of(const BiasKernel& spec) { return rows_of_workgroup * spec.blocks; }
// Waves that own the same keys.
inline constexpr int sharing_waves = 2;
constexpr int waves_of_block(const KeyKernel& spec) { return spec.shared ? sharing_waves : 1; }
constexpr int tile_keys_of(const KeyKernel& spec) { return rows_of_workgroup * spec.blocks / waves_of_block(spec); }
inline constexpr int most_tile_keys = rows_of_workgroup * most_blocks;

// Whether scores have terms of fp32 from outside: their NaNs may have any payload.
inline bool has_fp32_terms(const AskedWords& words) { return words.has(Modifier::alibi) || words.bias_fp32; }

// What kernels have unless somebody says otherwise.
int default_query_blocks(const KernelWords& words, const targets::Target& target);
int default_key_blocks(const KernelWords& words, const targets::Target& target);

// Whether two waves may share the keys of these words, on targets that have such kernels; and why they do not; nothing:
// they may.
bool may_share(const AskedWords& words);
std::optional<std::string> sharing_refusal(const KeyKernel& spec);

// What LDS has room for. Rows that the dK/dV kernel has there at once: all of a row tile, or half of it. Keys of the dQ
// kernel: all of a tile, or half of it.
int rows_at_once(const KernelWords& words, const targets::Target& target);
int keys_at_once(const KernelWords& words, const targets::Target& target);
// Half of a row tile, too, where waves share keys and rows have an image beside that of columns.
int rows_of_step(const KeyKernel& spec, const targets::Target& target);
// Bytes of LDS that the dK/dV kernel takes with `rows` rows in LDS at once.
int row_stream_bytes(const KernelWords& words, const targets::Target& target, int rows);
// Which sums of the dK/dV kernel a walk over the rows makes: those of both, or first those of dV and then, in another
// walk that computes scores once more, those of dK.
enum class Sums : std::uint8_t { both, values, keys };
constexpr bool makes_values(Sums sums) { return sums != Sums::keys; }
constexpr bool makes_keys(Sums sums) { return sums != Sums::values; }
std::span<const Sums> walks_of(const KernelWords& words, const targets::Target& target);

// A wave has as many for vectors, and, where the target has them, as many for accumulation.
inline constexpr int vector_registers = 256;
constexpr bool has_registers_of_accumulation(const targets::Target& target) {
  return target.vgprs_per_wave > vector_registers;
}
// Registers of what a wave holds throughout: operands and sums of `blocks` blocks.
constexpr int held_registers(const QueryKernel& spec) {
  return spec.blocks * ((spec.head_dim_qk + spec.head_dim_v) / 4 + (spec.head_dim_qk / 2));
}
constexpr int held_registers(const KeyKernel& spec) {
  return spec.blocks * 3 * (spec.head_dim_qk + spec.head_dim_v) / 4;
}
// Whether half the registers are all taken: modified scores of 128 dims, or their sums in f32, leave none.
bool takes_all_registers(const KernelWords& words, const targets::Target& target);
int waves_per_simd(const QueryKernel& spec, const targets::Target& target);
int waves_per_simd(const KeyKernel& spec, const targets::Target& target);
int waves_per_simd(const SinkKernel& spec, const targets::Target& target);
int waves_per_simd(const BiasKernel& spec, const targets::Target& target);
// The most that a wave may have, if as many have room.
constexpr int registers_of(const targets::Target& target, int waves_per_simd) {
  const int each = target.vgprs_per_simd_lane / waves_per_simd / target.vgprs_handed_out * target.vgprs_handed_out;
  return each < target.vgprs_per_wave ? each : target.vgprs_per_wave;
}

}  // namespace wavejit::attention_backward
