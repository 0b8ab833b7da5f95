// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_call.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "templates/attention_forward/program/invariance_cache.h"
#include "templates/attention_forward/program/invariance_integers.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::Result;

struct Queries {
  std::vector<std::uint16_t> q;
  std::vector<std::int32_t> starts = {0};
  std::int64_t longest = 0;
};

Queries packed_queries(const Batch& batch, std::span<const RowsOf> pieces) {
  Queries queries;
  const std::int64_t row = batch.query_heads * batch.dim;
  for (const RowsOf& piece : pieces) {
    const auto from = batch.sequences[piece.sequence].q.begin();
    queries.q.insert(queries.q.end(), from + piece.begin * row, from + piece.end * row);
    queries.starts.push_back(queries.starts.back() + static_cast<std::int32_t>(piece.end - piece.begin));
    queries.longest = std::max(queries.longest, piece.end - piece.begin);
  }
  return queries;
}

void set_mask(wavejit_attention_forward_arguments& call, const Batch& batch, const Way& way, std::int64_t most_keys) {
  if (batch.causal) call.mask.bits |= WAVEJIT_MASK_CAUSAL;
  if (batch.kind != nullptr) {
    call.mask.bits |= batch.kind->bit;
    call.mask.*batch.kind->number = batch.number_of_kind;
  }
  const std::int64_t front = way.keys.keys_in_front;
  if (!batch.window_left && front == 0) return;
  call.mask.bits |= WAVEJIT_MASK_WINDOW;
  // What stands in front is hidden of a single row: the window then ends at the sequence's first key.
  call.mask.window_left = static_cast<std::int32_t>(front > 0 ? most_keys - front - 1 : *batch.window_left);
  call.mask.window_right = -1;
}

// Rows see the keys behind their sequence's last, too, which its length hides.
std::vector<std::uint8_t> shown_keys(const Batch& batch, std::span<const RowsOf> pieces, std::int64_t columns) {
  std::vector<std::uint8_t> shown;
  for (const RowsOf& piece : pieces) {
    const std::int64_t keys = keys_of(batch, piece);
    for (std::int64_t row = piece.begin; row < piece.end; ++row) {
      const std::int64_t own = keys - (piece.end - row);
      const attention::KeySpan span =
          batch.kind != nullptr ? batch.kind->keys(own, batch.number_of_kind) : attention::KeySpan{};
      for (std::int64_t key = 0; key < columns; ++key) {
        const bool sees = key >= span.first && key < span.end &&
                          (!batch.causal || (key <= own && (!batch.window_left || key >= own - *batch.window_left)));
        shown.push_back(key >= keys || sees ? 1 : 0);
      }
    }
  }
  return shown;
}

wavejit_tensor per_head(void* data, const Batch& batch) {
  return {.data = data,
          .dtype = WAVEJIT_FP32,
          .reserved = 0,
          .sizes = {1, batch.query_heads, 1, 1},
          .strides = {batch.query_heads, 1, 1, 1}};
}

template <typename Element>
void give_keys(wavejit_attention_forward_arguments& call, Element* elements, const KeyMemory& keys) {
  call.k.data = elements + keys.first_k;
  call.v.data = elements + keys.first_v;
}

// As the keys lie, and garbage where theirs is.
void give_token_scales(wavejit_attention_forward_arguments& call, tools::CallMemory& memory, const Batch& batch,
                       std::span<const RowsOf> pieces, const Way& way) {
  const KeyMemory placed = place_keys(*batch.cache.token_scales, pieces, way.keys);
  std::vector<float> numbers(placed.elements.size());
  std::ranges::transform(placed.elements, numbers.begin(),
                         [&](std::uint16_t half) { return tools::decode(batch.type, half); });
  if (way.other_scales)
    for (float& number : numbers) number *= 2;
  float* device = memory.in(numbers);
  call.scales.token_scales = 1;
  call.scales.k_scale = placed.k;
  call.scales.v_scale = placed.v;
  call.scales.k_scale.dtype = call.scales.v_scale.dtype = WAVEJIT_FP32;
  call.scales.k_scale.data = device + placed.first_k;
  call.scales.v_scale.data = device + placed.first_v;
}

