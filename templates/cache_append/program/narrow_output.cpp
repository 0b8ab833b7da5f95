// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/cache_append/program/narrow_output.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace wavejit::cache_append::program {
namespace {

using tools::ByteType;

constexpr std::int64_t scale_bytes = sizeof(float);
constexpr int exponent_bias = 127;  // of E8M0

// Half the distance between neighbours of the format at this magnitude.
double half_unit(ByteType type, double magnitude) {
  if (type == ByteType::i8) return 0.5;
  const bool wide = type == ByteType::e5m2 || type == ByteType::e5m2_fnuz;
  const bool fnuz = type == ByteType::e4m3_fnuz || type == ByteType::e5m2_fnuz;
  const int least = (wide ? -14 : -6) - (fnuz ? 1 : 0);
  const int exponent = magnitude > 0 ? std::max(std::ilogb(magnitude), least) : least;
  return std::ldexp(0.5, exponent - (wide ? 2 : 3));
}

double greatest_of(ByteType type) {
  switch (type) {
    case ByteType::e4m3:
      return 448;
    case ByteType::e4m3_fnuz:
      return 240;
    case ByteType::i8:
      return 127;
    default:
      return 57344;
  }
}

std::int64_t whole_rows(std::int64_t bytes) {
  return (bytes + NarrowOutput::row_bytes - 1) / NarrowOutput::row_bytes * NarrowOutput::row_bytes;
}

}  // namespace

NarrowOutput::NarrowOutput(std::shared_ptr<const Appended> all)
    : all_(std::move(all)), type_(*tools::byte_type_of(all_->said.cache)), limit_(greatest_of(type_)) {
  const Said& said = all_->said;
  const std::int64_t slots = said.pages() * said.page_size;
  const std::int64_t elements[] = {slots * said.heads * said.key_dims, slots * said.heads * said.value_dims};
  const std::int64_t scales = said.scales == Scales::tokens ? slots * said.heads * scale_bytes : 0;
  const std::int64_t queries = said.all_tokens() * said.query_heads * said.key_dims * 2;
  if (in_rows(said.scales)) {
    first_[4] = whole_rows(slots * latent_row(said.scales).columns);
  } else {
    first_[1] = whole_rows(elements[0]);
    first_[2] = first_[1] + whole_rows(elements[1]);
    first_[3] = first_[2] + whole_rows(scales);
    first_[4] = first_[3] + (said.value_dims == 0 ? 0 : whole_rows(scales));
  }
  bytes_ = first_[4] + whole_rows(queries);
  find_scales();
}

Turned NarrowOutput::element(std::size_t side, std::int64_t token, std::int64_t head, std::int64_t dim) const {
  return all_->of(side, token, head, dim);
}

void NarrowOutput::find_scales() {
  const Said& said = all_->said;
  if (said.scales == Scales::heads) return;
  const bool rows = in_rows(said.scales);
  for (std::size_t side = rows ? 1 : 0; side < (said.value_dims == 0 ? 1U : 2U); ++side) {
    const std::int64_t dims = rows ? latent_row(said.scales).tile_dims : all_->dims(side);
    const std::int64_t parts = rows ? latent_row(said.scales).latent_dims / dims : said.heads;
    for (std::int64_t token = 0; token < said.all_tokens(); ++token)
      for (std::int64_t part = 0; part < parts; ++part) {
        Scale scale = {.value = 0, .bound = 0};
        for (std::int64_t dim = 0; dim < dims; ++dim) {
          const Turned of = rows ? element(side, token, 0, (part * dims) + dim) : element(side, token, part, dim);
          scale.value = std::max(scale.value, std::fabs(of.value));
          scale.bound = std::max(scale.bound, all_->allowed(of));
        }
        scale.value /= limit_;
        scale.bound /= limit_;
        if (said.scales == Scales::exponents) {
          scale = {.value = std::exp2(std::max(std::ceil(std::log2(scale.value)), -100.0)), .bound = 0};
        } else {
          scale.value = std::max(scale.value, static_cast<double>(rows ? least_tile_scale : least_token_scale));
          scale.bound += scale.value * 0x1p-23;
        }
        found_[side].push_back(scale);
      }
  }
}

NarrowOutput::Scale NarrowOutput::scale_of(std::size_t side, std::int64_t token, std::int64_t head) const {
  if (!given(side).empty())
    return {.value = static_cast<double>(given(side)[static_cast<std::size_t>(head)]), .bound = 0};
  if (found_[side].empty()) return {};
  const auto parts = static_cast<std::int64_t>(found_[side].size()) / all_->said.all_tokens();
  return found_[side][static_cast<std::size_t>((token * parts) + head)];
}

