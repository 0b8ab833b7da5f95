// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>

#include "templates/attention/program/cache_formats.h"
#include "tools/byte_float.h"

namespace wavejit::attention_forward::program {
namespace {

// The largest number of e4m3 in the encoding that has fewer.
constexpr float largest = 240;

// A value that both encodings have: those without −0 have 0.
std::uint16_t rounded(const Batch& batch, std::uint16_t half) {
  constexpr float integers_of_one = 4;
  const ByteType type = batch.cache.type;
  const float drawn = decode(batch.type, half) * (type == ByteType::i8 ? integers_of_one : 1);
  const float of_byte = decode(type, encode(type, std::clamp(drawn, -largest, largest)));
  return encode(batch.type, of_byte == 0 ? 0.0 : of_byte);
}

// `scales`: of each head of a row, or of each head of each row.
void scale(const Batch& batch, std::vector<std::uint16_t>& elements, std::span<const float> scales) {
  const auto dim = static_cast<std::size_t>(batch.dim);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const float scaled = decode(batch.type, elements[i]) * scales[i / dim % scales.size()];
    elements[i] = encode(batch.type, static_cast<double>(scaled));
  }
}

float drawn_power(Draws& draws) { return std::ldexp(1.0F, static_cast<int>(draws.below(5)) - 2); }

// With fp16 the scales of values are 1: a weight times its scale is rounded where 16 bits round the weight, and below
// 2⁻¹⁴ that is another number.
std::shared_ptr<const Batch> drawn_token_scales(const Batch& batch, Draws& draws) {
  const auto drawn = std::make_shared<Batch>(batch);
  drawn->dim = 1;
  for (DrawnSequence& one : drawn->sequences) {
    one.q = {};
    const std::size_t numbers = one.k.size() / static_cast<std::size_t>(batch.dim);
    const auto draw = [&](bool any) {
      std::vector<std::uint16_t> scales(numbers);
      for (std::uint16_t& each : scales) each = encode(batch.type, any ? static_cast<double>(drawn_power(draws)) : 1.0);
      return scales;
    };
    one.k = draw(true);
    one.v = draw(batch.type == HalfType::bf16);
  }
  return drawn;
}

std::vector<float> decoded(const Batch& batch, std::span<const std::uint16_t> elements) {
  std::vector<float> numbers(elements.size());
  std::ranges::transform(elements, numbers.begin(), [&](std::uint16_t half) { return decode(batch.type, half); });
  return numbers;
}

void make(Batch& batch) {
  Draws draws(batch.number + 30);
  constexpr std::uint64_t kinds = 3;
  const bool of_heads = batch.number % kinds == 1 || (batch.cache.queries && batch.number % kinds == 2);
  const bool of_tokens = !batch.cache.queries && batch.number % kinds == 2;
  for (DrawnSequence& one : batch.sequences) {
    std::vector<std::vector<std::uint16_t>*> tensors = {&one.k, &one.v};
    if (batch.cache.queries) tensors.push_back(&one.q);
    for (std::vector<std::uint16_t>* elements : tensors)
      for (std::uint16_t& element : *elements) element = rounded(batch, element);
    if (!of_heads) continue;
    CacheScales& scales = batch.cache.scales.emplace_back();
    for (std::int64_t head = 0; head < batch.kv_heads; ++head) {
      scales.k.push_back(drawn_power(draws));
      scales.v.push_back(drawn_power(draws));
      if (batch.cache.queries) scales.q.push_back(drawn_power(draws));
    }
  }
  const auto stored = std::make_shared<Batch>(batch);
  for (DrawnSequence& one : stored->sequences) one.q = {};
  for (std::size_t i = 0; i < batch.cache.scales.size(); ++i) {
    scale(batch, batch.sequences[i].k, batch.cache.scales[i].k);
    scale(batch, batch.sequences[i].v, batch.cache.scales[i].v);
  }
  batch.cache.stored = stored;
  if (!of_tokens) return;
  batch.cache.token_scales = drawn_token_scales(batch, draws);
  for (std::size_t i = 0; i < batch.sequences.size(); ++i) {
    const DrawnSequence& scales = batch.cache.token_scales->sequences[i];
    scale(batch, batch.sequences[i].k, decoded(batch, scales.k));
    scale(batch, batch.sequences[i].v, decoded(batch, scales.v));
  }
}

// Elements as a call over 16 bits would have them; what is no number is NaN.
std::vector<std::uint8_t> cache_bytes(const Batch& batch, std::int32_t format,
                                      std::span<const std::uint16_t> elements) {
  const ByteType type = *byte_type_of(format);
  std::vector<std::uint8_t> of_half(std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1, nan_of(type));
  for (unsigned byte = 0; byte <= std::numeric_limits<std::uint8_t>::max(); ++byte) {
    const float value = decode(type, static_cast<std::uint8_t>(byte));
    if (std::isfinite(value)) of_half[encode(batch.type, value)] = static_cast<std::uint8_t>(byte);
  }
  std::vector<std::uint8_t> bytes(elements.size());
  std::ranges::transform(elements, bytes.begin(), [&](std::uint16_t half) { return of_half[half]; });
  return bytes;
}

// [pieces][kv heads]; empty: none.
CacheScales scales_of(const Batch& batch, std::span<const RowsOf> pieces) {
  CacheScales all;
  if (batch.cache.scales.empty()) return all;
  for (const RowsOf& piece : pieces)
    for (const auto scales : {&CacheScales::q, &CacheScales::k, &CacheScales::v})
      std::ranges::copy(batch.cache.scales[piece.sequence].*scales, std::back_inserter(all.*scales));
  return all;
}

void twice(std::vector<float>& numbers) {
  for (float& number : numbers) number *= 2;
}

// As the keys lie, and garbage where theirs is.
void give_token_scales(wavejit_attention_forward_arguments& call, CallMemory& memory, const Given& given) {
  const KeyMemory placed = place_keys(*given.batch.cache.token_scales, given.pieces, given.way.keys);
  std::vector<float> numbers = decoded(given.batch, placed.elements);
  if (given.way.other_scales) twice(numbers);
  float* device = memory.in(numbers);
  call.scales.token_scales = 1;
  call.scales.k_scale = placed.k;
  call.scales.v_scale = placed.v;
  call.scales.k_scale.dtype = call.scales.v_scale.dtype = WAVEJIT_FP32;
  call.scales.k_scale.data = device;
  call.scales.v_scale.data = device + placed.first_v;
}

}  // namespace

