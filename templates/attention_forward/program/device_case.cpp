// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The call of a case, launched whole or in views, and what it wrote.
#include "templates/attention_forward/program/device_case.h"

#include <algorithm>
#include <utility>

#include "templates/attention/kernel/modifiers.h"
#include "tools/empty_call.h"

namespace wavejit::attention_forward::program {

namespace {

wavejit_tensor vector_tensor(void* data, std::int64_t batches, std::int64_t heads) {
  return wavejit_dense_tensor(data, WAVEJIT_FP32, batches, heads, 1, 1);
}

wavejit_tensor scale_tensor(const Experiment& problem, void* data) {
  if (problem.cache_scales == attention::Extent::none) return {};
  return wavejit_dense_tensor(data, WAVEJIT_FP32, problem.scale_batches(), 1, problem.scale_heads(), 1);
}

// As K lies.
wavejit_tensor token_scale_tensor(const Experiment& problem, void* data) {
  if (data == nullptr) return {};
  Placement p = stored(problem, keys_of(problem));
  p.head_dim = 1;
  wavejit_tensor made = wavejit_dense_tensor(data, WAVEJIT_FP32, p.batch, p.length, p.heads, 1);
  made.strides[0] = p.stride_of_batch();
  made.strides[1] = p.stride_of_token();
  made.strides[2] = p.stride_of_head();
  return made;
}

}  // namespace

DeviceCase::DeviceCase(const Experiment& problem, Tensor q, Tensor k, Tensor v, SecondCache second, Tensor o,
                       Tensor lse, Extra extra)
    : problem_(problem),
      sequences_(sequences_of(problem)),
      pages_(page_table_of(problem)),
      q_(std::move(q)),
      k_(std::move(k)),
      v_(std::move(v)),
      second_(std::move(second)),
      o_(std::move(o)),
      lse_(std::move(lse)),
      extra_(std::move(extra)) {
  describe();
}

wavejit_tensor DeviceCase::described(const Tensor& tensor, wavejit_dtype dtype) const {
  const Placement& p = tensor.placement;
  wavejit_tensor made = wavejit_dense_tensor(static_cast<char*>(tensor.memory.data()) + tensor.margin, dtype, p.batch,
                                             p.length, p.heads, p.head_dim);
  made.strides[0] = p.stride_of_batch();
  made.strides[1] = p.stride_of_token();
  made.strides[2] = p.stride_of_head();
  made.strides[3] = p.stride_of_dim();
  return made;
}

wavejit_tensor DeviceCase::row_scales(const Tensor& of, void* data) const {
  if (data == nullptr) return {};
  const Placement& p = of.placement;
  if (!problem_.token_scales()) return wavejit_dense_tensor(data, WAVEJIT_FP32, 1, 1, p.heads, 1);
  return wavejit_dense_tensor(data, WAVEJIT_FP32, p.batch, p.length, p.heads, 1);
}

wavejit_tensor DeviceCase::described_lse(const Tensor& tensor) {
  const Placement& p = tensor.placement;
  return wavejit_dense_tensor(static_cast<char*>(tensor.memory.data()) + tensor.margin, WAVEJIT_FP32, p.batch, p.heads,
                              p.length, 1);
}

wavejit_tensor DeviceCase::described_bias(wavejit_dtype dtype) const {
  const BiasPlacement bias = bias_of(problem_);
  wavejit_tensor made =
      wavejit_dense_tensor(extra_.of(Modifier::bias), dtype, bias.batches, bias.heads, bias.rows, bias.row_stride);
  made.sizes[3] = bias.columns;
  return made;
}

void DeviceCase::describe() {
  call_ = empty_call<wavejit_attention_forward_arguments>(WAVEJIT_ATTENTION_FORWARD);
  describe_tensors();
  describe_mask();
  describe_sequences();
  describe_modifiers();
  describe_lists();
  call_.split.splits = problem_.splits;
}

wavejit_dtype DeviceCase::query_type() const { return problem_.type == HalfType::fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16; }
wavejit_dtype DeviceCase::key_type() const {
  return problem_.has_bytes() ? static_cast<wavejit_dtype>(problem_.cache_dtype) : query_type();
}

void DeviceCase::describe_tensors() {
  const wavejit_dtype dtype = query_type();
  call_.q = described(q_, problem_.byte_queries ? WAVEJIT_E4M3
                          : problem_.integers   ? WAVEJIT_INT8
                          : problem_.query_fp32 ? WAVEJIT_FP32
                                                : dtype);
  const wavejit_dtype key_type = this->key_type();
  call_.k = described(k_, problem_.integers ? WAVEJIT_INT8 : key_type);
  call_.v = described(v_, key_type);
  call_.scales.token_scales = problem_.token_scales() ? 1 : 0;
  const auto scale = [&](float* numbers) {
    return problem_.token_scales() ? token_scale_tensor(problem_, numbers) : scale_tensor(problem_, numbers);
  };
  if (problem_.integers) {
    call_.scales.q_scale = row_scales(q_, extra_.q_scale);
    call_.scales.k_scale = row_scales(k_, extra_.k_scale);
    call_.score_rounding = problem_.half_scores ? WAVEJIT_SCORES_IN_FP16 : WAVEJIT_SCORES_IN_FP32;
  } else {
    if (problem_.byte_queries) call_.scales.q_scale = scale_tensor(problem_, extra_.q_scale);
    call_.scales.k_scale = scale(extra_.k_scale);
  }
  call_.scales.v_scale = scale(extra_.v_scale);
  call_.o = described(o_, problem_.output_fp32 ? WAVEJIT_FP32 : dtype);
  if (problem_.page_layout != WAVEJIT_PAGES_OF_ROWS) {
    constexpr std::int64_t unit = 8;
    call_.k.strides[1] = unit;
    call_.v.strides[1] = 1;
    call_.v.strides[3] = problem_.page_layout == WAVEJIT_PAGES_VECTORISED ? problem_.page_size : unit;
  }
  if (problem_.lse) call_.lse = described_lse(lse_);
}

void DeviceCase::describe_mask() {
  call_.modifiers.scale = problem_.scale;
  if (problem_.scale == 0) call_.head.flags |= WAVEJIT_SCALE_IS_ZERO;
  // The laboratory has no field for it.
  const auto has_word = [&](std::string_view word) {
    return (problem_.text + ' ').contains(fmt::format(" {} ", word));
  };
  if (has_word("launches=1")) call_.head.flags |= WAVEJIT_ONE_LAUNCH;
  if (has_word("launches=2")) call_.head.flags |= WAVEJIT_TWO_LAUNCHES;
  if (problem_.bias_by_tile) call_.head.flags |= WAVEJIT_BIAS_BY_TILE;
  call_.mask = problem_.mask;
  call_.mask.causal_flags = extra_.causal_flags;
}

void DeviceCase::describe_sequences() {
  if (problem_.packed_queries()) {
    call_.sequences.query_starts = extra_.query_starts;
    call_.sequences.count = problem_.batch;
    call_.sequences.max_query_length = problem_.query_length;
  }
  if (problem_.packed_keys()) {
    call_.sequences.key_starts = extra_.key_starts;
    call_.sequences.max_key_length = problem_.key_length;
  }
  if (problem_.paged()) {
    call_.pages.block_table = extra_.block_table;
    call_.pages.table_columns = pages_.columns;
    call_.page_layout = problem_.page_layout;
    call_.sequences.max_key_length = problem_.key_length;
  }
  call_.sequences.key_lengths = extra_.key_lengths;
  call_.sequences.max_total_keys = problem_.total_keys;
  call_.sequences.first_keys = extra_.first_keys;
}

void DeviceCase::describe_modifiers() {
  for (const ModifierRow& row : modifier_rows) {
    if (row.number != nullptr) call_.modifiers.*row.number = problem_.of(row.modifier).number;
    if (row.tensor == nullptr || !problem_.has(row.modifier)) continue;
    call_.modifiers.*row.tensor =
        program_modifiers()[index_of(row.modifier)].given == Given::scores
            ? described_bias(problem_.bias_fp32 ? WAVEJIT_FP32 : query_type())
            : vector_tensor(extra_.of(row.modifier), problem_.batches_of(row.modifier), problem_.query_heads);
  }
  if (const BiasPlacement mask = bool_mask_of(problem_); mask.rows > 0) {
    call_.modifiers.bool_mask =
        wavejit_dense_tensor(extra_.bool_mask, WAVEJIT_INT8, mask.batches, mask.heads, mask.rows, mask.row_stride);
    call_.modifiers.bool_mask.sizes[3] = mask.columns;
  }
}

void DeviceCase::describe_lists() {
  call_.head.flags |= problem_.hints;
  if (problem_.list_rows != 0) {
    call_.blocks.list_counts = extra_.list_counts;
    call_.blocks.list_indices = extra_.list_indices;
    call_.blocks.list_row_blocks = extra_.list_row_blocks;
    call_.blocks.list_capacity = extra_.list_capacity;
    call_.blocks.list_rows = static_cast<std::int32_t>(problem_.list_rows);
    call_.blocks.list_keys = static_cast<std::int32_t>(problem_.list_keys);
    call_.blocks.list_batches = static_cast<std::int32_t>(problem_.batch);
    call_.blocks.list_heads = static_cast<std::int32_t>(problem_.query_heads);
  }
  if (extra_.key_list.top_k == 0) return;
  call_.key_list = extra_.key_list;
  if (call_.key_list.slots != 0) {
    call_.pages.block_table = nullptr;
    call_.sequences.key_lengths = nullptr;
    call_.pages.table_columns = call_.sequences.max_key_length = 0;
  }
  if (extra_.second_list.top_k == 0) return;
  call_.second_k = described(second_.k, key_type());
  call_.second_v = described(second_.v, key_type());
  call_.second_list = extra_.second_list;
}

Result<void> DeviceCase::run(wavejit_engine* engine, wavejit_call_report* report) {
  wavejit_attention_forward_arguments call = call_;  // the report is this run's, and gone after it
  call.head.report = report;
  if (auto launched = checked(wavejit_attention_forward(engine, &call, nullptr)); !launched) return launched;
  return checked(wavejit_device_synchronize(engine));
}

Result<void> DeviceCase::start(wavejit_engine* engine, const Workspace& workspace, ihipStream_t* stream) const {
  wavejit_attention_forward_arguments call = call_;
  call.split.workspace = workspace.data;
  call.split.workspace_bytes = workspace.bytes;
  return checked(wavejit_attention_forward(engine, &call, stream));
}

Result<void> DeviceCase::run(wavejit_engine* engine, const View& view, wavejit_call_report* report) {
  const Sequence& sequence = sequences_[static_cast<std::size_t>(view.sequence)];
  const std::int64_t group = problem_.group();
  const std::int64_t head = view.kv_head * group;
  const std::int64_t query = sequence.first_query + view.first_row;
  wavejit_attention_forward_arguments call = call_;
  if (call.mask.causal_flags != nullptr) call.mask.causal_flags += view.sequence;
  const auto cut = [](wavejit_tensor& tensor, char* data, std::int64_t rows, std::int64_t heads) {
    tensor.data = data;
    tensor.sizes[0] = 1;
    tensor.sizes[1] = rows;
    tensor.sizes[2] = heads;
  };
  cut(call.q, q_.pointer(query, head), view.rows, group);
  cut(call.o, o_.pointer(query, head), view.rows, group);
  const auto one_head = [&](wavejit_tensor& tensor, const Tensor& of) {
    tensor.data = of.pointer(0, view.kv_head);
    tensor.sizes[2] = 1;
  };
  if (problem_.paged()) {
    one_head(call.k, k_);
    one_head(call.v, v_);
    call.pages.block_table += view.sequence * pages_.columns;
    call.sequences.key_lengths += view.sequence;
    if (call.sequences.first_keys != nullptr) call.sequences.first_keys += view.sequence;
  } else {
    cut(call.k, k_.pointer(sequence.first_key, view.kv_head), sequence.keys, 1);
    cut(call.v, v_.pointer(sequence.first_key, view.kv_head), sequence.keys, 1);
    call.sequences.key_lengths = call.sequences.first_keys = nullptr;
  }
  const auto cut_scales = [&](wavejit_tensor& scale, std::int64_t token, std::int64_t of_head, std::int64_t rows,
                              std::int64_t heads) {
    if (scale.data == nullptr) return;
    const std::int64_t first = problem_.token_scales() ? token * scale.strides[1] : 0;
    cut(scale, static_cast<char*>(scale.data) + ((first + of_head) * std::int64_t{sizeof(float)}),
        problem_.token_scales() ? rows : 1, heads);
  };
  if (problem_.integers) {
    cut_scales(call.scales.q_scale, query, head, view.rows, group);
    cut_scales(call.scales.k_scale, sequence.first_key, view.kv_head, sequence.keys, 1);
  }
  for (wavejit_tensor* scale : {&call.scales.q_scale, &call.scales.k_scale, &call.scales.v_scale}) {
    if (scale->data == nullptr || problem_.integers) continue;
    if (problem_.token_scales()) {
      auto* of_head = static_cast<float*>(scale->data) + (view.kv_head * scale->strides[2]);
      if (problem_.paged()) {
        scale->data = of_head;
        scale->sizes[2] = 1;
      } else {
        Placement placement = keys_of(problem_);
        placement.head_dim = 1;
        cut(*scale, reinterpret_cast<char*>(of_head + placement.offset(sequence.first_key, 0)), sequence.keys, 1);
      }
      continue;
    }
    const std::int64_t of_batch = problem_.scale_batches() == 1 ? 0 : view.sequence * scale->strides[0];
    const std::int64_t of_head = problem_.scale_heads() == 1 ? 0 : view.kv_head * scale->strides[2];
    cut(*scale, static_cast<char*>(scale->data) + ((of_batch + of_head) * std::int64_t{sizeof(float)}), 1, 1);
  }
  if (problem_.lse) cut(call.lse, lse_.pointer(query, head), group, view.rows);
  call.sequences.query_starts = call.sequences.key_starts = nullptr;
  call.sequences.count = call.sequences.max_query_length = 0;
  call.sequences.max_key_length = problem_.paged() ? sequence.keys : 0;
  if ((call.mask.bits & (WAVEJIT_MASK_CAUSAL | WAVEJIT_MASK_WINDOW)) != 0) {
    call.mask.bits |= WAVEJIT_MASK_PREFIX;
    call.mask.causal_prefix = rules_of(problem_, sequence).position + view.first_row;
  }
  if (const BiasPlacement mask = bool_mask_of(problem_); mask.rows > 0) {
    const std::int64_t first = mask.row(problem_, view.sequence, sequence, head, view.first_row);
    cut(call.modifiers.bool_mask, static_cast<char*>(call.modifiers.bool_mask.data) + (first * mask.row_stride),
        mask.heads == 1 ? 1 : group, view.rows);
    call.modifiers.bool_mask.sizes[3] = sequence.keys;
  }
  for (const ModifierRow& row : modifier_rows) {
    if (row.tensor == nullptr) continue;
    wavejit_tensor& tensor = call.modifiers.*row.tensor;
    if (tensor.data == nullptr) continue;
    if (program_modifiers()[index_of(row.modifier)].given == Given::scores) {
      const BiasPlacement bias = bias_of(problem_);
      const std::int64_t first = bias.row(problem_, view.sequence, sequence, head, view.first_row);
      cut(tensor, extra_.of(row.modifier) + first * bias.row_stride * (problem_.bias_fp32 ? 4 : 2),
          bias.heads == 1 ? 1 : group, view.rows);
      tensor.sizes[3] = sequence.keys;
    } else {
      const std::int64_t of_batch = problem_.batches_of(row.modifier) == 1 ? 0 : view.sequence;
      tensor = vector_tensor(static_cast<float*>(tensor.data) + of_batch * problem_.query_heads + head, 1, group);
    }
  }
  call.head.report = report;
  if (auto launched = checked(wavejit_attention_forward(engine, &call, nullptr)); !launched) return launched;
  return checked(wavejit_device_synchronize(engine));
}

Result<std::uint64_t> DeviceCase::workspace_bytes(wavejit_engine* engine) const {
  std::size_t bytes = 0;
  if (auto asked = checked(wavejit_call_workspace(engine, &call_.head, &bytes)); !asked)
    return std::unexpected(asked.error());
  return bytes;
}

std::vector<std::uint16_t> DeviceCase::row_in(const std::vector<std::uint16_t>& outputs, std::int64_t token,
                                              std::int64_t head) const {
  const auto words = static_cast<std::int64_t>(o_.element / sizeof outputs.front());
  std::vector<std::uint16_t> row;
  row.reserve(static_cast<std::size_t>(words * problem_.head_dim_v));
  for (std::int64_t dim = 0; dim < problem_.head_dim_v; ++dim) {
    const std::int64_t at = o_.placement.offset(token, head) + (dim * o_.placement.stride_of_dim());
    row.insert(row.end(), outputs.begin() + (words * at), outputs.begin() + (words * (at + 1)));
  }
  return row;
}

Result<Rows> DeviceCase::written() const {
  std::vector<std::uint32_t> lse;
  std::vector<std::uint16_t> output;
  if (problem_.lse) {
    lse.resize(static_cast<std::size_t>(lse_.placement.elements()));
    if (auto copied = lse_.memory.copy_out(lse.data(), lse_.margin, lse_.bytes()); !copied)
      return std::unexpected(copied.error());
  } else {
    output.resize(o_.bytes() / sizeof output.front());
    if (auto copied = o_.memory.copy_out(output.data(), o_.margin, o_.bytes()); !copied)
      return std::unexpected(copied.error());
  }
  const auto is_written = [&](std::int64_t token, std::int64_t head) {
    if (problem_.lse) return lse[static_cast<std::size_t>(lse_.placement.offset(token, head))] != marked_lse;
    const std::vector<std::uint16_t> row = row_in(output, token, head);
    return std::ranges::any_of(row, [](std::uint16_t bits) { return bits != marked_element; });
  };
  Rows rows;
  for (std::int64_t b = 0; b < problem_.batch; ++b) {
    const Sequence& sequence = sequences_[static_cast<std::size_t>(b)];
    for (std::int64_t head = 0; head < problem_.query_heads; ++head) {
      std::vector<std::int64_t> numbers;
      for (std::int64_t row = 0; row < sequence.queries; ++row)
        if (is_written(sequence.first_query + row, head)) numbers.push_back(row);
      if (!numbers.empty()) rows[{.sequence = b, .head = head}] = std::move(numbers);
    }
  }
  return rows;
}

Result<WrittenRows> DeviceCase::read(const Rows& rows) const {
  const auto dim = static_cast<std::size_t>(problem_.head_dim_v);
  // One copy of all of O if many of its rows are read, or if its rows are not contiguous.
  std::vector<std::uint16_t> whole;
  const std::size_t words = o_.element / sizeof whole.front();
  if (4 * count_of(rows) >= o_.placement.rows() || o_.placement.transposed) {
    whole.resize(o_.bytes() / sizeof whole.front());
    if (auto copied = o_.memory.copy_out(whole.data(), o_.margin, o_.bytes()); !copied)
      return std::unexpected(copied.error());
  }
  std::vector<float> lse(problem_.lse ? static_cast<std::size_t>(lse_.placement.elements()) : 0);
  if (problem_.lse) {
    if (auto copied = lse_.memory.copy_out(lse.data(), lse_.margin, lse_.bytes()); !copied)
      return std::unexpected(copied.error());
  }
  WrittenRows written;
  for (const auto& [head, numbers] : rows) {
    auto& of_head = written[head];
    for (const std::int64_t row : numbers) {
      const std::int64_t token = sequences_[static_cast<std::size_t>(head.sequence)].first_query + row;
      WrittenRow& to = of_head[row];
      to.output.resize(dim * words);
      if (!whole.empty()) {
        to.output = row_in(whole, token, head.head);
      } else if (auto copied = o_.memory.copy_out(to.output.data(), o_.at(token, head.head), dim * o_.element);
                 !copied) {
        return std::unexpected(copied.error());
      }
      if (problem_.lse) to.lse = lse[static_cast<std::size_t>(lse_.placement.offset(token, head.head))];
    }
  }
  return written;
}

}  // namespace wavejit::attention_forward::program
