// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/modifiers.h"

#include <cmath>
#include <format>
#include <numbers>
#include <string>

#include "families/call/refusal.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/call/limits.h"
#include "templates/attention/call/numbers.h"
#include "templates/attention/call/tensors.h"

namespace wavejit::attention {

namespace {

using families::Result;
using families::refusal::bad;
using families::refusal::refuse;

using Check = Result<void>;

constexpr std::int64_t bias_granule = 8;
constexpr std::uintptr_t bias_alignment = 16;

Check check_bias(const ModifierCall& call, const wavejit_tensor& t, float) {
  const Named bias = {"bias", &t};
  // f32 beside 16 bits, or the type of q.
  if (t.dtype != call.q.dtype && t.dtype != WAVEJIT_FP32) {
    return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "bias.dtype", families::refusal::dtype_text(t.dtype),
                      families::refusal::dtype_text(call.q.dtype) + ", the dtype of q, or " +
                          families::refusal::dtype_text(WAVEJIT_FP32)));
  }
  if (auto kind = check_kind(bias, t.dtype, bias_alignment); !kind) return kind;
  const bool packed = call.packed_queries;
  Check step = check_size(bias, 0, packed ? 1 : call.extents.sequences,
                          packed ? "packed queries" : call.extents.sequences_from, true);
  if (step) step = check_size(bias, 1, call.q.sizes[2], "q.sizes[2]", true);
  if (step) step = check_size(bias, 2, call.q.sizes[1], "q.sizes[1]", false);
  if (step)
    step = check_size(bias, 3, call.extents.key_length, call.packed_keys ? "max_key_length" : "k.sizes[1]", false);
  if (!step) return step;
  for (int d = 0; d < 3; ++d) {
    if (t.sizes[d] == 1) continue;
    if (t.strides[d] < 0 || t.strides[d] % bias_granule != 0 || t.strides[d] >= max_batch_stride)
      return refuse(wrong_stride(bias, d, "0, or positive multiples of 8 elements"));
  }
  if (t.sizes[2] > 1 && t.strides[2] != 0 && t.strides[2] < t.sizes[3])
    return refuse(wrong_stride(bias, 2, "0, or " + std::to_string(t.sizes[3]) + " (sizes[3]) and more"));
  if (t.sizes[3] > 1 && t.strides[3] != 1) return refuse(wrong_stride(bias, 3, "1"));
  return check_bias_slice(t.sizes[2], t.sizes[2] > 1 ? t.strides[2] : t.sizes[3] + bias_granule, element_bytes_of(t));
}

// fp32 [B or 1, Hq, 1, 1]; the heads of one batch stand side by side.
Check check_per_head(const Named& named, const ModifierCall& call, std::int64_t sequences, const char* sequences_from) {
  const wavejit_tensor& t = *named.tensor;
  Check step = check_kind(named, WAVEJIT_FP32, alignof(float));
  if (step) step = check_size(named, 0, sequences, sequences_from, true);
  if (step) step = check_size(named, 1, call.q.sizes[2], "q.sizes[2]", false);
  if (step) step = check_size(named, 2, 1, "always", false);
  if (step) step = check_size(named, 3, 1, "always", false);
  if (!step) return step;
  if (t.sizes[1] > 1 && t.strides[1] != 1) return refuse(wrong_stride(named, 1, "1"));
  if (t.sizes[0] > 1 && (t.strides[0] < t.sizes[1] || t.strides[0] >= std::int64_t{1} << 40))
    return refuse(wrong_stride(named, 0, std::to_string(t.sizes[1]) + " (sizes[1]) and more"));
  return {};
}

Check check_alibi(const ModifierCall& call, const wavejit_tensor& alibi, float) {
  return check_per_head({"alibi", &alibi}, call, call.extents.sequences, call.extents.sequences_from);
}

Check check_sink(const ModifierCall& call, const wavejit_tensor& sink, float) {
  return check_per_head({"sink", &sink}, call, 1, "always");
}

Check check_softcap(const ModifierCall& call, const wavejit_tensor&, float cap) {
  const float rate = 2 * std::abs(call.scale_log2e) / cap;
  if (cap > 0 && cap <= max_softcap && std::isfinite(rate)) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "softcap", std::format("{}", cap),
                    std::format("0 (none), or a positive number up to {} with scale / softcap finite in fp32; a larger "
                                "one is off by more than {:.1f} % of a weight, and scores far below it need none",
                                max_softcap, 100 * max_softcap * 0x1p-23)));
}

