// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/call/problem.h"

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>

#include "families/call/call_head.h"
#include "families/call/refusal.h"
#include "templates/attention/call/flags.h"
#include "templates/attention/call/mask.h"
#include "templates/attention/call/modifiers.h"
#include "templates/attention/call/tensors.h"
#include "templates/attention/call/workspace.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {
namespace {

using families::refusal::refused;
using Call = wavejit_attention_backward_arguments;

Result<void> check_flags(const Call& call) {
  constexpr std::uint32_t known = WAVEJIT_SCALE_IS_ZERO | WAVEJIT_NO_COMPILE | WAVEJIT_COMPILE_BEHIND;
  if (auto flags = attention::check_flags(call.head.flags, known, call.modifiers.scale); !flags) return flags;
  return {};
}

// Sums are f32, and stay it.
Result<void> check_sums(const Call& call) {
  constexpr std::uint32_t known = WAVEJIT_SUMS_OF_DQ | WAVEJIT_SUMS_OF_DK_DV;
  for (const auto& [name, bits] : {std::pair{"sums_before", call.sums_before}, {"sums_behind", call.sums_behind}}) {
    if ((bits & ~known) != 0)
      return refused(name, std::to_string(bits), "1 (of dq), 2 (of dk and dv), 3 (of both), 0 (none)");
    if (bits != 0 && call.dq.dtype != WAVEJIT_FP32)
      return refused(name, std::to_string(bits), "0 unless dq, dk and dv are fp32");
  }
  return {};
}

Result<void> check_mask(const Call& call, BackwardProblem& problem) {
  const Result<attention::MaskChoice> choice = attention::check_mask(call.mask, problem.key_length);
  if (!choice) return std::unexpected(choice.error());
  const attention::MaskChoice window = attention::as_window(*choice);
  problem.shape.mask = choice->mask;
  problem.seen = {.bottom_right = (call.mask.bits & WAVEJIT_MASK_PREFIX) == 0,
                  .causal_prefix = static_cast<std::int32_t>(call.mask.causal_prefix),
                  .window_left = window.left,
                  .window_right = window.right};
  return {};
}

Result<void> check_modifiers(const Call& call, const attention::Extents& extents, BackwardProblem& problem) {
  const attention::ModifierCall given_call = {.q = call.q,
                                              .extents = extents,
                                              .packed_queries = call.sequences.query_starts != nullptr,
                                              .packed_keys = call.sequences.key_starts != nullptr,
                                              .scale_log2e = problem.scale_log2e};
  return attention::check_modifiers(call.modifiers, given_call, problem.shape.modifiers);
}

Result<BackwardProblem> check_all(const Call& call) {
  if (auto tensors = check_tensors(call); !tensors) return std::unexpected(std::move(tensors.error()));
  attention::Extents extents;
  if (auto sequences = attention::check_sequences(call.q, call.k, call.sequences, attention::no_pages, extents);
      !sequences)
    return std::unexpected(std::move(sequences.error()));
  if (auto sizes = check_tensor_sizes(call, extents); !sizes) return std::unexpected(std::move(sizes.error()));
  if (auto dims = attention::check_head_dims(call.q, call.v); !dims) return std::unexpected(std::move(dims.error()));
  const auto usual_scale = static_cast<float>(1 / std::sqrt(static_cast<double>(call.q.sizes[3])));
  const Result<float> scale_log2e = attention::check_scale(call.modifiers.scale, call.head.flags, usual_scale);
  if (!scale_log2e) return std::unexpected(scale_log2e.error());
  BackwardProblem problem = {
      .shape = {{{.dtype = call.q.dtype == WAVEJIT_BF16 ? DataType::bf16 : DataType::fp16,
                  .head_dim_qk = static_cast<int>(call.q.sizes[3]),
                  .head_dim_v = static_cast<int>(call.v.sizes[3]),
                  .gradients_fp32 = call.dq.dtype == WAVEJIT_FP32,
                  .bias_fp32 = call.modifiers.bias.data != nullptr && call.modifiers.bias.dtype == WAVEJIT_FP32,
                  .output_fp32 = call.delta.data == nullptr && call.o.dtype == WAVEJIT_FP32},
                 runs_of(extents.query_length, call.q.sizes[2] / call.k.sizes[2])}},
      .batch = static_cast<std::uint32_t>(extents.sequences),
      .query_length = static_cast<std::uint32_t>(extents.query_length),
      .key_length = static_cast<std::uint32_t>(extents.key_length),
      .query_heads = static_cast<std::uint32_t>(call.q.sizes[2]),
      .kv_heads = static_cast<std::uint32_t>(call.k.sizes[2]),
      .scale = attention::meant_scale(call.modifiers.scale, call.head.flags, usual_scale),
      .scale_log2e = *scale_log2e,
      .delta_bytes = static_cast<std::uint64_t>(call.q.sizes[0]) * static_cast<std::uint64_t>(call.q.sizes[1]) *
                     static_cast<std::uint64_t>(call.q.sizes[2]) * sizeof(float),
  };
  if (problem.shape.runs == Runs::several)
    problem.parts_bytes = parts_bytes_of_head(problem) * problem.kv_heads * problem.batch;
  Result<void> step = check_flags(call);
  if (step) step = check_sums(call);
  if (step) step = check_mask(call, problem);
  if (step) step = check_modifiers(call, extents, problem);
  if (step) step = check_d_bias(call, extents);
  if (step) step = attention::check_split(call.split);
  if (!step) return std::unexpected(std::move(step.error()));
  BackwardShape& shape = problem.shape;
  shape.d_sink = call.d_sink.data != nullptr;
  shape.d_bias = call.d_bias.data != nullptr;
  shape.d_bias_fp32 = shape.d_bias && call.d_bias.dtype == WAVEJIT_FP32;
  shape.many_queries = are_many(problem.batch, problem.query_heads, problem.query_length, shape.mask);
  shape.many_keys = are_many(problem.batch, problem.kv_heads, problem.key_length, shape.mask);
  shape.few_keys = may_share(shape) && are_few(problem.batch, problem.kv_heads, problem.key_length);
  return problem;
}

}  // namespace

