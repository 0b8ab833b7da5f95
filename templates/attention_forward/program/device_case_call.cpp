// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call of a case, whole and of a view, and the small arrays that it reads.
#include <algorithm>
#include <limits>
#include <utility>

#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/program/block_lists.h"
#include "templates/attention/program/cache_bytes.h"
#include "templates/attention/program/described_call.h"
#include "templates/attention/program/key_lists.h"
#include "templates/attention/program/row_layout.h"
#include "templates/attention/program/tensor_parts.h"
#include "templates/attention_forward/program/device_case.h"
#include "tools/stored_numbers.h"

namespace wavejit::attention_forward::program {

namespace {

// A byte for each row and key of a bool mask.
std::vector<std::uint8_t> shown_keys_of(const Experiment& problem, const BiasPlacement& mask) {
  std::vector<std::uint8_t> shown(static_cast<std::size_t>(mask.elements()), 1);
  on_all_cores(static_cast<std::size_t>(mask.batches * mask.heads * mask.rows), [&](std::size_t row) {
    const auto number = static_cast<std::int64_t>(row);
    for (std::int64_t key = 0; key < mask.columns; ++key)
      shown[static_cast<std::size_t>((number * mask.row_stride) + key)] =
          is_shown(problem, number, key) ? static_cast<std::uint8_t>(1 + (key % 255)) : std::uint8_t{0};
  });
  return shown;
}

std::int32_t key_type(const Experiment& problem) {
  return problem.has_bytes() ? problem.cache_dtype : tools::type_of(problem.type);
}

}  // namespace

// Strides within a page are those of its order, which a placement does not have.
wavejit_tensor DeviceCase::described_keys(const DeviceTensor& tensor, std::int32_t dtype, bool of_values) const {
  wavejit_tensor made = tensor.described(dtype);
  if (problem_.page_layout == WAVEJIT_PAGES_OF_ROWS) return made;
  const RowLayout::Order order = order_of_pages(problem_.page_layout, problem_.page_heads_first, of_values);
  std::ranges::copy(RowLayout(order, std::to_array(made.sizes)).strides(), made.strides);
  return made;
}

void DeviceCase::describe_tensors() {
  const std::int32_t dtype = tools::type_of(problem_.type);
  call_.q = q_.described(problem_.byte_queries ? WAVEJIT_E4M3
                         : problem_.integers   ? WAVEJIT_INT8
                         : problem_.query_fp32 ? WAVEJIT_FP32
                                               : dtype);
  call_.k = described_keys(k_, problem_.integers ? std::int32_t{WAVEJIT_INT8} : key_type(problem_), false);
  call_.v = described_keys(v_, key_type(problem_), true);
  call_.o = o_.described(problem_.output_fp32 ? std::int32_t{WAVEJIT_FP32} : dtype);
  if (problem_.lse) {
    const Placement& p = lse_.placement;
    call_.lse = wavejit_dense_tensor(lse_.memory.data(), WAVEJIT_FP32, p.batch, p.heads, p.length, 1);
  }
}

void DeviceCase::describe_sequences() {
  const SequenceArrays arrays = sequence_arrays_of(problem_);
  const SequencePointers pointers = {.query_starts = memory_.in(arrays.query_starts),
                                     .key_starts = memory_.in(arrays.key_starts),
                                     .key_lengths = memory_.in(arrays.key_lengths)};
  describe(problem_, pointers, call_);
  call_.sequences.max_total_keys = problem_.total_keys;
  call_.sequences.first_keys =
      memory_.in(std::vector<std::int32_t>(problem_.first_keys.begin(), problem_.first_keys.end()));
  call_.pages.block_table = memory_.in(slots_.table().entries);
  call_.pages.table_columns = slots_.table().columns;
  call_.pages.page_layout = problem_.page_layout;
}

void DeviceCase::describe_mask() {
  if (problem_.bias_by_tile) call_.head.flags |= WAVEJIT_BIAS_BY_TILE;
  std::vector<std::uint8_t> causal_flags;
  if (problem_.causal_flags)
    for (const Sequence& sequence : sequences_) causal_flags.push_back(sequence.has_diagonal ? 1 : 0);
  call_.mask.causal_flags = memory_.in(causal_flags);
  if (const BiasPlacement mask = bool_mask_of(problem_); mask.rows > 0)
    call_.modifiers.bool_mask = tensor_of(mask, memory_.in(shown_keys_of(problem_, mask)), WAVEJIT_INT8);
}

void DeviceCase::describe_lists() {
  call_.head.flags |= problem_.hints;
  lists_of(problem_).give(call_.blocks, memory_);
  const auto [first, second] = both_lists_of(problem_);
  if (first.top_k == 0) return;
  for (const auto& [list, from] : {std::pair{&call_.key_list, &first}, {&call_.second_list, &second}}) {
    list->indices = memory_.in(from->indices);
    list->counts = memory_.in(from->counts);
    list->top_k = from->top_k;
  }
  call_.key_list.heads = first.heads;
  call_.key_list.slots = first.slots ? 1 : 0;
  if (first.slots) {
    call_.pages.block_table = nullptr;
    call_.sequences.key_lengths = nullptr;
    call_.pages.table_columns = call_.sequences.max_key_length = 0;
  }
  if (second.top_k == 0) return;
  call_.second_k = second_k_.described(key_type(problem_));
  call_.second_v = second_v_.described(key_type(problem_));
}

// A scale for each token of each kv head, as K lies, and NaN where no token is.
std::vector<float> DeviceCase::token_scales_of(Operand operand) const {
  Placement placement = k_.placement;
  placement.head_dim = 1;
  const auto tokens = tokens_in_memory(operand, placement.batch * placement.length);
  std::vector<float> scales(static_cast<std::size_t>(placement.elements()), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t at = 0; at < tokens.size(); ++at)
    for (std::int64_t head = 0; head < placement.heads && tokens[at].position >= 0; ++head)
      scales[static_cast<std::size_t>(placement.offset(static_cast<std::int64_t>(at), head))] =
          token_scale_of(problem_, operand, tokens[at].number, head);
  return scales;
}

void DeviceCase::describe_scales() {
  const bool of_tokens = problem_.token_scales();
  call_.scales.token_scales = of_tokens ? 1 : 0;
  const auto scale = [&](Operand operand, const Placement& rows) -> wavejit_tensor {
    const bool as_keys = of_tokens && !problem_.integers && operand != Operand::q;
    float* data = memory_.in(problem_.integers ? integer_scales_of(problem_, operand)
                             : as_keys         ? token_scales_of(operand)
                                               : cache_scales_of(problem_, operand));
    if (data == nullptr) return {};
    if (as_keys) {
      Placement of_keys = k_.placement;
      of_keys.head_dim = 1;
      return tensor_of(of_keys, data, WAVEJIT_FP32);
    }
    if (!problem_.integers)
      return wavejit_dense_tensor(data, WAVEJIT_FP32, problem_.scale_batches(), 1, problem_.scale_heads(), 1);
    return of_tokens ? wavejit_dense_tensor(data, WAVEJIT_FP32, rows.batch, rows.length, rows.heads, 1)
                     : wavejit_dense_tensor(data, WAVEJIT_FP32, 1, 1, rows.heads, 1);
  };
  const wavejit_tensor of_queries = scale(Operand::q, q_.placement);
  if (problem_.integers || problem_.byte_queries) call_.scales.q_scale = of_queries;
  call_.scales.k_scale = scale(Operand::k, k_.placement);
  if (!problem_.integers) call_.scales.v_scale = scale(Operand::v, v_.placement);
  if (problem_.integers)
    call_.modifiers.score_rounding = problem_.half_scores ? WAVEJIT_SCORES_IN_FP16 : WAVEJIT_SCORES_IN_FP32;
}

void DeviceCase::describe_modifiers(const Inputs& inputs, const HeadValues& head_values) {
  for (const ModifierRow& row : modifier_rows) {
    if (row.number != nullptr) call_.modifiers.*row.number = problem_.of(row.modifier).number;
    if (row.tensor == nullptr || !problem_.has(row.modifier)) continue;
    wavejit_tensor& tensor = call_.modifiers.*row.tensor;
    const std::size_t i = index_of(row.modifier);
    if (program_modifiers()[i].given == Given::scores) {
      const BiasPlacement bias = bias_of(problem_);
      tensor =
          tensor_of(bias, nullptr, problem_.bias_fp32 ? std::int32_t{WAVEJIT_FP32} : tools::type_of(problem_.type));
      tensor.data = filled_bias(bias, inputs);
      continue;
    }
    // A null tensor would be a call without the modifier, which no result of a timed call shows.
    if (head_values[i].empty())
      memory_.keep(failed(ExitCode::internal, "a modifier of the problem was given no numbers of heads"));
    tensor = wavejit_dense_tensor(memory_.in(head_values[i]), WAVEJIT_FP32, problem_.batches_of(row.modifier),
                                  problem_.query_heads, 1, 1);
  }
}

wavejit_attention_forward_arguments DeviceCase::call_of(const View& view) const {
  const Sequence& sequence = sequences_[static_cast<std::size_t>(view.sequence)];
  const std::int64_t group = problem_.group();
  const Stretch queries = {.first = sequence.first_query + view.first_row, .count = view.rows};
  const Stretch keys = {.first = sequence.first_key, .count = sequence.keys};
  const Stretch own = {.first = view.sequence};  // of a number a sequence
  const Stretch heads = {.first = view.kv_head * group, .count = group};
  const Stretch kv_head = {.first = view.kv_head};
  const bool paged = problem_.paged();
  const bool of_tokens = problem_.token_scales();
  wavejit_attention_forward_arguments call = call_;
  for (wavejit_tensor* tensor : {&call.q, &call.o}) cut(*tensor, rows_first, queries, heads);
  cut(call.lse, heads_first, queries, heads);
  cut(call.scales.q_scale, rows_first, of_tokens ? queries : own, problem_.integers ? heads : kv_head);
  const auto cut_keys = [&](wavejit_tensor& tensor) {
    if (!paged) cut(tensor, rows_first, keys, kv_head);
    if (paged) cut(tensor, rows_first.heads, kv_head);
  };
  for (wavejit_tensor* tensor : {&call.k, &call.v}) cut_keys(*tensor);
  for (wavejit_tensor* scale : {&call.scales.k_scale, &call.scales.v_scale}) {
    if (of_tokens) cut_keys(*scale);
    if (!of_tokens) cut(*scale, rows_first, own, kv_head);
  }
  for (wavejit_tensor* tensor : {&call.modifiers.bias, &call.modifiers.bool_mask}) {
    cut(*tensor, heads_first, queries, heads);
    if (tensor->data != nullptr) tensor->sizes[3] = sequence.keys;
  }
  for (wavejit_tensor* tensor : {&call.modifiers.alibi, &call.modifiers.sink}) cut(*tensor, heads_first, own, heads);
  if (call.mask.causal_flags != nullptr) call.mask.causal_flags += view.sequence;
  if ((call.mask.bits & (WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW)) != 0) {
    call.mask.bits |= WAVEJIT_MASK_PREFIX;
    call.mask.causal_prefix = rules_of(problem_, sequence).position + view.first_row;
  }
  call.sequences.query_starts = call.sequences.key_starts = nullptr;
  call.sequences.count = call.sequences.max_query_length = 0;
  call.sequences.max_key_length = paged ? sequence.keys : 0;
  if (paged) {
    call.pages.block_table += view.sequence * call.pages.table_columns;
    call.sequences.key_lengths += view.sequence;
    if (call.sequences.first_keys != nullptr) call.sequences.first_keys += view.sequence;
  } else {
    call.sequences.key_lengths = call.sequences.first_keys = nullptr;
  }
  return call;
}

}  // namespace wavejit::attention_forward::program
