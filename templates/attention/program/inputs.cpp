// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/inputs.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string_view>
#include <utility>

namespace wavejit::attention::program {

namespace {

constexpr std::size_t table_size = 1 << 16;

// The finaliser of splitmix64: a bijection that leaves no bit where it was.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

double normal_density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi); }
double normal_below(double x) { return std::erfc(-x / std::numbers::sqrt2) / 2; }

// Mid-quantiles of the distribution, rounded to the type.
std::vector<std::uint16_t> table_of(HalfType type, bool uniform) {
  std::vector<std::uint16_t> table(table_size);
  double x = -4.4;
  for (std::size_t i = 0; i < table_size; ++i) {
    const double part = (static_cast<double>(i) + 0.5) / table_size;
    if (uniform) {
      x = 2 * part - 1;
    } else {
      // Newton from the neighbour, which is close.
      for (int step = 0; step < 6; ++step) x -= (normal_below(x) - part) / normal_density(x);
    }
    table[i] = encode(type, x);
  }
  return table;
}

// Made once a process.
const std::vector<std::uint16_t>& table(HalfType type, bool uniform) {
  if (uniform) {
    static const auto fp16 = table_of(HalfType::fp16, true);
    static const auto bf16 = table_of(HalfType::bf16, true);
    return type == HalfType::fp16 ? fp16 : bf16;
  }
  static const auto fp16 = table_of(HalfType::fp16, false);
  static const auto bf16 = table_of(HalfType::bf16, false);
  return type == HalfType::fp16 ? fp16 : bf16;
}

std::vector<float> decoded_of(HalfType type) {
  std::vector<float> decoded(table_size);
  for (std::size_t bits = 0; bits < table_size; ++bits) decoded[bits] = decode(type, static_cast<std::uint16_t>(bits));
  return decoded;
}

const std::vector<float>& decoded(HalfType type) {
  static const auto fp16 = decoded_of(HalfType::fp16);
  static const auto bf16 = decoded_of(HalfType::bf16);
  return type == HalfType::fp16 ? fp16 : bf16;
}

constexpr std::string_view adversarial_prefix = "adversarial:";

}  // namespace

std::optional<Inputs::Pattern> Inputs::pattern_of(const std::string& distribution) {
  if (distribution == "normal" || distribution == "uniform") return Pattern::random;
  if (!distribution.starts_with(adversarial_prefix)) return std::nullopt;
  const std::string name = distribution.substr(adversarial_prefix.size());
  if (name == "one-hot") return Pattern::one_hot;
  if (name == "ascending") return Pattern::ascending;
  if (name == "mixed-rescale") return Pattern::mixed_rescale;
  if (name == "constant") return Pattern::constant;
  return std::nullopt;
}

bool Inputs::known(const std::string& distribution) { return pattern_of(distribution).has_value(); }

std::string Inputs::accepted() {
  return "normal, uniform, adversarial:one-hot, adversarial:ascending, adversarial:mixed-rescale, adversarial:constant";
}

Inputs::Inputs(HalfType type, const std::string& distribution, std::uint64_t seed)
    : type_(type),
      pattern_(pattern_of(distribution).value_or(Pattern::random)),
      seed_(mix(seed)),
      table_(table(type, distribution == "uniform")),
      decoded_(decoded(type)) {}

// q and k of the patterned inputs: zero but for coordinates 0 and 1, which set the score 8 · k / √D of a pair.
float Inputs::patterned(Operand operand, std::int64_t position, std::size_t column) const {
  switch (pattern_) {
    case Pattern::ascending:
      // Every key of 2048 outweighs the one before it: every tile raises every row's maximum.
      if (column != 0) return 0;
      return operand == Operand::q ? 8.0F : static_cast<float>(position % 2048) * 0.25F;
    case Pattern::mixed_rescale:
      // Late in each tile of 64 a peak for every second row: in a wave some rows rescale and their neighbours do not,
      // and the old maximum of those stands far above what the tile holds.
      if (operand == Operand::q) return std::cmp_equal(column, position % 2) ? 8.0F : 0.0F;
      return position % 64 == 60 && std::cmp_equal(column, position / 64 % 2)
                 ? 8.0F * static_cast<float>(position / 64 % 6 + 1)
                 : 0.0F;
    case Pattern::constant:
      return column == 0 ? 1.0F : 0.0F;
    default:
      return 0;
  }
}