void make_cached(Batch& batch) {
  constexpr std::array<ByteType, 4> types = {ByteType::e4m3, ByteType::e5m2, ByteType::e4m3, ByteType::i8};
  batch.cache.type = types[batch.number % types.size()];
  make(batch);
}

void make_cached_queries(Batch& batch) {
  batch.cache.queries = true;
  make(batch);
}

void give_bytes(wavejit_attention_forward_arguments& call, CallMemory& memory, const Given& given,
                const std::string& target) {
  const Batch& batch = given.batch;
  const std::int32_t format = format_on(target, batch.cache.type);
  call.k.dtype = call.v.dtype = format;
  if (batch.cache.queries) {
    call.q.data = memory.in(cache_bytes(batch, format, given.queries));
    call.q.dtype = format;
  }
  given.keys.give(call, memory.in(cache_bytes(batch, format, given.keys.elements)));
  if (batch.cache.token_scales) return give_token_scales(call, memory, given);
  CacheScales scales = scales_of(batch, given.pieces);
  if (given.way.other_scales) twice(scales.k);
  for (const auto& [tensor, numbers] : {std::pair{&call.scales.q_scale, &scales.q},
                                        {&call.scales.k_scale, &scales.k},
                                        {&call.scales.v_scale, &scales.v}})
    if (!numbers->empty())
      *tensor = wavejit_dense_tensor(memory.in(*numbers), WAVEJIT_FP32, std::ssize(given.pieces), 1, batch.kv_heads, 1);
}

std::string cache_text(const Batch& batch) {
  const std::string type = batch.cache.type == ByteType::i8     ? "i8"
                           : batch.cache.type == ByteType::e5m2 ? "e5m2"
                                                                : "e4m3";
  return type + (batch.cache.token_scales ? ", scales of tokens" : batch.cache.scales.empty() ? "" : ", scaled");
}

}  // namespace wavejit::attention_forward::program