void give_bytes(wavejit_attention_forward_arguments& call, tools::CallMemory& memory, const Batch& batch,
                std::span<const RowsOf> pieces, const KeyMemory& keys, const std::string& target, bool other_scales) {
  const wavejit_dtype format = cache_format(batch, target);
  call.k.dtype = call.v.dtype = format;
  if (batch.cache.queries) {
    call.q.data = memory.in(cache_bytes(batch, format, packed_queries(batch, pieces).q));
    call.q.dtype = format;
  }
  give_keys(call, memory.in(cache_bytes(batch, format, keys.elements)), keys);
  PieceScales scales = scales_of(batch, pieces);
  if (other_scales)
    for (float& scale : scales.k) scale *= 2;
  if (scales.k.empty()) return;
  const auto count = static_cast<std::int64_t>(pieces.size());
  if (batch.cache.queries)
    call.scales.q_scale = wavejit_dense_tensor(memory.in(scales.q), WAVEJIT_FP32, count, 1, batch.kv_heads, 1);
  call.scales.k_scale = wavejit_dense_tensor(memory.in(scales.k), WAVEJIT_FP32, count, 1, batch.kv_heads, 1);
  call.scales.v_scale = wavejit_dense_tensor(memory.in(scales.v), WAVEJIT_FP32, count, 1, batch.kv_heads, 1);
}

void give_integers(wavejit_attention_forward_arguments& call, tools::CallMemory& memory, const Batch& batch,
                   std::span<const std::uint16_t> queries, const KeyMemory& keys, bool other_scales) {
  const std::vector<std::int8_t> of_q = integers_of(batch, queries);
  const std::vector<std::int8_t> of_k = integers_of(batch, keys.elements);
  call.q.dtype = call.k.dtype = WAVEJIT_INT8;
  call.q.data = memory.in(of_q);
  call.k.data = memory.in(of_k) + keys.first_k;
  std::vector<float> q_scales = row_scales(call.q, of_q);
  if (other_scales)
    for (float& scale : q_scales) scale *= 2;
  const auto& q = call.q.sizes;
  const auto& k = call.k.sizes;
  call.scales.q_scale = wavejit_dense_tensor(memory.in(q_scales), WAVEJIT_FP32, q[0], q[1], q[2], 1);
  if (has_key_scales(batch)) {
    call.scales.token_scales = 1;
    const std::vector<float> scales = row_scales(call.k, std::span(of_k).subspan(keys.first_k));
    call.scales.k_scale = wavejit_dense_tensor(memory.in(scales), WAVEJIT_FP32, k[0], k[1], k[2], 1);
  } else {
    call.scales.k_scale = wavejit_dense_tensor(memory.in(head_scales(k[2])), WAVEJIT_FP32, 1, 1, k[2], 1);
  }
}

// A bias of 0 and −∞, whose rows are padded with NaN to multiples of 8.
template <typename Element>
wavejit_tensor bias_of_shown(tools::CallMemory& memory, std::span<const std::uint8_t> shown, std::int64_t rows,
                             std::int64_t columns, wavejit_dtype type, Element hidden) {
  const std::int64_t stride = (columns + 7) / 8 * 8;
  std::vector<Element> bias(static_cast<std::size_t>(rows * stride), static_cast<Element>(~Element{0}));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      bias[static_cast<std::size_t>((row * stride) + column)] =
          shown[static_cast<std::size_t>((row * columns) + column)] != 0 ? Element{0} : hidden;
  wavejit_tensor tensor = wavejit_dense_tensor(memory.in(bias), type, 1, 1, rows, stride);
  tensor.sizes[3] = columns;
  return tensor;
}

}  // namespace

