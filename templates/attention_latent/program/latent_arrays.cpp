// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/program/latent_arrays.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

#include "templates/attention/call/data_type.h"
#include "templates/attention/program/cache_bytes.h"
#include "templates/attention_latent/call/descriptor.h"
#include "templates/attention_latent/kernel/spec.h"
#include "tools/array_problem.h"
#include "tools/byte_float.h"
#include "tools/canonical_line.h"

namespace wavejit::attention_latent::program {
namespace {

using attention::program::Experiment;
using attention::program::Sequence;
using tools::decode;
using tools::encode;
using tools::HalfType;

constexpr std::uint16_t not_a_number = 0x7FFF;  // in bf16 and in fp16

// A hash of three numbers: the same on every machine.
std::uint64_t mixed(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = (a * 0x9E3779B97F4A7C15U) + (b * 0xBF58476D1CE4E5B9U) + (c * 0x94D049BB133111EBU) + 1;
  x ^= x >> 30U;
  x *= 0xBF58476D1CE4E5B9U;
  x ^= x >> 27U;
  x *= 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

// What a column of a head's up-projection of keys has: one number, in one row.
struct Column {
  std::size_t row;
  double factor;
};
Column column_of(const Experiment& experiment, std::int64_t head, std::int64_t column) {
  const std::uint64_t bits =
      mixed(experiment.seed, static_cast<std::uint64_t>(head), static_cast<std::uint64_t>(column));
  const double magnitude = (bits & 256U) != 0 ? 0.5 : 1;
  return {.row = static_cast<std::size_t>(bits % static_cast<std::uint64_t>(nope_dims)),
          .factor = (bits & 512U) != 0 ? magnitude : -magnitude};
}

void fill_queries(LatentArrays& arrays, bool with_exact) {
  const Experiment& of = arrays.experiment;
  const std::int64_t rows = attention::program::queries_of(of).rows();
  const auto latent = static_cast<std::size_t>(arrays.latent());
  const auto rope = static_cast<std::size_t>(arrays.rope());
  // Numbers have few bits, and are so large that a row has keys that count and keys that do not.
  constexpr float spread = 6;
  constexpr float step = 0.25F;
  const std::vector<float> before = tools::seeded_values(of.seed, static_cast<std::size_t>(rows * nope_dims));
  const std::vector<float> behind = tools::seeded_values(of.seed + 1, static_cast<std::size_t>(rows) * rope);
  const std::size_t stride = arrays.apart ? latent : latent + rope;
  arrays.q.resize(static_cast<std::size_t>(rows) * stride);
  if (arrays.apart) arrays.q_rope.resize(static_cast<std::size_t>(rows) * rope);
  std::vector<Column> columns;
  for (std::int64_t head = 0; head < of.query_heads; ++head)
    for (std::int64_t column = 0; column < arrays.latent(); ++column) columns.push_back(column_of(of, head, column));
  const auto nope_of = [&](std::size_t row, std::size_t dim) {
    return std::round(before[(row * nope_dims) + dim] * spread / step) * step;
  };
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows); ++row) {
    const std::size_t head = row % static_cast<std::size_t>(of.query_heads);
    for (std::size_t column = 0; column < latent; ++column) {
      const Column& up = columns[(head * latent) + column];
      arrays.q[(row * stride) + column] = encode(of.type, up.factor * static_cast<double>(nope_of(row, up.row)));
    }
    std::uint16_t* to = arrays.apart ? arrays.q_rope.data() + (row * rope) : arrays.q.data() + (row * stride) + latent;
    for (std::size_t dim = 0; dim < rope; ++dim)
      to[dim] = encode(of.type, static_cast<double>(spread * behind[(row * rope) + dim]));
    if (!with_exact) continue;
    for (std::size_t dim = 0; dim < nope_dims; ++dim) arrays.nope.push_back(static_cast<double>(nope_of(row, dim)));
    for (std::size_t dim = 0; dim < rope; ++dim)
      arrays.q_ropes.push_back(static_cast<double>(decode(of.type, to[dim])));
  }
}

double scale_of_sequence(const LatentArrays& arrays, std::size_t sequence) {
  if (arrays.k_scales.empty()) return 1;
  return static_cast<double>(arrays.k_scales[arrays.k_scales.size() == 1 ? 0 : sequence]);
}

constexpr int exponent_columns = 64;

// Where rows with exponents stand: bytes from the first page (sequence) on.
class ExponentRows {
 public:
  static constexpr std::size_t row_bytes = 576;
  explicit ExponentRows(const LatentArrays& arrays)
      : keys_(static_cast<std::size_t>(arrays.experiment.paged()
                                           ? arrays.experiment.page_size
                                           : attention::program::keys_of(arrays.experiment).length)),
        stride_(static_cast<std::size_t>(arrays.key_stride(static_cast<std::int64_t>(keys_)))) {}
  std::size_t row(std::size_t slot) const { return (slot / keys_ * stride_) + (slot % keys_ * row_bytes); }
  std::size_t exponents(std::size_t slot) const {
    return (slot / keys_ * stride_) + (keys_ * row_bytes) + (slot % keys_ * exponent_row_bytes);
  }
  std::size_t bytes(std::size_t slots) const { return slots / keys_ * stride_; }

