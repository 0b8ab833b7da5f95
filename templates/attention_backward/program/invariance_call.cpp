// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/program/invariance_call.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "templates/attention_backward/program/device_call.h"
#include "tools/call_memory.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_backward::program {
namespace {

using attention::program::Placement;
using tools::CallMemory;
using tools::checked;
using tools::Result;

Result<std::vector<std::uint32_t>> fetched(wavejit_engine* engine, const void* memory, std::size_t elements,
                                           std::size_t element_bytes) {
  std::vector<std::byte> bytes(elements * element_bytes);
  if (!bytes.empty())
    if (auto copied = checked(wavejit_device_copy_out(engine, bytes.data(), memory, bytes.size())); !copied)
      return std::unexpected(copied.error());
  std::vector<std::uint32_t> bits(elements);
  for (std::size_t i = 0; i < elements; ++i) std::memcpy(&bits[i], bytes.data() + (i * element_bytes), element_bytes);
  return bits;
}

std::vector<std::uint32_t> rows_of(const std::vector<std::uint32_t>& all, const Placement& placement,
                                   std::int64_t first_token, std::int64_t rows) {
  std::vector<std::uint32_t> bits;
  bits.reserve(static_cast<std::size_t>(rows * placement.heads * placement.head_dim));
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t head = 0; head < placement.heads; ++head) {
      const auto from = all.begin() + placement.offset(first_token + row, head);
      bits.insert(bits.end(), from, from + placement.head_dim);
    }
  return bits;
}

void* output_of_sinks(CallMemory& memory, const Arrays& arrays) {
  if (arrays.sinks.empty()) return nullptr;
  return memory.out(arrays.sinks.size() * static_cast<std::size_t>(arrays.experiment.batch) * sizeof(float));
}
Result<std::vector<std::uint32_t>> fetched_sinks(wavejit_engine* engine, const DevicePointers& at,
                                                 const Arrays& arrays) {
  return fetched(engine, at.d_sink, arrays.sinks.size() * static_cast<std::size_t>(arrays.experiment.batch),
                 sizeof(float));
}

// The bits of fp32 gradients, rounded to the batch's type.
std::vector<std::uint32_t> rounded(const Batch& batch, std::vector<std::uint32_t> bits) {
  for (std::uint32_t& each : bits) each = bits_of(batch, std::bit_cast<float>(each));
  return bits;
}

// False: no kernel does it on this engine.
Result<bool> called(wavejit_engine* engine, const wavejit_attention_backward_arguments& call) {
  auto ran = tools::supported(wavejit_attention_backward(engine, &call, nullptr));
  if (ran && *ran)
    if (auto done = checked(wavejit_device_synchronize(engine)); !done) return std::unexpected(done.error());
  return ran;
}

}  // namespace

Result<std::optional<std::vector<Answer>>> run_pieces(wavejit_engine* engine, const Batch& batch,
                                                      std::span<const RowsOf> pieces, const Placing& placing) {
  const Arrays arrays = arranged(batch, pieces, placing);
  const std::size_t bytes = arrays.experiment.output_bytes();
  CallMemory memory(engine);
  // Keys of no rows at all have memory, too.
  const DevicePointers at = {.q = memory.in(arrays.q),
                             .k = arrays.k.empty() ? memory.out(0) : memory.in(arrays.k),
                             .v = arrays.v.empty() ? memory.out(0) : memory.in(arrays.v),
                             .o = memory.in(arrays.o),
                             .d_o = memory.in(arrays.d_o),
                             .lse = memory.in(arrays.lse),
                             .d_lse = memory.in(arrays.d_lse),
                             .sinks = memory.in(arrays.sinks),
                             .slopes = memory.in(arrays.slopes),
                             .query_starts = memory.in(arrays.query_starts),
                             .key_starts = memory.in(arrays.key_starts),
                             .key_lengths = memory.in(arrays.key_lengths),
                             .dq = memory.out(arrays.q.size() * bytes),
                             .dk = memory.out(arrays.k.size() * bytes),
                             .dv = memory.out(arrays.v.size() * bytes),
                             .d_sink = output_of_sinks(memory, arrays)};
  if (!memory.good()) return std::unexpected(memory.good().error());
  const auto ran = called(engine, call_of(arrays, at));
  if (!ran) return std::unexpected(ran.error());
  if (!*ran) return std::optional<std::vector<Answer>>();
  const auto dq = fetched(engine, at.dq, arrays.q.size(), bytes);
  const auto dk = fetched(engine, at.dk, arrays.k.size(), bytes);
  const auto dv = fetched(engine, at.dv, arrays.v.size(), bytes);
  const auto d_sink = fetched_sinks(engine, at, arrays);
  for (const auto* gradient : {&dq, &dk, &dv, &d_sink})
    if (!*gradient) return std::unexpected(gradient->error());

  const Placement queries = attention::program::queries_of(arrays.experiment);
  const Placement keys = attention::program::keys_of(arrays.experiment);
  const Placement values = attention::program::values_of(arrays.experiment);
  std::vector<Answer> answers;
  for (const Sequence& place : attention::program::sequences_of(arrays.experiment))
    answers.push_back({.dq = rows_of(*dq, queries, place.first_query, place.queries),
                       .dk = rows_of(*dk, keys, place.first_key, place.keys),
                       .dv = rows_of(*dv, values, place.first_key, place.keys)});
  const auto heads = static_cast<std::ptrdiff_t>(arrays.sinks.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const auto first = d_sink->begin() + (static_cast<std::ptrdiff_t>(i) * heads);
    answers[i].d_sink.assign(first, first + heads);
  }
  return answers;
}

