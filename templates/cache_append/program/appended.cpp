// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/program/appended.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "templates/attention/call/data_type.h"
#include "templates/attention/program/experiment.h"
#include "templates/cache_append/call/descriptor.h"
#include "tools/byte_float.h"

namespace wavejit::cache_append::program {

using namespace tools;
using attention::program::word_behind;
using tools::Result;

namespace {

// With `holes`: every such token has no slot.
constexpr std::int64_t tokens_of_a_hole = 13;

}  // namespace

Said said_of(const ProblemDescriptor& from, std::string text) {
  Said said;
  said.text = std::move(text);
  said.type = attention::told_type(from.source);
  said.batch = from.batch;
  said.tokens = from.tokens;
  said.heads = from.heads;
  said.query_heads = from.query_heads;
  said.key_dims = from.key_dims;
  said.value_dims = from.value_dims;
  said.page_size = from.page_size;
  said.page_layout = from.pages == PageOrder::vectorised        ? WAVEJIT_PAGES_VECTORISED
                     : from.pages == PageOrder::vectorised_keys ? WAVEJIT_PAGES_VECTORISED_KEYS
                                                                : WAVEJIT_PAGES_OF_ROWS;
  said.heads_first = from.pages == PageOrder::hnd;
  said.holes = from.holes;
  said.seed = attention::program::number_in(from.seed, std::uint64_t{1});
  const std::string_view rotary = word_behind(said.text, " rotary=");
  if (!rotary.empty()) {
    said.rotary = rotary.starts_with("halves") ? WAVEJIT_ROTARY_HALVES : WAVEJIT_ROTARY_INTERLEAVED;
    said.rotary_dims = from.rotary_dims;
  }
  const std::string_view angles = word_behind(said.text, " angles=");
  said.table_type = angles == "base"   ? WAVEJIT_DTYPE_NONE
                    : angles == "bf16" ? WAVEJIT_BF16
                    : angles == "fp16" ? WAVEJIT_FP16
                                       : WAVEJIT_FP32;
  said.elements = word_behind(said.text, " elements=");
  if (const std::int32_t cache = attention::told_type(from.cache); tools::byte_type_of(cache)) {
    said.cache = cache;
    said.scales = from.scales == Scales::none ? Scales::heads : from.scales;
    said.head_scales = from.head_scales;
  }
  return said;
}

Appended::Owner Appended::owner(std::int64_t element) const {
  std::size_t side = targets.size() - 1;
  while (targets[side].first > element) --side;
  const Index index = targets[side].layout.index_of(element - targets[side].first);
  if (side == 2) return {side, index, (index[0] * said.tokens) + index[1]};
  return {side, index, owners[static_cast<std::size_t>((index[0] * said.page_size) + index[1])]};
}

Turned Appended::at(std::int64_t element) const {
  const auto [side, index, token] = owner(element);
  if (token < 0) return {.value = 0, .magnitude = 0, .turned = false};
  return of(side, token, index[2], index[3]);
}

Turned Appended::of(std::size_t side, std::int64_t token, std::int64_t at_head, std::int64_t dim) const {
  const auto all = static_cast<std::size_t>(dims(side));
  const auto row = static_cast<std::size_t>((token * heads(side)) + at_head);
  const std::span<const float> head = std::span(sources[side]).subspan(row * all, all);
  const std::int64_t turns = side == 1 ? 0 : said.rotary_dims;
  const std::int64_t position = positions.empty() ? 0 : positions[static_cast<std::size_t>(token)];
  return turned(head, dim, turns, said.rotary == WAVEJIT_ROTARY_INTERLEAVED, [&](std::int64_t pair) -> Angle {
    if (said.table_type == WAVEJIT_DTYPE_NONE) return angle_of_base(position, said.base, pair, turns);
    const auto place = static_cast<std::size_t>((position * turns / 2) + pair);
    return {.cosine = static_cast<double>(cosines[place]), .sine = static_cast<double>(sines[place])};
  });
}

double Appended::allowed(const Turned& exact) const {
  if (!exact.turned) return 0;
  // Half a unit of the type, two roundings of f32 before; of a base, the sines of the hardware.
  const double half = said.half() == HalfType::bf16 ? 0x1p-8 : 0x1p-11;
  const double smallest = said.half() == HalfType::bf16 ? 0x1p-134 : 0x1p-25;
  const double before = said.table_type == WAVEJIT_DTYPE_NONE ? 0x1p-19 : 0x1p-22;
  return (half * std::fabs(exact.value)) + smallest + (before * 1.01 * exact.magnitude);
}

std::shared_ptr<Appended> make_appended(const Said& said) {
  auto all = std::make_shared<Appended>();
  all->said = said;
  const std::int64_t tokens = said.all_tokens();
  const bool by_units = said.page_layout != WAVEJIT_PAGES_OF_ROWS;
  const auto order_of = [&](const char* tensor, bool of_values) {
    if (!by_units && said.apart(tensor)) return Order::dims_apart;
    return attention::program::order_of_pages(said.page_layout, said.heads_first, of_values);
  };
  std::int64_t first = 0;
  for (std::size_t side = 0; side < 3; ++side) {
    const std::int64_t dims = all->dims(side);
    const std::int64_t heads = all->heads(side);
    const Index source = {said.batch, said.tokens, heads, dims};
    const bool none = dims == 0 || heads == 0;
    const Index cache = {said.pages(), said.page_size, heads, dims};
    all->sources_placed.push_back({RowLayout(said.apart("source") ? Order::dims_apart : Order::nhd, source)});
    const Order order = side != 2               ? order_of(side == 0 ? "keys" : "values", side == 1)
                        : said.apart("queries") ? Order::dims_apart
                                                : Order::nhd;
    all->targets.push_back({RowLayout(order, side == 2 ? source : cache), first});
    auto numbers = seeded_values(said.seed + side, none ? 0 : static_cast<std::size_t>(tokens * heads * dims));
    for (float& number : numbers) number = decode(said.half(), encode(said.half(), static_cast<double>(number) * 4));
    all->sources.push_back(std::move(numbers));
    if (!none) first += all->targets.back().layout.count();
  }

  // Pages in another order, tokens of a page side by side: as an engine's tables have them.
  std::int64_t step = (said.pages() / 2) + 1;
  while (std::gcd(step, said.pages()) != 1) ++step;
  all->owners.assign(static_cast<std::size_t>(said.pages() * said.page_size), -1);
  for (std::int64_t token = 0; token < tokens; ++token) {
    const std::int64_t page = token / said.page_size * step % said.pages();
    const bool hole = said.holes && token % tokens_of_a_hole == tokens_of_a_hole - 1;
    all->slots.push_back(hole ? -1 : (page * said.page_size) + (token % said.page_size));
    if (!hole) all->owners[static_cast<std::size_t>(all->slots.back())] = token;
  }
  if (said.head_scales)
    for (const std::size_t side : {0, 1})
      for (const float number : tools::seeded_values(said.seed + 100 + side, static_cast<std::size_t>(said.heads)))
        all->given_scales[side].push_back(0.01F + (std::fabs(number) / 16));
  if (said.rotary == WAVEJIT_ROTARY_NONE) return all;
  for (std::int64_t token = 0; token < tokens; ++token)
    all->positions.push_back(static_cast<std::int32_t>((token * 7 + 5) % table_rows));
  if (said.table_type == WAVEJIT_DTYPE_NONE) return all;
  for (std::int64_t position = 0; position < table_rows; ++position)
    for (std::int64_t pair = 0; pair < said.rotary_dims / 2; ++pair) {
      const Angle angle = angle_of_base(position, base_of_angles, pair, said.rotary_dims);
      const auto rounded = [&](double value) {
        if (said.table_type == WAVEJIT_FP32) return static_cast<float>(value);
        const HalfType type = said.table_type == WAVEJIT_BF16 ? HalfType::bf16 : HalfType::fp16;
        return decode(type, encode(type, value));
      };
      all->cosines.push_back(rounded(angle.cosine));
      all->sines.push_back(rounded(angle.sine));
    }
  return all;
}

std::vector<std::byte> table_bytes(const Said& said, const std::vector<float>& values) {
  if (said.table_type == WAVEJIT_FP32) return tools::bytes_of(values);
  const HalfType type = said.table_type == WAVEJIT_BF16 ? HalfType::bf16 : HalfType::fp16;
  std::vector<std::uint16_t> halves;
  halves.reserve(values.size());
  for (const float value : values) halves.push_back(encode(type, static_cast<double>(value)));
  return tools::bytes_of(halves);
}

std::vector<std::byte> source_bytes(const Appended& all, std::size_t side) {
  const RowLayout& layout = all.sources_placed[side].layout;
  std::vector<std::uint16_t> halves(all.sources[side].size());
  const std::int64_t dims = all.dims(side);
  const std::int64_t heads = all.heads(side);
  for (std::size_t at = 0; at < halves.size(); ++at) {
    const auto element = static_cast<std::int64_t>(at);
    const std::int64_t token = element / (heads * dims);
    const Index index = {token / all.said.tokens, token % all.said.tokens, element / dims % heads, element % dims};
    halves[static_cast<std::size_t>(layout.place_of(index))] =
        encode(all.said.half(), static_cast<double>(all.sources[side][at]));
  }
  return tools::bytes_of(halves);
}

}  // namespace wavejit::cache_append::program