 private:
  std::size_t keys_;
  std::size_t stride_;
};

void fill_second_keys(LatentArrays& arrays) {
  const auto wide = static_cast<std::ptrdiff_t>(arrays.apart ? arrays.latent() : arrays.latent() + arrays.rope());
  const auto turn = [](const auto& from, auto& to, std::ptrdiff_t columns) {
    to.clear();
    for (auto slot = from.end(); slot != from.begin(); slot -= columns) to.insert(to.end(), slot - columns, slot);
  };
  turn(arrays.k, arrays.second_k, wide);
  if (arrays.row_scales != exponent_columns) return turn(arrays.k_bytes, arrays.second_k_bytes, arrays.key_columns());
  arrays.second_k_bytes = arrays.k_bytes;
  const std::size_t slots = arrays.k.size() / static_cast<std::size_t>(wide);
  const ExponentRows rows(arrays);
  for (std::size_t slot = 0; slot < slots; ++slot) {
    std::copy_n(arrays.k_bytes.data() + rows.row(slots - 1 - slot), ExponentRows::row_bytes,
                arrays.second_k_bytes.data() + rows.row(slot));
    std::copy_n(arrays.k_bytes.data() + rows.exponents(slots - 1 - slot), exponent_row_bytes,
                arrays.second_k_bytes.data() + rows.exponents(slot));
  }
}

// Rows of bytes with a scale for each 128 columns of V, and the rope in bf16 behind them.
class ScaledRows {
 public:
  ScaledRows(LatentArrays& arrays, tools::ByteType type) : arrays_(arrays), type_(type) {
    // NaN as a byte, as a scale and as a number of the rope.
    arrays_.k_bytes.assign(arrays_.k.size() / columns_of_all() * row_bytes(), 0xFF);
    for (std::size_t row = 0; row < arrays_.k_bytes.size(); row += row_bytes())
      std::fill_n(arrays_.k_bytes.begin() + static_cast<std::ptrdiff_t>(row), arrays_.latent(), tools::nan_of(type));
  }
  // Puts what is nearest to `value` there; returns what it is then, before it is rounded to the queries' type.
  double put(std::size_t slot, std::size_t dim, double value) {
    std::uint8_t* row = arrays_.k_bytes.data() + (slot * row_bytes());
    const auto latent = static_cast<std::size_t>(arrays_.latent());
    std::uint8_t* scales = row + latent;
    if (dim >= latent) {
      const std::uint16_t bits = encode(tools::HalfType::bf16, value);
      std::uint8_t* ropes = scales + (latent / group * sizeof(float));
      std::memcpy(ropes + ((dim - latent) * sizeof bits), &bits, sizeof bits);
      return static_cast<double>(decode(tools::HalfType::bf16, bits));
    }
    // Powers of two and others.
    const std::uint64_t drawn = mixed(arrays_.experiment.seed + 6, slot, dim / group);
    const float scale = drawn % 4 == 0 ? 0.25F : 0.001F + (static_cast<float>(drawn % 1000) / 300.0F);
    std::memcpy(scales + (dim / group * sizeof scale), &scale, sizeof scale);
    row[dim] = tools::encode(type_, static_cast<float>(value) / scale);
    return static_cast<double>(tools::decode(type_, row[dim]) * scale);
  }