void set_softcap(const wavejit_tensor&, float cap, float scale_log2e, ScoreArguments& scores) {
  scores.softcap_log2e = cap * std::numbers::log2e_v<float>;
  scores.softcap_rate = 2 * std::abs(scale_log2e) / cap;
}

void set_bias(const wavejit_tensor& bias, float, float, ScoreArguments& scores) {
  const std::uint64_t bytes = element_bytes_of(bias);
  scores.bias = address(bias.data);
  scores.bias_batch_stride = stride_bytes(bias, 0, bytes);
  scores.bias_head_stride = stride_bytes(bias, 1, bytes);
  scores.bias_row_stride = static_cast<std::uint32_t>(static_cast<std::uint64_t>(bias_row_elements(bias)) * bytes);
}

void set_alibi(const wavejit_tensor& alibi, float, float, ScoreArguments& scores) {
  scores.alibi = address(alibi.data);
  scores.alibi_batch_stride = stride_bytes(alibi, 0, sizeof(float));
}

void set_nothing(const wavejit_tensor&, float, float, ScoreArguments&) {}

// Row i is that of the modifier with the number i.
struct Row {
  Modifier modifier;
  Check (*check)(const ModifierCall& call, const wavejit_tensor& tensor, float number);
  void (*set)(const wavejit_tensor& tensor, float number, float scale_log2e, ScoreArguments& scores);
};
constexpr std::array<Row, modifier_count> rows = {{{Modifier::softcap, check_softcap, set_softcap},
                                                   {Modifier::bias, check_bias, set_bias},
                                                   {Modifier::alibi, check_alibi, set_alibi},
                                                   {Modifier::sink, check_sink, set_nothing}}};
static_assert([] {
  for (std::size_t i = 0; i < modifier_count; ++i)
    if (rows[i].modifier != static_cast<Modifier>(i)) return false;
  return true;
}());

}  // namespace

Check check_modifier(Modifier modifier, const ModifierCall& call, const wavejit_tensor& tensor, float number) {
  return rows[static_cast<std::size_t>(modifier)].check(call, tensor, number);
}

void set_score_arguments(Modifier modifier, const wavejit_tensor& tensor, float number, float scale_log2e,
                         ScoreArguments& scores) {
  rows[static_cast<std::size_t>(modifier)].set(tensor, number, scale_log2e, scores);
}

Check check_bias_slice(std::int64_t rows_of_tensor, std::int64_t row_elements, std::uint64_t element_bytes) {
  // Checked by the row alone first: the product below stays inside 64 bits.
  const auto of_all = static_cast<std::uint64_t>(rows_of_tensor) + tile_overrun_rows;
  const auto stride = static_cast<std::uint64_t>(row_elements);
  if (stride < slice_limit_bytes && of_all * stride * element_bytes < slice_limit_bytes) return {};
  return refuse(bad(WAVEJIT_INVALID_ARGUMENT, "bias: bytes of one batch and head",
                    std::to_string(of_all) + " rows (" + std::to_string(tile_overrun_rows) +
                        " of tile overrun included) of " + std::to_string(stride) + " elements",
                    "less than 4294967296 (4 GiB)"));
}

std::int64_t padded_bias_row(std::int64_t keys) { return (keys + bias_granule - 1) / bias_granule * bias_granule; }

std::int64_t bias_row_elements(const wavejit_tensor& bias) {
  return bias.sizes[2] > 1 ? bias.strides[2] : padded_bias_row(bias.sizes[3]);
}

families::Result<void> check_modifiers(const wavejit_modifiers& modifiers, const ModifierCall& call,
                                       Modifiers& in_code) {
  for (const Modifier modifier : {Modifier::bias, Modifier::alibi, Modifier::sink, Modifier::softcap}) {
    const ModifierRow& row = row_of(modifier);
    if (!given(row, modifiers)) [[likely]]
      continue;
    if (auto good = check_modifier(modifier, call, tensor_of(row, modifiers), number_of(row, modifiers)); !good)
      return good;
    if (row.in_code) in_code.add(modifier);
  }
  return {};
}

void set_score_arguments(const wavejit_modifiers& modifiers, float scale_log2e, ScoreArguments& scores) {
  for (const ModifierRow& row : modifier_rows) {
    if (!given(row, modifiers)) [[likely]]
      continue;
    set_score_arguments(row.modifier, tensor_of(row, modifiers), number_of(row, modifiers), scale_log2e, scores);
  }
}

}  // namespace wavejit::attention