Result<std::optional<std::vector<Answer>>> run_pieces(wavejit_engine* engine, const Batch& batch,
                                                      std::span<const RowsOf> pieces, const Way& way) {
  const Queries queries = packed_queries(batch, pieces);
  const KeyMemory keys = place_keys(way.eight_bits ? *batch.cache.stored : batch, pieces, way.keys);
  const CallLists lists = way.lists ? call_lists_of(batch, pieces, *way.lists) : CallLists();
  const std::int64_t rows = queries.starts.back();
  tools::CallMemory memory(engine);
  const attention::program::RowOutputs outputs(memory, batch.answer_shape(), rows);
  auto call = tools::empty_call<wavejit_attention_forward_arguments>(WAVEJIT_ATTENTION_FORWARD);
  const wavejit_dtype type = batch.type == tools::HalfType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
  call.q = wavejit_dense_tensor(memory.in(queries.q), type, 1, rows, batch.query_heads, batch.dim);
  outputs.describe(call, 1, rows);
  call.k = keys.k;
  call.v = keys.v;
  if (way.eight_bits) give_bytes(call, memory, batch, pieces, keys, wavejit_engine_target(engine), way.other_scales);
  if (way.eight_bits && batch.cache.token_scales)
    give_token_scales(call, memory, batch, pieces, way);
  else if (!way.eight_bits)
    give_keys(call, memory.in(keys.elements), keys);
  if (way.integers) give_integers(call, memory, batch, queries.q, keys, way.other_scales);
  if (!memory.good()) return std::unexpected(memory.good().error());
  call.sequences.count = static_cast<std::int64_t>(pieces.size());
  call.sequences.query_starts = memory.in(queries.starts);
  call.sequences.max_query_length = queries.longest;
  keys.describe(call, memory, way.keys.rows_behind);
  call.page_layout = keys.page_layout;
  if (way.bool_mask || way.bias_by_tile) {
    const std::int64_t columns = way.keys.rows_behind ? keys.k.sizes[1] : keys.longest;
    const std::vector<std::uint8_t> shown = shown_keys(batch, pieces, columns);
    if (way.bool_mask) {
      call.modifiers.bool_mask = wavejit_dense_tensor(memory.in(shown), WAVEJIT_INT8, 1, 1, rows, columns);
    } else {
      constexpr std::uint32_t hidden = 0xFF800000;
      constexpr std::uint16_t hidden_bf16 = 0xFF80;
      constexpr std::uint16_t hidden_fp16 = 0xFC00;
      call.head.flags |= WAVEJIT_BIAS_BY_TILE;
      call.modifiers.bias = way.wide_bias ? bias_of_shown(memory, shown, rows, columns, WAVEJIT_FP32, hidden)
                                          : bias_of_shown(memory, shown, rows, columns, type,
                                                          type == WAVEJIT_BF16 ? hidden_bf16 : hidden_fp16);
    }
  } else {
    set_mask(call, batch, way, keys.longest);
  }
  call.modifiers.softcap = batch.softcap;
  if (!batch.alibi.empty()) call.modifiers.alibi = per_head(memory.in(batch.alibi), batch);
  if (!batch.sink.empty()) call.modifiers.sink = per_head(memory.in(batch.sink), batch);
  call.split.splits = way.splits;
  call.head.flags |= way.hints;
  wavejit_call_report report{};
  report.size = sizeof report;
  if (way.one_launch) {
    call.head.flags |= WAVEJIT_ONE_LAUNCH;
    call.head.report = &report;
  }
  if (way.lists) {
    call.blocks.list_indices = memory.in(lists.masked.indices);
    call.blocks.list_counts = memory.in(lists.masked.counts);
    call.blocks.list_starts = memory.in(lists.masked.starts);
    call.blocks.full_indices = memory.in(lists.whole.indices);
    call.blocks.full_counts = memory.in(lists.whole.counts);
    call.blocks.full_starts = memory.in(lists.whole.starts);
    call.blocks.list_capacity = lists.masked.capacity;
    call.blocks.full_capacity = lists.whole.capacity;
    call.blocks.list_rows = static_cast<std::int32_t>(lists.rows);
    call.blocks.list_keys = static_cast<std::int32_t>(lists.keys);
    call.blocks.list_batches = static_cast<std::int32_t>(pieces.size());
    call.blocks.list_heads = static_cast<std::int32_t>(lists.heads);
    call.blocks.list_row_blocks = lists.row_blocks;
  }
  if (!memory.good()) return std::unexpected(memory.good().error());

  const auto ran = tools::supported(wavejit_attention_forward(engine, &call, nullptr));
  if (!ran) return std::unexpected(ran.error());
  if (!*ran) return std::optional<std::vector<Answer>>();
  auto answers = outputs.read(engine, memory, queries.starts);
  if (answers && way.one_launch && !std::string_view(report.kernel_spec).contains(" merged "))
    return std::optional<std::vector<Answer>>();
  return answers;
}

}  // namespace wavejit::attention_forward::program