 private:
  static constexpr std::size_t group = 128;
  std::size_t row_bytes() const { return static_cast<std::size_t>(arrays_.key_columns()); }
  std::size_t columns_of_all() const { return static_cast<std::size_t>(arrays_.latent() + arrays_.rope()); }

  LatentArrays& arrays_;
  tools::ByteType type_;
};

// Rows of bytes with a power of two for each 64 columns, the last 64 in bf16.
class RaisedRows {
 public:
  RaisedRows(LatentArrays& arrays, tools::ByteType type) : arrays_(arrays), rows_(arrays), type_(type) {
    const std::size_t slots = arrays.k.size() / static_cast<std::size_t>(arrays.latent());
    // NaN as an exponent and as a number of the rope.
    arrays_.k_bytes.assign(rows_.bytes(slots), 0xFF);
    for (std::size_t slot = 0; slot < slots; ++slot)
      std::fill_n(arrays_.k_bytes.begin() + static_cast<std::ptrdiff_t>(rows_.row(slot)), bytes_of_row,
                  tools::nan_of(type));
  }
  double put(std::size_t slot, std::size_t dim, double value) {
    std::uint8_t* row = arrays_.k_bytes.data() + rows_.row(slot);
    if (dim >= bytes_of_row) {
      const std::uint16_t bits = encode(tools::HalfType::bf16, value);
      std::memcpy(row + bytes_of_row + ((dim - bytes_of_row) * sizeof bits), &bits, sizeof bits);
      return static_cast<double>(decode(tools::HalfType::bf16, bits));
    }
    constexpr int bias = 127;
    const std::size_t group = dim / exponent_columns;
    int power = static_cast<int>(mixed(arrays_.experiment.seed + 6, slot, group) % 9) - 5;
    // Numbers that are subnormal in bf16, and nothing else in these columns.
    const bool least = arrays_.has_least_exponents && group < 2;
    if (least) power = static_cast<int>(group) - bias;
    arrays_.k_bytes[rows_.exponents(slot) + group] = static_cast<std::uint8_t>(power + bias);
    const double scale = std::ldexp(1.0, power);
    row[dim] = tools::encode(type_, static_cast<float>(least ? value : value / scale));
    return static_cast<double>(tools::decode(type_, row[dim])) * scale;
  }