NarrowOutput::Cell NarrowOutput::cell(std::int64_t at) const {
  const Said& said = all_->said;
  if (at >= first_[4]) {
    const std::int64_t element = (at - first_[4]) / 2;
    const Index index = all_->targets[2].layout.index_of(element);
    return {Kind::half, 2, (index[0] * said.tokens) + index[1], index[2], index[3]};
  }
  if (in_rows(said.scales)) return cell_of_row(at);
  if (at >= first_[2]) {
    const std::size_t side = at >= first_[3] ? 1 : 0;
    const std::int64_t scale = (at - first_[2 + side]) / scale_bytes;
    const std::int64_t slot = scale / said.heads;
    if (slot >= std::ssize(all_->owners)) return {};
    return {Kind::scale, side, owner(slot), scale % said.heads, 0};
  }
  const std::size_t side = at >= first_[1] ? 1 : 0;
  const Index index = all_->targets[side].layout.index_of(at - first_[side]);
  return {Kind::byte, side, owner((index[0] * said.page_size) + index[1]), index[2], index[3]};
}

NarrowOutput::Cell NarrowOutput::cell_of_row(std::int64_t at) const {
  const Said& said = all_->said;
  const LatentRow& row = latent_row(said.scales);
  const std::int64_t page_bytes = said.page_size * row.columns;
  const std::int64_t page = at / page_bytes;
  const std::int64_t in_page = at % page_bytes;
  const auto slot = [&](std::int64_t key) { return owner((page * said.page_size) + key); };
  if (in_page >= said.page_size * row.stride) {
    const std::int64_t exponent = in_page - (said.page_size * row.stride);
    const std::int64_t tile = exponent % exponents_of_row;
    if (tile >= row.latent_dims / row.tile_dims) return {};
    return {Kind::exponent, 1, slot(exponent / exponents_of_row), tile, 0};
  }
  const std::int64_t token = slot(in_page / row.stride);
  const std::int64_t in_row = in_page % row.stride;
  if (in_row < row.latent_dims) return {Kind::byte, 1, token, 0, in_row};
  if (in_row < row.rope) return {Kind::scale, 1, token, (in_row - row.latent_dims) / scale_bytes, 0};
  return {Kind::half, 0, token, 0, (in_row - row.rope) / 2};
}

std::vector<std::pair<std::size_t, std::vector<std::byte>>> NarrowOutput::before() const {
  std::vector<std::pair<std::size_t, std::vector<std::byte>>> before;
  std::int64_t begin = 0;
  for (std::int64_t at = 0; at <= bytes_; ++at) {
    if (at < bytes_ && cell(at).token < 0) continue;
    if (at > begin)
      before.emplace_back(static_cast<std::size_t>(begin),
                          std::vector<std::byte>(static_cast<std::size_t>(at - begin)));
    begin = at + 1;
  }
  return before;
}

float NarrowOutput::read(std::span<const std::byte> row, std::int64_t number, std::int64_t column) const {
  const Kind kind = cell(number * row_bytes).kind;
  const std::int64_t at = column * width(kind);
  if (at >= row_bytes) return 0;
  const std::byte* bytes = row.data() + at;
  if (kind == Kind::scale) {
    float scale = 0;
    std::memcpy(&scale, bytes, sizeof scale);
    return scale;
  }
  if (kind == Kind::half) {
    std::uint16_t half = 0;
    std::memcpy(&half, bytes, sizeof half);
    return tools::decode(all_->said.half(), half);
  }
  const auto byte = static_cast<std::uint8_t>(*bytes);
  return kind == Kind::exponent ? static_cast<float>(byte) : tools::decode(type_, byte);
}

NarrowOutput::Answer NarrowOutput::answer(std::int64_t row, std::int64_t column) const {
  const std::int64_t in_row = column * width(cell(row * row_bytes).kind);
  if (in_row >= row_bytes) return {};
  const Cell of = cell((row * row_bytes) + in_row);
  if (of.token < 0) return {};
  if (of.kind == Kind::exponent)
    return {.value = std::log2(scale_of(of.side, of.token, of.head).value) + exponent_bias, .bound = 0};
  if (of.kind == Kind::scale) {
    const Scale scale = scale_of(of.side, of.token, of.head);
    return {.value = scale.value, .bound = scale.bound};
  }
  const Turned exact = element(of.side, of.token, of.head, of.dim);
  if (of.kind == Kind::half) return {.value = exact.value, .bound = all_->allowed(exact)};
  const bool rows = in_rows(all_->said.scales);
  const Scale scale = scale_of(of.side, of.token, rows ? of.dim / latent_row(all_->said.scales).tile_dims : of.head);
  const double least = type_ == ByteType::i8 ? -limit_ - 1 : -limit_;
  const double quotient = exact.value / scale.value;
  const double slack =
      (all_->allowed(exact) / scale.value) + (std::fabs(quotient) * ((scale.bound / scale.value) + 0x1p-22));
  return {.value = std::clamp(quotient, least, limit_), .bound = half_unit(type_, std::fabs(quotient) + slack) + slack};
}