void Inputs::fill(Operand operand, std::int64_t row, std::int64_t position, std::span<std::uint16_t> elements) const {
  const bool score_side = operand == Operand::q || operand == Operand::k;
  if (score_side && pattern_ != Pattern::random && pattern_ != Pattern::one_hot) {
    for (std::size_t column = 0; column < elements.size(); ++column)
      elements[column] = encode(type_, static_cast<double>(patterned(operand, position, column)));
    return;
  }
  const std::uint64_t stream =
      mix(seed_ + (static_cast<std::uint64_t>(operand) << 56) + static_cast<std::uint64_t>(row));
  std::uint64_t bits = 0;
  for (std::size_t column = 0; column < elements.size(); ++column) {
    if (column % 4 == 0) bits = mix(stream + column);
    elements[column] = table_[bits & (table_size - 1)];
    bits >>= 16;
  }
  // Scores 64 times as wide: one key a row takes all of the weight.
  if (score_side && pattern_ == Pattern::one_hot) {
    for (std::uint16_t& element : elements) element = encode(type_, 8 * static_cast<double>(decoded_[element]));
  }
}

void Inputs::keep_in_bytes(tools::ByteType type, RowScale scale, bool queries) {
  scale_ = std::move(scale);
  queries_in_bytes_ = queries;
  values_.clear();
  for (int byte = 0; byte < 0x100; ++byte) values_.push_back(tools::decode(type, static_cast<std::uint8_t>(byte)));
  nearest_.clear();
  nearest_.reserve(decoded_.size());
  for (const float value : decoded_) nearest_.push_back(tools::encode(type, value));
}

void Inputs::keep_in_integers(float step, RowScale scale) {
  in_integers_ = true;
  step_ = step;
  scale_ = std::move(scale);
}

float Inputs::integer(float value, float scale) const {
  constexpr float least = -128;
  constexpr float most = 127;
  return std::clamp(std::nearbyint(value / (step_ != 0 ? step_ : scale)), least, most);
}

void Inputs::fill(Operand operand, std::int64_t row, std::int64_t position, std::span<std::uint8_t> bytes) const {
  std::vector<std::uint16_t> stored(bytes.size());
  fill(operand, row, position, std::span<std::uint16_t>(stored));
  if (in_integers_) {
    const float scale = scale_(operand, row);
    for (std::size_t column = 0; column < bytes.size(); ++column)
      bytes[column] = static_cast<std::uint8_t>(static_cast<std::int8_t>(integer(decoded_[stored[column]], scale)));
    return;
  }
  for (std::size_t column = 0; column < bytes.size(); ++column) bytes[column] = nearest_[stored[column]];
}

void Inputs::fill(Operand operand, std::int64_t row, std::int64_t position, std::span<float> elements) const {
  constexpr std::size_t chunk = 256;
  std::array<std::uint16_t, chunk> bits;
  std::vector<std::uint16_t> more;
  std::span<std::uint16_t> stored(bits.data(), std::min(elements.size(), chunk));
  if (elements.size() > chunk) {
    more.resize(elements.size());
    stored = more;
  }
  fill(operand, row, position, stored);
  if (in_integers_ && (operand == Operand::q || operand == Operand::k)) {
    const float scale = scale_(operand, row);
    for (std::size_t column = 0; column < elements.size(); ++column)
      elements[column] = integer(decoded_[stored[column]], scale) * scale;
    return;
  }
  const bool in_bytes = operand == Operand::k || operand == Operand::v || (operand == Operand::q && queries_in_bytes_);
  if (!values_.empty() && in_bytes) {
    const float scale = scale_(operand, row);
    for (std::size_t column = 0; column < elements.size(); ++column)
      elements[column] = values_[nearest_[stored[column]]] * scale;
    return;
  }
  for (std::size_t column = 0; column < elements.size(); ++column) elements[column] = decoded_[stored[column]];
}

float Inputs::bias(std::int64_t row, std::int64_t column) const {
  const std::uint64_t stream =
      mix(seed_ + (static_cast<std::uint64_t>(Operand::bias) << 56) + static_cast<std::uint64_t>(row));
  const auto at = static_cast<std::uint64_t>(column);
  return decoded_[table_[mix(stream + at / 4 * 4) >> (16 * (at % 4)) & (table_size - 1)]];
}

float Inputs::slope(std::int64_t batch, std::int64_t head, std::int64_t heads) const {
  const double usual = std::exp2(-8.0 * static_cast<double>(head + 1) / static_cast<double>(heads));
  const auto place = static_cast<std::uint64_t>(batch * heads + head);
  return static_cast<float>(usual * (1 + 0.25 * static_cast<double>(mix(seed_ + place) >> 40) / (1 << 24)));
}

}  // namespace wavejit::attention::program