 private:
  static constexpr std::size_t bytes_of_row = 448;
  LatentArrays& arrays_;
  ExponentRows rows_;
  tools::ByteType type_;
};

void fill_keys(LatentArrays& arrays, bool with_exact) {
  const Experiment& of = arrays.experiment;
  const attention::program::KeySlots slots(of);
  arrays.table = slots.table().entries;
  arrays.pages = slots.table().pages;
  arrays.table_columns = slots.table().columns;
  const auto latent = static_cast<std::size_t>(arrays.latent());
  const auto rope = static_cast<std::size_t>(arrays.rope());
  const std::size_t stride = arrays.apart ? latent : latent + rope;
  arrays.k.assign(static_cast<std::size_t>(slots.count()) * stride, not_a_number);
  if (arrays.apart) arrays.k_rope.assign(static_cast<std::size_t>(slots.count()) * rope, not_a_number);
  const auto byte_type = tools::byte_type_of(of.cache_dtype);
  if (byte_type) {
    arrays.k_bytes.assign(arrays.k.size(), tools::nan_of(*byte_type));
    arrays.k_rope_bytes.assign(arrays.k_rope.size(), tools::nan_of(*byte_type));
    arrays.k_scales = attention::program::cache_scales_of(of, attention::program::Operand::k);
  }
  std::optional<ScaledRows> scaled;
  std::optional<RaisedRows> raised;
  if (byte_type && arrays.row_scales == exponent_columns)
    raised.emplace(arrays, *byte_type);
  else if (byte_type && arrays.row_scales != 0)
    scaled.emplace(arrays, *byte_type);
  auto [lists, second_lists] = attention::program::both_lists_of(of);
  arrays.lists = std::move(lists);
  arrays.second_lists = std::move(second_lists);
  const std::vector<Sequence> sequences = attention::program::sequences_of(of);
  for (std::size_t b = 0; b < sequences.size(); ++b) {
    const Sequence& sequence = sequences[b];
    const auto count = static_cast<std::size_t>(sequence.keys);
    const std::vector<float> values = tools::seeded_values(of.seed + 2 + b, count * (latent + rope));
    std::vector<double> compressed;
    std::vector<double> ropes;
    for (std::size_t key = 0; key < count; ++key) {
      const std::int64_t slot = slots.of(static_cast<std::int64_t>(b), static_cast<std::int64_t>(key));
      std::uint16_t* to = arrays.k.data() + (static_cast<std::size_t>(slot) * stride);
      std::uint16_t* behind =
          arrays.apart ? arrays.k_rope.data() + (static_cast<std::size_t>(slot) * rope) : to + latent;
      for (std::size_t dim = 0; dim < latent + rope; ++dim) {
        std::uint16_t& element = dim < latent ? to[dim] : behind[dim - latent];
        double value = static_cast<double>(values[(key * (latent + rope)) + dim]);
        if (raised) {
          value = raised->put(static_cast<std::size_t>(slot), dim, value);
        } else if (scaled) {
          value = scaled->put(static_cast<std::size_t>(slot), dim, value);
        } else if (byte_type) {
          const std::uint8_t byte = tools::encode(*byte_type, static_cast<float>(value));
          const auto place = static_cast<std::size_t>(
              &element - (dim < latent || !arrays.apart ? arrays.k.data() : arrays.k_rope.data()));
          (dim < latent || !arrays.apart ? arrays.k_bytes : arrays.k_rope_bytes)[place] = byte;
          value = static_cast<double>(tools::decode(*byte_type, byte));
        }
        element = encode(of.type, value);
        if (with_exact)
          (dim < latent ? compressed : ropes)
              .push_back(static_cast<double>(decode(of.type, element)) * scale_of_sequence(arrays, b));
      }
    }
    arrays.compressed.push_back(std::move(compressed));
    arrays.ropes.push_back(std::move(ropes));
  }
  if (arrays.second_lists.top_k != 0) fill_second_keys(arrays);
}

Experiment experiment_of(const ProblemDescriptor& from, std::string text) {
  Experiment to = attention::program::experiment_with(from, std::move(text));
  to.type = from.dtype == DataType::bf16 ? HalfType::bf16 : HalfType::fp16;
  const std::int32_t cache = attention::told_type(attention::type_in(from.cache, from.dtype));
  to.cache_dtype = cache >= WAVEJIT_E4M3 ? cache : std::int32_t{WAVEJIT_DTYPE_NONE};
  to.cache_scales = from.cache_scales;
  to.layout = from.page_size != 0 ? attention::program::ArrayLayout::paged
              : from.packed       ? attention::program::ArrayLayout::packed
                                  : attention::program::ArrayLayout::bshd;
  to.page_size = from.page_size;
  to.query_heads = from.heads;
  to.kv_heads = 1;
  to.head_dim_qk = from.head_dim_qk;
  to.head_dim_v = from.head_dim_v;
  to.modifiers[static_cast<std::size_t>(attention::Modifier::sink)].extent =
      from.of(attention::Modifier::sink).there ? attention::Extent::one : attention::Extent::none;
  to.lse = from.lse;
  to.splits = static_cast<std::int32_t>(from.splits);
  to.scale = attention::program::number_in(from.scale, default_scale(from));
  return to;
}

}  // namespace

