// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_call.h"

#include <string>
#include <string_view>

#include "templates/attention/program/score_rules.h"
#include "templates/attention_forward/program/invariance_cache.h"
#include "tools/call_memory.h"
#include "tools/empty_call.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_forward::program {
namespace {

wavejit_masking mask_of(const Batch& batch) {
  wavejit_masking mask{};
  if (batch.causal) mask.bits |= WAVEJIT_MASK_CAUSAL;
  if (batch.window_left) {
    mask.bits |= WAVEJIT_MASK_WINDOW;
    mask.window_left = static_cast<std::int32_t>(*batch.window_left);
    mask.window_right = -1;
  }
  if (batch.kind != nullptr) {
    mask.bits |= batch.kind->bit;
    mask.*batch.kind->number = batch.number_of_kind;
  }
  return mask;
}

// Rows see the keys behind their sequence's last, too, which its length hides.
std::vector<std::uint8_t> shown_keys(const Batch& batch, std::span<const RowsOf> pieces, std::int64_t columns) {
  std::vector<std::uint8_t> shown;
  for (const RowsOf& piece : pieces) {
    const std::int64_t keys = keys_of(batch, piece);
    const auto rules = rules_of(mask_of(batch), piece.rows(), keys);
    for (std::int64_t row = 0; row < piece.rows(); ++row) {
      const auto seen = visible_keys(rules, row, keys);
      for (std::int64_t key = 0; key < columns; ++key)
        shown.push_back(key >= keys || (key >= seen.first && key < seen.end) ? 1 : 0);
    }
  }
  return shown;
}

// A bias of 0 and −∞, whose rows are padded with NaN to multiples of 8.
template <typename Element>
wavejit_tensor bias_of_shown(CallMemory& memory, std::span<const std::uint8_t> shown, std::int64_t rows,
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
  const auto queries = packed_queries(batch, pieces, batch.query_heads * batch.dim);
  const KeyMemory keys = place_keys(way.eight_bits ? *batch.cache.stored : batch, pieces, way.keys);
  const std::int64_t rows = queries.rows();
  CallMemory memory(engine);
  const RowOutputs outputs(memory, batch.answer_shape(), rows);
  auto call = empty_call<wavejit_attention_forward_arguments>(WAVEJIT_ATTENTION_FORWARD);
  const auto type = static_cast<wavejit_dtype>(type_of(batch.type));
  call.q = wavejit_dense_tensor(memory.in(queries.q), type, 1, rows, batch.query_heads, batch.dim);
  outputs.describe(call, 1, rows);
  call.k = keys.k;
  call.v = keys.v;
  const Given given = {.batch = batch, .pieces = pieces, .way = way, .keys = keys, .queries = queries.q};
  if (way.eight_bits)
    give_bytes(call, memory, given, wavejit_engine_target(engine));
  else
    keys.give(call, memory.in(keys.elements));
  if (way.integers) give_integers(call, memory, given);
  if (!memory.good()) return std::unexpected(memory.good().error());
  queries.describe(call, memory);
  keys.describe(call, memory, way.keys.rows_behind);
  call.pages.page_layout = keys.page_layout;
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
    call.mask = mask_of(batch);
    // What stands in front is hidden of a single row: a window then ends at the sequence's first key.
    if (const std::int64_t front = way.keys.keys_in_front; front > 0) {
      call.mask.bits |= WAVEJIT_MASK_WINDOW;
      call.mask.window_left = static_cast<std::int32_t>(keys.longest - front - 1);
      call.mask.window_right = -1;
    }
  }
  call.modifiers.softcap = batch.softcap;
  call.modifiers.alibi = head_numbers(memory, batch.alibi);
  call.modifiers.sink = head_numbers(memory, batch.sink);
  call.split.splits = way.splits;
  call.head.flags |= way.flags;
  wavejit_call_report report{};
  report.size = sizeof report;
  const bool one_launch = (way.flags & WAVEJIT_ONE_LAUNCH) != 0;
  if (one_launch) call.head.report = &report;
  if (way.lists) give_blocks(call, memory, batch, pieces, *way.lists);
  if (!memory.good()) return std::unexpected(memory.good().error());

  const auto ran = supported(wavejit_attention_forward(engine, &call, nullptr));
  if (!ran) return std::unexpected(ran.error());
  if (!*ran) return std::optional<std::vector<Answer>>();
  auto answers = outputs.read(engine, memory, queries.starts);
  if (answers && one_launch && !std::string_view(report.kernel_spec).contains(" merged "))
    return std::optional<std::vector<Answer>>();
  return answers;
}

}  // namespace wavejit::attention_forward::program