std::uint64_t parts_bytes_of_head(const BackwardProblem& problem) {
  constexpr std::uint64_t tile = most_tile_keys;
  const std::uint64_t keys = (problem.key_length + tile - 1) / tile * tile;
  const int dims = problem.shape.head_dim_qk + problem.shape.head_dim_v;
  return keys * static_cast<std::uint64_t>(dims) * sizeof(float);
}

namespace {
// A device has as many compute units and more.
constexpr std::int64_t units = 256;
std::int64_t workgroups(std::int64_t sequences, std::int64_t heads, std::int64_t length, std::int64_t blocks) {
  const std::int64_t tile = rows_of_workgroup * blocks;
  return sequences * heads * ((length + tile - 1) / tile);
}
}  // namespace

// With a mask half of the work is in a quarter of the tiles, and it takes twice as many to even out.
bool are_many(std::int64_t sequences, std::int64_t heads, std::int64_t length, Mask mask) {
  return workgroups(sequences, heads, length, most_blocks) >= (mask == Mask::none ? units : 2 * units);
}

bool are_few(std::int64_t sequences, std::int64_t heads, std::int64_t length) {
  return workgroups(sequences, heads, length, 1) <= units / 2;
}

Runs runs_of(std::int64_t query_length, std::int64_t group) {
  const std::int64_t rows = std::int64_t{run_tiles_of(static_cast<std::uint32_t>(group))} * tile_rows;
  return query_length <= rows ? Runs::one : Runs::several;
}

namespace {

// What the parts have and this family has not.
constexpr auto absent_fields = attention::without_mask_kinds<wavejit_attention_backward_arguments>(std::array{
    families::AbsentField{"causal_flags", offsetof(wavejit_attention_backward_arguments, mask.causal_flags), 8},
    families::AbsentField{"score_rounding", offsetof(wavejit_attention_backward_arguments, modifiers.score_rounding),
                          8},
    families::AbsentField{"bool_mask.data", offsetof(wavejit_attention_backward_arguments, modifiers.bool_mask), 8},
    families::AbsentField{"first_keys", offsetof(wavejit_attention_backward_arguments, sequences.first_keys), 8},
    families::AbsentField{"max_total_keys", offsetof(wavejit_attention_backward_arguments, sequences.max_total_keys),
                          8},
    families::AbsentField{"splits", offsetof(wavejit_attention_backward_arguments, split.splits), 8},
});

}  // namespace

Result<BackwardProblem> check(const Call* arguments) {
  if (auto head = families::check_head(arguments, WAVEJIT_ATTENTION_BACKWARD, "attention_backward", absent_fields);
      !head)
    return std::unexpected(std::move(head.error()));
  return check_all(*arguments);
}

}  // namespace wavejit::attention_backward