tools::Result<Experiment> parse_experiment(const std::string& descriptor) {
  return tools::parsed_into(descriptor, parse_descriptor, experiment_of);
}

tools::Result<LatentArrays> make_latent_arrays(const std::string& descriptor, bool with_exact, bool least_exponents) {
  auto experiment = parse_experiment(descriptor);
  if (!experiment) return std::unexpected(experiment.error());
  LatentArrays arrays;
  arrays.experiment = *std::move(experiment);
  arrays.apart = arrays.experiment.says("apart");
  for (const int columns : {128, exponent_columns})
    if (arrays.experiment.says("row_scales=" + std::to_string(columns))) arrays.row_scales = columns;
  arrays.has_least_exponents = least_exponents;
  fill_queries(arrays, with_exact);
  fill_keys(arrays, with_exact);
  static_cast<attention::program::SequenceArrays&>(arrays) = attention::program::sequence_arrays_of(arrays.experiment);
  if (arrays.experiment.has(attention::Modifier::sink)) {
    arrays.sinks =
        tools::seeded_values(arrays.experiment.seed + 3, static_cast<std::size_t>(arrays.experiment.query_heads));
    for (float& sink : arrays.sinks) sink *= 4;
  }
  return arrays;
}

LatentArrays with_page_list(LatentArrays arrays) {
  const std::vector<std::int32_t> rows = std::exchange(arrays.table, {});
  const std::int64_t size = arrays.experiment.page_size;
  arrays.table_starts = {0};
  std::size_t row = 0;
  for (const Sequence& sequence : attention::program::sequences_of(arrays.experiment)) {
    const auto first = rows.begin() + (static_cast<std::ptrdiff_t>(row++) * arrays.table_columns);
    arrays.table.insert(arrays.table.end(), first, first + ((sequence.keys + size - 1) / size));
    arrays.table_starts.push_back(static_cast<std::int32_t>(arrays.table.size()));
  }
  arrays.table_columns = std::ssize(arrays.table);
  return arrays;
}

LatentArrays widened(LatentArrays arrays) {
  if (std::exchange(arrays.row_scales, 0) != 0) {
    // k has the numbers already.
    arrays.k_bytes.clear();
    arrays.second_k_bytes.clear();
    arrays.experiment.cache_dtype = WAVEJIT_DTYPE_NONE;
    return arrays;
  }
  const Experiment& of = arrays.experiment;
  const std::vector<Sequence> sequences = attention::program::sequences_of(of);
  const std::size_t stride = static_cast<std::size_t>(arrays.apart ? arrays.latent() : arrays.latent() + arrays.rope());
  for (std::size_t b = 0; b < sequences.size(); ++b)
    for (std::int64_t key = 0; key < sequences[b].keys; ++key) {
      std::int64_t slot = sequences[b].first_key + key;
      if (of.paged()) {
        const std::int64_t column = (static_cast<std::int64_t>(b) * arrays.table_columns) + (key / of.page_size);
        slot = (arrays.table[static_cast<std::size_t>(column)] * of.page_size) + (key % of.page_size);
      }
      const auto scale = [&](std::vector<std::uint16_t>& elements, std::size_t columns) {
        for (std::size_t dim = 0; dim < columns; ++dim) {
          std::uint16_t& element = elements[(static_cast<std::size_t>(slot) * columns) + dim];
          element = encode(of.type, static_cast<double>(decode(of.type, element)) * scale_of_sequence(arrays, b));
        }
      };
      scale(arrays.k, stride);
      if (arrays.apart) scale(arrays.k_rope, static_cast<std::size_t>(arrays.rope()));
    }
  arrays.k_bytes.clear();
  arrays.k_rope_bytes.clear();
  if (arrays.second_lists.top_k != 0) fill_second_keys(arrays);
  arrays.k_scales.clear();
  arrays.experiment.cache_dtype = WAVEJIT_DTYPE_NONE;
  return arrays;
}

