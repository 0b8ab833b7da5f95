// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/program/invariance_cache.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>

#include "templates/attention/program/cache_formats.h"
#include "tools/byte_float.h"

namespace wavejit::attention_forward::program {
namespace {

using tools::ByteType;

// The largest number of e4m3 in the encoding that has fewer.
constexpr float largest = 240;

// A value that both encodings have: those without −0 have 0.
std::uint16_t rounded(const Batch& batch, std::uint16_t half) {
  constexpr float integers_of_one = 4;
  const ByteType type = batch.cache.type;
  const float drawn = tools::decode(batch.type, half) * (type == ByteType::i8 ? integers_of_one : 1);
  const float of_byte = tools::decode(type, tools::encode(type, std::clamp(drawn, -largest, largest)));
  return tools::encode(batch.type, of_byte == 0 ? 0.0 : of_byte);
}

void scale(const Batch& batch, std::vector<std::uint16_t>& elements, std::span<const int> exponents) {
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::size_t head = i / static_cast<std::size_t>(batch.dim) % exponents.size();
    elements[i] = tools::encode(batch.type, std::ldexp(tools::decode(batch.type, elements[i]), exponents[head]));
  }
}

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
      for (std::uint16_t& each : scales)
        each = tools::encode(batch.type, any ? std::ldexp(1.0, static_cast<int>(draws.below(5)) - 2) : 1.0);
      return scales;
    };
    one.k = draw(true);
    one.v = draw(batch.type == tools::HalfType::bf16);
  }
  return drawn;
}

void scale_tokens(const Batch& batch, std::vector<std::uint16_t>& elements, const std::vector<std::uint16_t>& scales) {
  const auto dim = static_cast<std::size_t>(batch.dim);
  for (std::size_t i = 0; i < elements.size(); ++i)
    elements[i] = tools::encode(batch.type, static_cast<double>(tools::decode(batch.type, elements[i])) *
                                                static_cast<double>(tools::decode(batch.type, scales[i / dim])));
}

ByteType byte_type(wavejit_dtype format) { return *tools::byte_type_of(format); }

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
    CacheScales& exponents = batch.cache.scales.emplace_back();
    for (std::int64_t head = 0; head < batch.kv_heads; ++head) {
      exponents.k.push_back(static_cast<int>(draws.below(5)) - 2);
      exponents.v.push_back(static_cast<int>(draws.below(5)) - 2);
      if (batch.cache.queries) exponents.q.push_back(static_cast<int>(draws.below(5)) - 2);
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
    scale_tokens(batch, batch.sequences[i].k, scales.k);
    scale_tokens(batch, batch.sequences[i].v, scales.v);
  }
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

wavejit_dtype cache_format(const Batch& batch, const std::string& target) {
  if (batch.cache.type == ByteType::i8) return WAVEJIT_INT8;
  const bool fnuz = attention::program::e4m3_of(target).ends_with("fnuz");
  if (batch.cache.type == ByteType::e5m2) return fnuz ? WAVEJIT_E5M2_FNUZ : WAVEJIT_E5M2;
  return fnuz ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3;
}

std::vector<std::uint8_t> cache_bytes(const Batch& batch, wavejit_dtype format,
                                      std::span<const std::uint16_t> elements) {
  const ByteType type = byte_type(format);
  std::vector<std::uint8_t> of_half(std::size_t{std::numeric_limits<std::uint16_t>::max()} + 1, tools::nan_of(type));
  for (unsigned byte = 0; byte <= std::numeric_limits<std::uint8_t>::max(); ++byte) {
    const float value = tools::decode(type, static_cast<std::uint8_t>(byte));
    if (std::isfinite(value)) of_half[tools::encode(batch.type, value)] = static_cast<std::uint8_t>(byte);
  }
  std::vector<std::uint8_t> bytes(elements.size());
  std::ranges::transform(elements, bytes.begin(), [&](std::uint16_t half) { return of_half[half]; });
  return bytes;
}

PieceScales scales_of(const Batch& batch, std::span<const RowsOf> pieces) {
  PieceScales scales;
  if (batch.cache.scales.empty()) return scales;
  for (const RowsOf& piece : pieces) {
    const CacheScales& of = batch.cache.scales[piece.sequence];
    for (const int exponent : of.q) scales.q.push_back(std::ldexp(1.0F, exponent));
    for (const int exponent : of.k) scales.k.push_back(std::ldexp(1.0F, exponent));
    for (const int exponent : of.v) scales.v.push_back(std::ldexp(1.0F, exponent));
  }
  return scales;
}

std::string cache_text(const Batch& batch) {
  const std::string type = batch.cache.type == ByteType::i8     ? "i8"
                           : batch.cache.type == ByteType::e5m2 ? "e5m2"
                                                                : "e4m3";
  return type + (batch.cache.token_scales ? ", scales of tokens" : batch.cache.scales.empty() ? "" : ", scaled");
}

}  // namespace wavejit::attention_forward::program
