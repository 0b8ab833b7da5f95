// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_call.h"

#include <algorithm>

#include "tools/device_array.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::checked;
using tools::DeviceArray;
using tools::Result;

constexpr std::uint16_t unwritten = 0x7FFF;  // NaN in both types

// Memory of one call; freed behind it.
class Arrays {
 public:
  explicit Arrays(wavejit_engine* engine) : engine_(engine) {}

  template <typename Element>
  Result<void*> take(const std::vector<Element>& values) {
    if (values.empty()) return nullptr;
    auto array = DeviceArray::allocate(engine_, values.size() * sizeof(Element));
    if (!array) return std::unexpected(array.error());
    if (auto copied = array->copy_in(values.data()); !copied) return std::unexpected(copied.error());
    arrays_.push_back(std::move(*array));
    return arrays_.back().data();
  }

 private:
  wavejit_engine* engine_;
  std::vector<DeviceArray> arrays_;
};

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
  if (batch.causal) call.mask |= WAVEJIT_MASK_CAUSAL;
  const std::int64_t front = way.keys.keys_in_front;
  if (!batch.window_left && front == 0) return;
  call.mask |= WAVEJIT_MASK_WINDOW;
  // What stands in front is hidden of a single row: the window then ends at the sequence's first key.
  call.window_left = static_cast<std::int32_t>(front > 0 ? most_keys - front - 1 : *batch.window_left);
  call.window_right = -1;
}

wavejit_tensor per_head(void* data, const Batch& batch) {
  return {.data = data,
          .dtype = WAVEJIT_FP32,
          .reserved = 0,
          .sizes = {1, batch.query_heads, 1, 1},
          .strides = {batch.query_heads, 1, 1, 1}};
}

std::vector<Answer> by_piece(const Batch& batch, const std::vector<std::int32_t>& starts,
                             const std::vector<std::uint16_t>& o, const std::vector<std::uint32_t>& lse) {
  std::vector<Answer> answers;
  const std::int64_t rows = starts.back();
  const std::int64_t row_elements = batch.query_heads * batch.dim;
  for (std::size_t piece = 0; piece + 1 < starts.size(); ++piece) {
    const std::int64_t begin = starts[piece];
    const std::int64_t end = starts[piece + 1];
    Answer answer;
    answer.o.assign(o.begin() + begin * row_elements, o.begin() + end * row_elements);
    for (std::int64_t row = begin; row < end; ++row)
      for (std::int64_t head = 0; head < batch.query_heads; ++head)
        answer.lse.push_back(lse[static_cast<std::size_t>((head * rows) + row)]);
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace

Result<std::optional<std::vector<Answer>>> run_pieces(wavejit_engine* engine, const Batch& batch,
                                                      std::span<const RowsOf> pieces, const Way& way) {
  const Queries queries = packed_queries(batch, pieces);
  const KeyMemory keys = place_keys(batch, pieces, way.keys);
  const std::int64_t rows = queries.starts.back();
  std::vector<std::uint32_t> lse(static_cast<std::size_t>(rows * batch.query_heads));
  std::vector<std::uint16_t> o(static_cast<std::size_t>(rows * batch.query_heads * batch.dim), unwritten);
  Arrays arrays(engine);
  // Each takes its array, or the call stops here.
  const auto q = arrays.take(queries.q);
  const auto query_starts = arrays.take(queries.starts);
  const auto key_elements = arrays.take(keys.elements);
  const auto key_starts = arrays.take(keys.starts);
  const auto key_lengths = arrays.take(keys.lengths);
  const auto first_keys = arrays.take(keys.first_keys);
  const auto table = arrays.take(keys.table);
  const auto table_starts = arrays.take(keys.table_starts);
  const auto alibi = arrays.take(batch.alibi);
  const auto sink = arrays.take(batch.sink);
  const auto device_lse = arrays.take(lse);
  const auto device_o = arrays.take(o);
  for (const auto* taken : {&q, &query_starts, &key_elements, &key_starts, &key_lengths, &first_keys, &table,
                            &table_starts, &alibi, &sink, &device_lse, &device_o})
    if (!*taken) return std::unexpected(taken->error());

  wavejit_attention_forward_arguments call{};
  call.size = sizeof call;
  const wavejit_dtype type = batch.type == tools::HalfType::bf16 ? WAVEJIT_BF16 : WAVEJIT_FP16;
  call.q = wavejit_dense_tensor(*q, type, 1, rows, batch.query_heads, batch.dim);
  call.o = wavejit_dense_tensor(*device_o, type, 1, rows, batch.query_heads, batch.dim);
  call.k = keys.k;
  call.v = keys.v;
  call.k.data = static_cast<std::uint16_t*>(*key_elements) + keys.first_k;
  call.v.data = static_cast<std::uint16_t*>(*key_elements) + keys.first_v;
  call.lse = {.data = *device_lse,
              .dtype = WAVEJIT_FP32,
              .reserved = 0,
              .sizes = {1, batch.query_heads, rows, 1},
              .strides = {batch.query_heads * rows, rows, 1, 1}};
  call.sequences = static_cast<std::int64_t>(pieces.size());
  call.query_starts = static_cast<const std::int32_t*>(*query_starts);
  call.max_query_length = queries.longest;
  call.key_starts = static_cast<const std::int32_t*>(*key_starts);
  call.key_lengths = static_cast<const std::int32_t*>(*key_lengths);
  call.first_keys = static_cast<const std::int32_t*>(*first_keys);
  if (!way.keys.rows_behind) call.max_key_length = keys.longest;
  call.block_table = static_cast<const std::int32_t*>(*table);
  call.table_starts = static_cast<const std::int32_t*>(*table_starts);
  call.table_columns = keys.table_columns;
  call.table_row_stride = keys.table_row_stride;
  call.page_layout = keys.page_layout;
  set_mask(call, batch, way, keys.longest);
  call.softcap = batch.softcap;
  if (!batch.alibi.empty()) call.alibi = per_head(*alibi, batch);
  if (!batch.sink.empty()) call.sink = per_head(*sink, batch);
  call.splits = way.splits;

  const wavejit_status status = wavejit_attention_forward(engine, &call, nullptr);
  if (status == WAVEJIT_UNSUPPORTED) return std::optional<std::vector<Answer>>();
  if (auto launched = checked(status); !launched) return std::unexpected(launched.error());
  if (auto done = checked(wavejit_device_synchronize(engine)); !done) return std::unexpected(done.error());
  if (auto copied = checked(wavejit_device_copy_out(engine, o.data(), *device_o, o.size() * sizeof o[0])); !copied)
    return std::unexpected(copied.error());
  if (auto copied = checked(wavejit_device_copy_out(engine, lse.data(), *device_lse, lse.size() * sizeof lse[0]));
      !copied)
    return std::unexpected(copied.error());
  return by_piece(batch, queries.starts, o, lse);
}

}  // namespace wavejit::attention_forward::program