Projections projections_of(const LatentArrays& arrays, std::int64_t head, bool through_up_v) {
  const auto latent = static_cast<std::size_t>(arrays.latent());
  Projections made = {.latent = arrays.latent(),
                      .up_k = {.rows = nope_dims, .elements = {}},
                      .up_v = {.rows = through_up_v ? static_cast<std::size_t>(nope_dims) : latent, .elements = {}}};
  for (std::size_t column = 0; column < latent; ++column) {
    const Column up = column_of(arrays.experiment, head, static_cast<std::int64_t>(column));
    made.up_k.elements.push_back({.row = up.row, .column = column, .factor = up.factor});
    if (!through_up_v) made.up_v.elements.push_back({.row = column, .column = column, .factor = 1});
  }
  if (!through_up_v) return made;
  for (std::size_t row = 0; row < made.up_v.rows; ++row)
    for (std::size_t column = 0; column < latent; ++column) {
      const std::uint64_t bits =
          mixed(arrays.experiment.seed + 4, static_cast<std::uint64_t>(head), (row * latent) + column);
      made.up_v.elements.push_back({.row = row, .column = column, .factor = (bits & 1U) != 0 ? 1.0 : -1.0});
    }
  return made;
}

ExactRow exact_row_of(const LatentArrays& arrays, std::int64_t sequence, std::int64_t head, std::int64_t row,
                      bool through_up_v) {
  const Experiment& of = arrays.experiment;
  const Sequence at = attention::program::sequences_of(of)[static_cast<std::size_t>(sequence)];
  attention::program::ScoreRules rules = attention::program::rules_of(of, at);
  rules.softcap = static_cast<double>(of.of(attention::Modifier::softcap).number);
  if (!arrays.sinks.empty()) rules.sink = static_cast<double>(arrays.sinks[static_cast<std::size_t>(head)]);
  const std::size_t place = static_cast<std::size_t>(((at.first_query + row) * of.query_heads) + head);
  const auto rope = static_cast<std::size_t>(arrays.rope());
  const LatentRow latent = {.nope = std::span(arrays.nope).subspan(place * nope_dims, nope_dims),
                            .rope = std::span(arrays.q_ropes).subspan(place * rope, rope)};
  std::vector<std::int64_t> keys;
  if (arrays.lists.top_k != 0) {
    const auto query = static_cast<std::size_t>(at.first_query + row);
    keys = arrays.lists.seen[query];
    if (arrays.second_lists.top_k != 0) std::ranges::copy(arrays.second_lists.seen[query], std::back_inserter(keys));
  } else {
    const attention::program::VisibleKeys visible = attention::program::visible_keys(rules, row, at.keys);
    for (std::int64_t key = visible.first; key < visible.end; ++key) keys.push_back(key);
  }
  return exact_row(latent, projections_of(arrays, head, through_up_v),
                   arrays.compressed[static_cast<std::size_t>(sequence)],
                   arrays.ropes[static_cast<std::size_t>(sequence)], keys, rules);
}

std::vector<double> bounds_of(const LatentArrays& arrays, const ExactRow& exact) {
  // Half an ulp of 1: rounding of the answer, and of the weights.
  const double half_ulp = arrays.experiment.type == tools::HalfType::bf16 ? 0x1p-8 : 0x1p-11;
  constexpr double of_scores = 1e-4;  // sums of 576 products in f32, as a share of a weight
  std::vector<double> bounds;
  bounds.reserve(exact.o.size());
  for (std::size_t dim = 0; dim < exact.o.size(); ++dim)
    bounds.push_back((half_ulp * std::abs(exact.o[dim])) + ((half_ulp + of_scores) * exact.magnitudes[dim]) + 1e-5);
  return bounds;
}

}  // namespace wavejit::attention_latent::program