Result<std::optional<Answer>> run_in_ring(wavejit_engine* engine, const Batch& batch, const RowsOf& whole,
                                          std::span<const std::int64_t> ends) {
  Arrays arrays = arranged(batch, std::span(&whole, 1), {.layout = attention::program::ArrayLayout::bshd});
  const std::vector<std::uint16_t> k = arrays.k;
  const std::vector<std::uint16_t> v = arrays.v;
  attention::program::Experiment& of = arrays.experiment;
  of.output_fp32 = true;
  of.key_lengths.clear();
  arrays.key_lengths.clear();
  CallMemory memory(engine);
  DevicePointers at = {.q = memory.in(arrays.q),
                       .o = memory.in(arrays.o),
                       .d_o = memory.in(arrays.d_o),
                       .lse = memory.in(arrays.lse),
                       .d_lse = memory.in(arrays.d_lse),
                       .sinks = memory.in(arrays.sinks),
                       .dq = memory.out(arrays.q.size() * sizeof(float)),
                       .d_sink = output_of_sinks(memory, arrays)};
  Answer answer;
  const std::int64_t keys = ends.back();
  for (std::size_t piece = 0; piece < ends.size(); ++piece) {
    const std::int64_t first = piece == 0 ? 0 : ends[piece - 1];
    of.key_length = ends[piece] - first;
    // As the whole's diagonal has it, seen from the piece's last key.
    if (batch.causal()) {
      of.mask.bits = WAVEJIT_MASK_WINDOW;
      of.mask.window_left = -1;
      of.mask.window_right = static_cast<std::int32_t>(keys - ends[piece]);
    }
    const auto cut = [&](const std::vector<std::uint16_t>& all, std::int64_t dims) {
      const std::int64_t row = of.kv_heads * dims;
      return std::vector<std::uint16_t>(all.begin() + (first * row), all.begin() + (ends[piece] * row));
    };
    arrays.k = cut(k, of.head_dim_qk);
    arrays.v = cut(v, of.head_dim_v);
    at.k = memory.in(arrays.k);
    at.v = memory.in(arrays.v);
    at.dk = memory.out(arrays.k.size() * sizeof(float));
    at.dv = memory.out(arrays.v.size() * sizeof(float));
    if (!memory.good()) return std::unexpected(memory.good().error());
    wavejit_attention_backward_arguments call = call_of(arrays, at);
    if (piece > 0) call.sums_before = WAVEJIT_SUMS_OF_DQ;
    if (piece + 1 < ends.size()) call.sums_behind = WAVEJIT_SUMS_OF_DQ;
    const auto ran = called(engine, call);
    if (!ran) return std::unexpected(ran.error());
    if (!*ran) return std::optional<Answer>();
    for (const auto& [from, to, elements] :
         {std::tuple(at.dk, &answer.dk, arrays.k.size()), std::tuple(at.dv, &answer.dv, arrays.v.size())}) {
      const auto bits = fetched(engine, from, elements, sizeof(float));
      if (!bits) return std::unexpected(bits.error());
      to->insert(to->end(), bits->begin(), bits->end());
    }
  }
  const auto dq = fetched(engine, at.dq, arrays.q.size(), sizeof(float));
  if (!dq) return std::unexpected(dq.error());
  // Each piece of the keys has it of all rows.
  const auto d_sink = fetched_sinks(engine, at, arrays);
  if (!d_sink) return std::unexpected(d_sink.error());
  return Answer{.dq = rounded(batch, *dq),
                .dk = rounded(batch, std::move(answer.dk)),
                .dv = rounded(batch, std::move(answer.dv)),
                .d_sink = *d_sink};
}

