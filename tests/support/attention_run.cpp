// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/attention_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <format>
#include <limits>
#include <optional>
#include <stdexcept>

#include "support/byte_floats.h"
#include "support/compared_rows.h"
#include "support/fenced_tensor.h"
#include "support/kept.h"
#include "support/normal_numbers.h"
#include "support/test_device.h"

namespace wavejit::tests {
namespace {

using fenced::DeviceArray;
using fenced::DeviceTensor;
using fenced::fence_pattern;
using fenced::place;
using fenced::Placement;
using fenced::require;
using fenced::scatter;

wavejit_tensor numbers_per_head(float* data, std::int64_t batches, std::int64_t heads) {
  if (data == nullptr) return {};
  return {
      .data = data, .dtype = WAVEJIT_FP32, .reserved = 0, .sizes = {batches, heads, 1, 1}, .strides = {heads, 1, 1, 1}};
}

wavejit_tensor numbers_per_kv_head(float* data, const StoredBytes& scales) {
  if (data == nullptr) return {};
  return {.data = data,
          .dtype = WAVEJIT_FP32,
          .reserved = 0,
          .sizes = {scales.batches, 1, scales.heads, 1},
          .strides = {scales.heads, 1, 1, 1}};
}

// Visits each element of K or V with its scale.
template <typename Visit>
void for_each_scaled(const AttentionInputs& in, int dims, const StoredBytes& bytes, const std::vector<float>& scales,
                     Visit visit) {
  for (int b = 0; b < in.batch; ++b) {
    const int keys = in.packed_keys() ? in.keys(b) : in.key_length;
    for (int j = 0; j < keys; ++j)
      for (int h = 0; h < in.kv_heads; ++h) {
        const std::size_t of_token = (std::size_t(in.first_key(b) + j) * in.kv_heads) + h;
        const std::size_t of_scale =
            bytes.tokens ? of_token
                         : (std::size_t(bytes.batches == 1 ? 0 : b) * bytes.heads) + (bytes.heads == 1 ? 0 : h);
        const float scale = scales.empty() ? 1.0F : scales[of_scale];
        const std::size_t row = of_token * dims;
        for (int c = 0; c < dims; ++c) visit(row + c, scale);
      }
  }
}

// The case with what its bytes say in place of what they count for.
AttentionCase with_stored_values(AttentionCase which) {
  AttentionInputs& in = which.inputs;
  const StoredBytes& bytes = *which.bytes;
  for_each_scaled(in, in.head_dim, bytes, bytes.k_scale, [&](std::size_t at, float scale) { in.k[at] /= scale; });
  for_each_scaled(in, in.value_dim(), bytes, bytes.v_scale, [&](std::size_t at, float scale) { in.v[at] /= scale; });
  if (bytes.queries)
    for (float& value : in.q) value /= bytes.q_scale;
  return which;
}

// Visits each element of Q or K with its scale.
template <typename Visit>
void for_each_in_rows(int batches, int rows, int heads, int dims, const RowScales& scales, Visit visit) {
  std::size_t at = 0;
  for (int b = 0; b < batches; ++b)
    for (int i = 0; i < rows; ++i)
      for (int h = 0; h < heads; ++h) {
        const auto of = [](int index, int size) { return size == 1 ? std::size_t{0} : std::size_t(index); };
        const std::size_t row =
            (((of(b, scales.batches) * scales.tokens) + of(i, scales.tokens)) * scales.heads) + of(h, scales.heads);
        const float scale = scales.numbers.empty() ? 1.0F : scales.numbers[row];
        for (int c = 0; c < dims; ++c) visit(at++, scale);
      }
}
template <typename Change>
void change_integers(AttentionInputs& in, const StoredIntegers& integers, Change change) {
  for_each_in_rows(in.query_batches(), in.query_rows(), in.query_heads, in.head_dim, integers.q,
                   [&](std::size_t at, float scale) { in.q[at] = change(in.q[at], scale); });
  for_each_in_rows(in.key_batches(), in.key_rows(), in.kv_heads, in.head_dim, integers.k,
                   [&](std::size_t at, float scale) { in.k[at] = change(in.k[at], scale); });
}

wavejit_tensor numbers_per_row(float* data, const RowScales& scales) {
  if (data == nullptr) return {};
  const std::int64_t of_batch = std::int64_t{scales.tokens} * scales.heads;
  return {.data = data,
          .dtype = WAVEJIT_FP32,
          .reserved = 0,
          .sizes = {scales.batches, scales.tokens, scales.heads, 1},
          .strides = {of_batch, scales.heads, 1, 1}};
}

// Rows padded to eight elements with NaN, and nothing behind the last one.
std::vector<std::uint16_t> bias_rows(const AttentionCase& which, std::int64_t row_stride) {
  const AttentionInputs& in = which.inputs;
  if (in.bias.empty()) return {};
  const std::size_t rows = std::size_t(in.bias_batches) * in.bias_heads * in.query_rows();
  std::vector<std::uint16_t> padded(rows * row_stride, fence_pattern);
  for (std::size_t row = 0; row < rows; ++row)
    for (int key = 0; key < in.key_length; ++key)
      padded[row * row_stride + key] = to_storage(which.storage, in.bias[row * in.key_length + key]);
  return padded;
}

std::vector<float> wide_bias_rows(const AttentionCase& which, std::int64_t row_stride) {
  const AttentionInputs& in = which.inputs;
  const std::size_t rows = std::size_t(in.bias_batches) * in.bias_heads * in.query_rows();
  std::vector<float> padded(rows * row_stride, std::numeric_limits<float>::quiet_NaN());
  for (std::size_t row = 0; row < rows; ++row)
    std::copy_n(&in.bias[row * in.key_length], in.key_length, &padded[row * row_stride]);
  return padded;
}

// K and V behind left padding.
struct PaddedKeys {
  int rows = 0;
  bool end_together = true;  // with the tensor
  std::vector<float> k;
  std::vector<float> v;
};
PaddedKeys padded_keys(const AttentionCase& which) {
  const AttentionInputs& in = which.inputs;
  PaddedKeys padded;
  for (int b = 0; b < in.batch; ++b) padded.rows = std::max(padded.rows, which.first_keys[b] + in.keys(b));
  for (int b = 0; b < in.batch; ++b) padded.end_together &= which.first_keys[b] + in.keys(b) == padded.rows;
  const auto pad = [&](const std::vector<float>& values, int dims) {
    const std::size_t row = std::size_t(in.kv_heads) * dims;
    std::vector<float> all(std::size_t(in.batch) * padded.rows * row, std::numeric_limits<float>::quiet_NaN());
    for (int b = 0; b < in.batch; ++b)
      std::copy_n(values.begin() + in.first_key(b) * row, in.keys(b) * row,
                  all.begin() + (std::size_t(b) * padded.rows + which.first_keys[b]) * row);
    return all;
  };
  padded.k = pad(in.k, in.head_dim);
  padded.v = pad(in.v, in.value_dim());
  return padded;
}

// Memory for partial results: NaN, between two fences.
class Workspace {
 public:
  Workspace(wavejit_engine* engine, wavejit_attention_forward_arguments& call, std::size_t withheld) : engine_(engine) {
    answer_ = wavejit_call_workspace(engine, &call.head, &bytes_);
    if (answer_ != WAVEJIT_OK || bytes_ == 0) return;
    const std::vector<std::uint16_t> noise((bytes_ + 2 * fence_bytes) / 2, fence_pattern);
    require(wavejit_device_allocate(engine, noise.size() * 2, &memory_), "allocate");
    require(wavejit_device_copy_in(engine, memory_, noise.data(), noise.size() * 2), "copy in");
    call.split.workspace = static_cast<char*>(memory_) + fence_bytes;
    call.split.workspace_bytes = bytes_ - std::min(withheld, bytes_);
  }
  ~Workspace() { wavejit_device_free(engine_, memory_); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  // What the question for its size was answered with. A call that is refused answers the same.
  wavejit_status answer() const { return answer_; }

  bool fence_intact() const {
    if (memory_ == nullptr) return true;
    const auto intact = [&](std::size_t offset) {
      std::vector<std::uint16_t> fence(fence_bytes / 2);
      require(wavejit_device_copy_out(engine_, fence.data(), static_cast<char*>(memory_) + offset, fence_bytes),
              "copy out");
      return std::ranges::all_of(fence, [](std::uint16_t x) { return x == fence_pattern; });
    };
    return intact(0) && intact(fence_bytes + bytes_);
  }
  std::vector<std::uint16_t> contents() const {
    std::vector<std::uint16_t> left(bytes_ / 2);
    if (memory_ != nullptr)
      require(wavejit_device_copy_out(engine_, left.data(), static_cast<char*>(memory_) + fence_bytes, bytes_),
              "copy out");
    return left;
  }

 private:
  static constexpr std::size_t fence_bytes = 4096;
  wavejit_engine* engine_;
  wavejit_status answer_ = WAVEJIT_OK;
  std::size_t bytes_ = 0;
  void* memory_ = nullptr;
};

}  // namespace

AttentionCase make_case(Storage storage, int batch, int query_length, int key_length, int query_heads, int kv_heads,
                        int head_dim, bool causal, std::uint64_t seed, double spread, int head_dim_v) {
  AttentionCase c;
  c.storage = storage;
  c.inputs = {.batch = batch,
              .query_length = query_length,
              .key_length = key_length,
              .query_heads = query_heads,
              .kv_heads = kv_heads,
              .head_dim = head_dim,
              .head_dim_v = head_dim_v,
              .causal = causal,
              .scale = 1.0F / std::sqrt(static_cast<float>(head_dim)),
              .q = {},
              .k = {},
              .v = {}};
  NormalNumbers normal(seed);
  const auto scaled = static_cast<float>(spread);
  auto fill = [&](std::vector<float>& values, std::size_t count) {
    values.resize(count);
    for (float& x : values) x = from_storage(storage, to_storage(storage, normal() * scaled));
  };
  fill(c.inputs.q, std::size_t(batch) * query_length * query_heads * head_dim);
  fill(c.inputs.k, std::size_t(batch) * key_length * kv_heads * head_dim);
  fill(c.inputs.v, std::size_t(batch) * key_length * kv_heads * c.inputs.value_dim());
  return c;
}

AttentionCase stored_in_bytes(AttentionCase which, StoredBytes bytes) {
  const ByteFormat& format = byte_format(bytes.type);
  AttentionInputs& in = which.inputs;
  const auto round = [&](std::vector<float>& values, int dims, const std::vector<float>& scales) {
    for_each_scaled(in, dims, bytes, scales, [&](std::size_t at, float scale) {
      values[at] = value_of_byte(format, nearest_byte(format, values[at] / scale)) * scale;
    });
  };
  round(in.k, in.head_dim, bytes.k_scale);
  round(in.v, in.value_dim(), bytes.v_scale);
  if (bytes.queries)
    for (float& value : in.q)
      value = value_of_byte(format, nearest_byte(format, value / bytes.q_scale)) * bytes.q_scale;
  which.bytes = std::move(bytes);
  return which;
}

AttentionCase stored_in_integers(AttentionCase which, StoredIntegers integers) {
  change_integers(which.inputs, integers, [](float value, float scale) {
    return std::clamp(std::nearbyint(value / scale), -128.0F, 127.0F) * scale;
  });
  which.integers = std::move(integers);
  return which;
}

std::uint16_t output_byte(const AttentionCase& which, float number) {
  const float reciprocal = 1.0F / which.output_scale;
  if (which.output_bytes == WAVEJIT_INT8 && std::isnan(number * reciprocal)) return 0;
  return nearest_byte(byte_format(*which.output_bytes), number * reciprocal);
}

std::vector<float> output_in_fp32(const AttentionOutput& output) {
  std::vector<float> values(output.o.size() / 2);
  std::memcpy(values.data(), output.o.data(), output.o.size() * sizeof output.o.front());
  return values;
}

AttentionOutput run_attention(wavejit_engine* engine, const AttentionCase& which, const ChangeForwardCall& change) {
  const AttentionInputs& in = which.inputs;
  const ScatteredTensors& scattered = which.scattered;
  const bool byte_queries = which.integers || (which.bytes && which.bytes->queries);
  const Placement queries = scatter(scattered.q, place(which.layout, in.query_batches(), in.query_rows(),
                                                       in.query_heads, in.head_dim, byte_queries ? 16 : 8));
  const bool padded = !which.first_keys.empty() && !which.pages;
  AttentionCase stored = which.bytes ? with_stored_values(which) : which;
  if (which.integers)
    change_integers(stored.inputs, *which.integers, [](float value, float scale) { return value / scale; });
  const PaddedKeys behind = padded ? padded_keys(stored) : PaddedKeys{.rows = in.key_rows(), .k = {}, .v = {}};
  const std::int64_t granule = which.bytes || which.integers ? 16 : 8;
  const wavejit_dtype dtype = which.storage == Storage::fp16 ? WAVEJIT_FP16 : WAVEJIT_BF16;
  const wavejit_dtype key_type = which.bytes ? which.bytes->type : dtype;
  const Placement keys =
      scatter(scattered.k, place(which.layout, in.key_batches(), behind.rows, in.kv_heads, in.head_dim, granule));
  const StoredBytes scales = which.bytes.value_or(StoredBytes{});
  const StoredIntegers integers = which.integers.value_or(StoredIntegers{});
  const wavejit_dtype query_type = which.integers         ? WAVEJIT_INT8
                                   : scales.queries       ? scales.type
                                   : which.wide_q.empty() ? dtype
                                                          : WAVEJIT_FP32;
  const DeviceTensor q(engine, queries, query_type, which.wide_q.empty() ? &stored.inputs.q : &which.wide_q);
  const DeviceTensor k(engine, keys, which.integers ? WAVEJIT_INT8 : key_type, padded ? &behind.k : &stored.inputs.k);
  const Placement values =
      scatter(scattered.v, place(which.layout, in.key_batches(), behind.rows, in.kv_heads, in.value_dim(), granule));
  const Placement results = scatter(scattered.o, place(which.layout, in.query_batches(), in.query_rows(),
                                                       in.query_heads, in.value_dim(), which.output_bytes ? 16 : 8));
  const DeviceTensor v(engine, values, key_type, padded ? &behind.v : &stored.inputs.v);
  DeviceTensor o(engine, results, which.output_bytes.value_or(which.output_fp32 ? WAVEJIT_FP32 : dtype));
  const DeviceArray o_scale(engine, std::vector<float>{which.output_scale});
  const DeviceArray q_scale(engine, scales.queries ? std::vector<float>{scales.q_scale} : integers.q.numbers);
  const DeviceArray k_row_scale(engine, integers.k.numbers);
  const DeviceArray k_scale(engine, scales.k_scale);
  const DeviceArray v_scale(engine, scales.v_scale);
  const DeviceArray query_starts(engine, which.query_starts.value_or(in.query_starts));
  const DeviceArray key_starts(engine, which.key_starts.value_or(in.key_starts));
  const bool all_count = padded && behind.end_together;
  const DeviceArray key_lengths(
      engine, all_count ? std::vector<std::int32_t>() : which.told_key_lengths.value_or(in.key_lengths));
  const DeviceArray causal_flags(engine, in.causal_flags);
  // Rows at odd places, and nothing behind the last one.
  const std::int64_t mask_stride = in.key_length | 1;
  std::vector<std::uint8_t> shown;
  for (std::size_t row = 0; row * in.key_length < in.shown.size(); ++row) {
    shown.resize(row * mask_stride, 0xFF);
    shown.insert(shown.end(), in.shown.begin() + static_cast<std::ptrdiff_t>(row * in.key_length),
                 in.shown.begin() + static_cast<std::ptrdiff_t>((row + 1) * in.key_length));
  }
  const DeviceArray bool_mask(engine, shown);
  const DeviceArray first_keys(engine, which.told_first_keys.value_or(which.first_keys));
  const std::int64_t bias_columns = padded ? behind.rows : in.key_length;
  const std::int64_t bias_stride = (bias_columns + 7) / 8 * 8;
  const DeviceArray bias(engine, which.bias_fp32 ? std::vector<std::uint16_t>() : bias_rows(which, bias_stride));
  const DeviceArray wide_bias(engine, which.bias_fp32 ? wide_bias_rows(which, bias_stride) : std::vector<float>());
  const DeviceArray alibi(engine, in.alibi);
  const DeviceArray sink(engine, in.sink);

  // LSE: padded between heads, with a sentinel that no answer has.
  const float sentinel = 12345.678F;
  const std::int64_t lse_row = in.query_rows() + 8;
  std::vector<float> lse_host(std::size_t(in.query_batches()) * in.query_heads * lse_row + 64, sentinel);
  void* lse_memory = nullptr;

  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  call.q = q.descriptor();
  call.k = k.descriptor();
  call.v = v.descriptor();
  call.o = o.descriptor();
  if (which.output_bytes && which.output_scale_in_memory) call.output_scale.o_scale = o_scale.get();
  if (which.output_bytes && !which.output_scale_in_memory) call.output_scale.o_scale_value = which.output_scale;
  call.modifiers.scale = static_cast<float>(in.scale);
  if (call.modifiers.scale == 0) call.head.flags |= WAVEJIT_SCALE_IS_ZERO;
  if (which.bias_by_tile) call.head.flags |= WAVEJIT_BIAS_BY_TILE;
  call.mask.bits = (in.causal ? WAVEJIT_MASK_CAUSAL : 0) | (in.window ? WAVEJIT_MASK_WINDOW : 0) |
                   (in.prefix ? WAVEJIT_MASK_PREFIX : 0) | (in.local_chunk > 0 ? WAVEJIT_MASK_CHUNKED : 0);
  call.mask.local_chunk = in.local_chunk;
  call.mask.causal_flags = causal_flags.get();
  if (in.window) {
    call.mask.window_left = in.window_left;
    call.mask.window_right = in.window_right;
  }
  call.mask.causal_prefix = in.prefix.value_or(0);
  call.sequences.query_starts = query_starts.get();
  call.sequences.key_starts = key_starts.get();
  call.sequences.key_lengths = key_lengths.get();
  call.sequences.first_keys = first_keys.get();
  call.sequences.count = in.batch;
  if (in.packed_queries()) call.sequences.max_query_length = in.query_length;
  if (in.packed_keys()) call.sequences.max_key_length = in.key_length;
  std::optional<PagedCache> cache;
  if (which.pages)
    cache
        .emplace(engine, stored.inputs, key_type, *which.pages, which.first_keys,
                 scales.tokens ? std::array{&scales.k_scale, &scales.v_scale} : PagedCache::TokenScales{})
        .describe(call);
  if (which.told_longest_keys != 0) call.sequences.max_key_length = which.told_longest_keys;
  call.modifiers.softcap = static_cast<float>(in.softcap);
  if (!in.bias.empty()) {
    const std::int64_t head = in.query_rows() * bias_stride;
    call.modifiers.bias = {.data = which.bias_fp32 ? static_cast<void*>(wide_bias.get()) : bias.get(),
                           .dtype = which.bias_fp32 ? std::int32_t{WAVEJIT_FP32} : std::int32_t{dtype},
                           .reserved = 0,
                           .sizes = {in.bias_batches, in.bias_heads, in.query_rows(), bias_columns},
                           .strides = {in.bias_heads * head, head, bias_stride, 1}};
  }
  if (!in.shown.empty()) {
    const std::int64_t head = in.query_rows() * mask_stride;
    call.modifiers.bool_mask = {.data = bool_mask.get(),
                                .dtype = WAVEJIT_INT8,
                                .reserved = 0,
                                .sizes = {in.shown_batches, in.shown_heads, in.query_rows(), in.key_length},
                                .strides = {in.shown_heads * head, head, mask_stride, 1}};
  }
  call.modifiers.alibi = numbers_per_head(alibi.get(), std::ssize(in.alibi) / in.query_heads, in.query_heads);
  call.modifiers.sink = numbers_per_head(sink.get(), 1, in.query_heads);
  if (scales.queries) call.scales.q_scale = numbers_per_kv_head(q_scale.get(), {});
  call.scales.token_scales = scales.tokens ? 1 : 0;
  if (scales.tokens && !which.pages) {
    const auto as_keys = [&](float* numbers) {
      return wavejit_dense_tensor(numbers, WAVEJIT_FP32, in.key_batches(), in.key_rows(), in.kv_heads, 1);
    };
    call.scales.k_scale = as_keys(k_scale.get());
    call.scales.v_scale = as_keys(v_scale.get());
  } else if (!scales.tokens) {
    call.scales.k_scale = numbers_per_kv_head(k_scale.get(), scales);
    call.scales.v_scale = numbers_per_kv_head(v_scale.get(), scales);
  }
  if (which.integers) {
    call.scales.q_scale = numbers_per_row(q_scale.get(), integers.q);
    call.scales.k_scale = numbers_per_row(k_row_scale.get(), integers.k);
    call.scales.token_scales = integers.k.tokens > 1 ? 1 : 0;
    call.modifiers.score_rounding = integers.half_scores ? WAVEJIT_SCORES_IN_FP16 : WAVEJIT_SCORES_IN_FP32;
  }
  if (which.lse) {
    require(wavejit_device_allocate(engine, lse_host.size() * 4, &lse_memory), "allocate");
    require(wavejit_device_copy_in(engine, lse_memory, lse_host.data(), lse_host.size() * 4), "copy in");
    call.lse = {.data = static_cast<float*>(lse_memory) + 16,
                .dtype = WAVEJIT_FP32,
                .reserved = 0,
                .sizes = {in.query_batches(), in.query_heads, in.query_rows(), 1},
                .strides = {in.query_heads * lse_row, lse_row, 1, 1}};
  }

  const ListArrays none;
  const ListArrays masked = in.lists ? arrays_of(in.lists->masked, which.list_form, 1) : none;
  const ListArrays whole = in.lists ? arrays_of(in.lists->whole, which.list_form, 2) : none;
  const DeviceArray list_counts(engine, masked.counts);
  const DeviceArray list_starts(engine, masked.starts);
  const DeviceArray list_indices(engine, masked.indices);
  const DeviceArray full_counts(engine, whole.counts);
  const DeviceArray full_starts(engine, whole.starts);
  const DeviceArray full_indices(engine, whole.indices);
  if (in.lists) {
    call.blocks.list_counts = list_counts.get();
    call.blocks.list_starts = list_starts.get();
    call.blocks.list_indices = list_indices.get();
    call.blocks.full_counts = full_counts.get();
    call.blocks.full_starts = full_starts.get();
    call.blocks.full_indices = full_indices.get();
    call.blocks.list_capacity = masked.capacity;
    call.blocks.full_capacity = whole.capacity;
    call.blocks.list_row_blocks = in.lists->row_blocks;
    call.blocks.list_rows = in.lists->rows;
    call.blocks.list_keys = in.lists->keys;
    call.blocks.list_batches = in.lists->batches;
    call.blocks.list_heads = in.lists->heads;
    if (which.list_form.alike) call.head.flags |= WAVEJIT_LISTS_ALIKE;
  }
  const GivenKeyLists key_lists = which.key_lists.value_or(GivenKeyLists{});
  const DeviceArray key_indices(engine, key_lists.indices);
  const DeviceArray key_counts(engine, key_lists.counts);
  if (which.key_lists) {
    call.key_list.indices = key_indices.get();
    call.key_list.counts = key_lists.counts.empty() ? nullptr : key_counts.get();
    call.key_list.top_k = key_lists.top_k;
    call.key_list.row_stride = key_lists.row_stride;
    call.key_list.slots = key_lists.slots ? 1 : 0;
    call.key_list.heads = key_lists.heads;
  }
  call.head.flags |= which.flags;
  call.split.splits = which.splits;
  if (change) change(call);
  std::optional<Workspace> workspace;
  if ((which.splits > 1 && !which.engine_workspace) || which.own_workspace)
    workspace.emplace(engine, call, which.withheld_workspace);

  AttentionOutput out;
  wavejit_call_report report{};
  report.size = sizeof report;
  call.head.report = &report;
  wavejit_simgpu_take_reports(nullptr, 0);
  out.status = wavejit_attention_forward(engine, &call, nullptr);
  if (out.status == WAVEJIT_OK) out.status = wavejit_device_synchronize(engine);
  if (out.status != WAVEJIT_OK) out.detail = wavejit_last_detail();
  if (workspace && workspace->answer() != WAVEJIT_OK && workspace->answer() != out.status)
    throw std::runtime_error("the workspace's size was refused and the call was not");
  std::string text(wavejit_simgpu_take_reports(nullptr, 0) + 1, '\0');
  text.resize(wavejit_simgpu_take_reports(text.data(), text.size()));
  out.reports = text;
  out.kernel_spec = report.kernel_spec;
  if (out.status == WAVEJIT_OK) {
    out.o = o.read_back(&out.fence_intact);
    if (which.lse) {
      require(wavejit_device_copy_out(engine, lse_host.data(), lse_memory, lse_host.size() * 4), "copy out");
      out.lse.resize(std::size_t(in.query_batches()) * in.query_heads * in.query_rows());
      for (std::int64_t row = 0; row < std::int64_t(in.query_batches()) * in.query_heads; ++row) {
        for (std::int64_t i = 0; i < in.query_rows(); ++i) {
          float& x = lse_host[16 + row * lse_row + i];
          out.lse[row * in.query_rows() + i] = x;
          x = sentinel;
        }
      }
      out.fence_intact = out.fence_intact && std::ranges::all_of(lse_host, [&](float x) { return x == sentinel; });
    }
  }
  if (out.status == WAVEJIT_OK && workspace) {
    out.fence_intact = out.fence_intact && workspace->fence_intact();
    if (which.own_workspace) out.workspace = workspace->contents();
  }
  if (lse_memory != nullptr) wavejit_device_free(engine, lse_memory);
  Outputs noted(out.status);
  noted.add(out.o);
  noted.add(out.lse);
  return out;
}

tools::Comparison compare_rows(const AttentionCase& which, const AttentionAnswer& exact,
                               const AttentionOutput& output) {
  const auto lse = which.lse ? std::span<const float>(output.lse) : std::span<const float>();
  if (which.output_bytes) {
    const ByteFormat& format = byte_format(*which.output_bytes);
    std::vector<float> numbers;
    for (const std::uint16_t byte : output.o)
      numbers.push_back(value_of_byte(format, static_cast<std::uint8_t>(byte)) * which.output_scale);
    // Scales are powers of two here, and integers up to 127 multiples of one number.
    const int exponent = std::ilogb(which.output_scale);
    const tools::StorageFormat rounded =
        format.dtype == WAVEJIT_INT8 ? tools::StorageFormat{.significant_bits = 8, .smallest_exponent = exponent + 7}
                                     : tools::StorageFormat{.significant_bits = format.mantissa_bits + 1,
                                                            .smallest_exponent = exponent + 1 - format.bias};
    return compare_rows(tools::Checker(format_of(which.storage), rounded), which.inputs, exact, numbers, lse);
  }
  if (which.output_fp32)
    return compare_rows(tools::Checker(format_of(which.storage), tools::fp32_format), which.inputs, exact,
                        output_in_fp32(output), lse);
  return compare_rows(which.storage, which.inputs, exact, output.o, lse);
}

}  // namespace wavejit::tests