void NarrowOutput::place(wavejit_cache_append_arguments& call, void* output, void* k_scales, void* v_scales) const {
  const Said& said = all_->said;
  char* memory = static_cast<char*>(output);
  if (said.query_heads != 0) {
    call.q_out = all_->targets[2].tensor(nullptr, said.type);
    call.q_out.data = memory + first_[4];
  }
  if (in_rows(said.scales)) {
    call.v_cache = {};
    call.k_cache = wavejit_dense_tensor(memory, static_cast<wavejit_dtype>(said.cache), said.pages(), said.page_size, 1,
                                        latent_row(said.scales).columns);
    return;
  }
  const bool tokens = said.scales == Scales::tokens;
  call.scales.token_scales = tokens ? 1 : 0;
  const std::pair<wavejit_tensor*, wavejit_tensor*> sides[] = {{&call.k_cache, &call.scales.k_scale},
                                                               {&call.v_cache, &call.scales.v_scale}};
  for (const std::size_t side : {0, 1}) {
    if (all_->sources[side].empty()) continue;
    wavejit_tensor& cache = *sides[side].first;
    wavejit_tensor& scale = *sides[side].second;
    cache = all_->targets[side].tensor(nullptr, said.cache);
    cache.data = memory + first_[side];
    if (tokens)
      scale =
          wavejit_dense_tensor(memory + first_[2 + side], WAVEJIT_FP32, said.pages(), said.page_size, said.heads, 1);
    else if (!given(side).empty())
      scale = wavejit_dense_tensor(side == 0 ? k_scales : v_scales, WAVEJIT_FP32, 1, 1, said.heads, 1);
  }
}

tools::Comparison NarrowOutput::comparison(std::span<const std::byte> bytes) const {
  tools::BoundChecker checker;
  for (std::int64_t row = 0; row < rows(); ++row) {
    double exact[row_bytes];
    double bounds[row_bytes];
    float result[row_bytes];
    const auto begin = static_cast<std::size_t>(row * row_bytes);
    for (std::int64_t column = 0; column < row_bytes; ++column) {
      const Answer expected = answer(row, column);
      exact[column] = expected.value;
      bounds[column] = expected.bound;
      result[column] = read(bytes.subspan(begin, row_bytes), row, column);
    }
    const Cell first = cell(row * row_bytes);
    const std::int64_t tokens = all_->said.tokens;
    const bool nobodys = first.token < 0;
    checker.row({.sequence = nobodys ? 0 : first.token / tokens,
                 .token = nobodys ? -1 : first.token % tokens,
                 .head = first.head},
                exact, bounds, result);
  }
  return checker.comparison();
}

std::vector<float> NarrowOutput::numbers(std::span<const std::byte> bytes, std::size_t side) const {
  const Said& said = all_->said;
  const bool in_row = in_rows(said.scales) && side != 2;
  const LatentRow& row = latent_row(said.scales);
  const RowLayout& layout = all_->targets[side].layout;
  const bool half = side == 2 || (in_row && side == 0);
  std::vector<float> numbers;
  numbers.reserve(static_cast<std::size_t>(layout.count()));
  const auto [outer, length, heads, dims] = layout.sizes();
  for (std::int64_t at = 0; at < layout.count(); ++at) {
    const Index index = {at / (length * heads * dims), at / (heads * dims) % length, at / dims % heads, at % dims};
    const std::int64_t in_page = (index[1] * row.stride) + (side == 0 ? row.rope + (2 * index[3]) : index[3]);
    const std::int64_t place = in_row      ? (index[0] * said.page_size * row.columns) + in_page
                               : side == 2 ? first_[4] + (2 * layout.place_of(index))
                                           : first_[side] + layout.place_of(index);
    const std::byte* element = bytes.data() + place;
    std::uint16_t bits = 0;
    if (half) std::memcpy(&bits, element, sizeof bits);
    numbers.push_back(half ? tools::decode(said.half(), bits)
                           : tools::decode(type_, static_cast<std::uint8_t>(*element)));
  }
  return numbers;
}

std::int64_t NarrowOutput::scales_of_slot() const {
  const Scales scales = all_->said.scales;
  return in_rows(scales) ? latent_row(scales).latent_dims / latent_row(scales).tile_dims : all_->said.heads;
}

std::vector<float> NarrowOutput::scales(std::span<const std::byte> bytes, std::size_t side) const {
  const Said& said = all_->said;
  const LatentRow& row = latent_row(said.scales);
  std::vector<float> scales;
  for (std::int64_t slot = 0; slot < said.pages() * said.page_size; ++slot)
    for (std::int64_t part = 0; part < scales_of_slot(); ++part) {
      const std::int64_t key = slot % said.page_size;
      const std::int64_t page = slot / said.page_size * said.page_size * row.columns;
      if (said.scales == Scales::exponents) {
        const std::int64_t at = page + (said.page_size * row.stride) + (key * exponents_of_row) + part;
        const auto exponent = static_cast<std::uint8_t>(bytes[static_cast<std::size_t>(at)]);
        scales.push_back(std::ldexp(1.0F, exponent - exponent_bias));
        continue;
      }
      const std::int64_t at = said.scales == Scales::tiles
                                  ? page + (key * row.stride) + row.latent_dims + (part * scale_bytes)
                                  : first_[2 + side] + (((slot * said.heads) + part) * scale_bytes);
      float scale = 0;
      std::memcpy(&scale, bytes.data() + at, sizeof scale);
      scales.push_back(scale);
    }
  return scales;
}

}  // namespace wavejit::cache_append::program