Result<std::optional<Answer>> run_in_runs(wavejit_engine* engine, const Batch& batch, const RowsOf& whole,
                                          std::span<const std::int64_t> ends) {
  const attention::program::Experiment& all = batch.arrays.experiment;
  const std::int64_t rows_of_keys = keys_of(batch, whole) * all.kv_heads;
  const auto of_keys = static_cast<std::size_t>(rows_of_keys * all.head_dim_qk);
  const auto of_values = static_cast<std::size_t>(rows_of_keys * all.head_dim_v);
  CallMemory sums(engine);
  // Keys that only a later piece sees begin with nothing.
  void* const dk = sums.in(std::vector<float>(of_keys));
  void* const dv = sums.in(std::vector<float>(of_values));
  if (!sums.good()) return std::unexpected(sums.good().error());
  Answer answer;
  for (std::size_t piece = 0; piece < ends.size(); ++piece) {
    const RowsOf rows = {.sequence = whole.sequence, .begin = piece == 0 ? 0 : ends[piece - 1], .end = ends[piece]};
    Arrays arrays = arranged(batch, std::span(&rows, 1), {.layout = attention::program::ArrayLayout::bshd});
    arrays.experiment.output_fp32 = true;
    arrays.experiment.key_lengths.clear();
    CallMemory memory(engine);
    const DevicePointers at = {.q = memory.in(arrays.q),
                               .k = memory.in(arrays.k),
                               .v = memory.in(arrays.v),
                               .o = memory.in(arrays.o),
                               .d_o = memory.in(arrays.d_o),
                               .lse = memory.in(arrays.lse),
                               .d_lse = memory.in(arrays.d_lse),
                               .slopes = memory.in(arrays.slopes),
                               .dq = memory.out(arrays.q.size() * sizeof(float)),
                               .dk = dk,
                               .dv = dv};
    if (!memory.good()) return std::unexpected(memory.good().error());
    wavejit_attention_backward_arguments call = call_of(arrays, at);
    if (piece > 0) call.sums_before = WAVEJIT_SUMS_OF_DK_DV;
    if (piece + 1 < ends.size()) call.sums_behind = WAVEJIT_SUMS_OF_DK_DV;
    const auto ran = called(engine, call);
    if (!ran) return std::unexpected(ran.error());
    if (!*ran) return std::optional<Answer>();
    const auto dq = fetched(engine, at.dq, arrays.q.size(), sizeof(float));
    if (!dq) return std::unexpected(dq.error());
    answer.dq.insert(answer.dq.end(), dq->begin(), dq->end());
  }
  for (const auto& [from, to, elements] :
       {std::tuple(dk, &answer.dk, of_keys), std::tuple(dv, &answer.dv, of_values)}) {
    const auto bits = fetched(engine, from, elements, sizeof(float));
    if (!bits) return std::unexpected(bits.error());
    *to = rounded(batch, *bits);
  }
  answer.dq = rounded(batch, std::move(answer.dq));
  return answer;
}

float number_of(const Batch& batch, std::uint32_t bits) {
  if (batch.arrays.experiment.output_fp32) return std::bit_cast<float>(bits);
  return tools::decode(batch.arrays.experiment.type, static_cast<std::uint16_t>(bits));
}

std::uint32_t bits_of(const Batch& batch, float number) {
  if (batch.arrays.experiment.output_fp32) return std::bit_cast<std::uint32_t>(number);
  return tools::encode(batch.arrays.experiment.type, static_cast<double>(number));
}

}  // namespace wavejit::attention_backward::program
