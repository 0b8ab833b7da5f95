#include "support/faulty_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace wavejit::tests {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();
constexpr int tile_keys = 64;
// In units of log2: how far a maximum may lag behind.
constexpr double lag = 8;
constexpr double scaled_by = 1.02;
constexpr float lse_shift = 1e-3F;

double rounded(Storage storage, double value) { return from_storage(storage, to_storage(storage, value)); }

}  // namespace

const char* to_text(Fault fault) {
  switch (fault) {
    case Fault::none:
      return "none";
    case Fault::last_key_lost:
      return "last key lost";
    case Fault::tile_lost:
      return "tile lost";
    case Fault::tile_twice:
      return "tile twice";
    case Fault::neighbours_row:
      return "neighbour's row";
    case Fault::tile_scaled:
      return "P of a tile × 1.02";
    case Fault::lse_shifted:
      return "LSE + 0.001";
  }
  return "";
}

EmulatedRow::EmulatedRow(Storage storage, const AttentionInputs& in, int sequence, int row, int head)
    : storage_(storage),
      sink_(in.sink.empty() ? minus_infinity : in.sink[static_cast<std::size_t>(head)]),
      maximum_(minus_infinity) {
  const auto dim = static_cast<std::size_t>(in.value_dim());
  last_key_.value.resize(dim);
  const std::vector<double> scores = attention_scores(in, sequence, row, head);
  const int keys = static_cast<int>(scores.size());
  for (int first = 0; first < keys; first += tile_keys) {
    const int end = std::min(first + tile_keys, keys);
    const double largest = *std::max_element(scores.begin() + first, scores.begin() + end);
    if (largest == minus_infinity) continue;
    if (maximum_ == minus_infinity || (largest - maximum_) * std::numbers::log2e > lag)
      maximum_ = std::max(maximum_, largest);
    Tile tile{.maximum = maximum_, .weight = 0, .value = std::vector<double>(dim)};
    for (int key = first; key < end; ++key) {
      if (scores[static_cast<std::size_t>(key)] == minus_infinity) continue;
      const double p = std::exp(scores[static_cast<std::size_t>(key)] - maximum_);
      const double stored = rounded(storage_, p);
      const float* v = &in.v[in.row_of_key(sequence, key, head) * dim];
      for (std::size_t c = 0; c < dim; ++c) tile.value[c] += stored * static_cast<double>(v[c]);
      tile.weight += p;
      last_key_.maximum = maximum_;
      last_key_.weight = p;
      for (std::size_t c = 0; c < dim; ++c) last_key_.value[c] = stored * static_cast<double>(v[c]);
    }
    tiles_.push_back(std::move(tile));
  }
  double total = 0;
  for (const Tile& tile : tiles_) total += tile.weight * std::exp(tile.maximum - maximum_);
  const auto distance = [&](const Tile& tile) {
    const double weight = tile.weight * std::exp(tile.maximum - maximum_);
    return std::fabs(std::log(weight * static_cast<double>(tiles_.size()) / total));
  };
  chosen_ = static_cast<std::size_t>(std::ranges::min_element(tiles_, {}, distance) - tiles_.begin());
}

ComputedRow EmulatedRow::with(Fault fault) const {
  if (tiles_.empty()) {
    return {.output = std::vector<float>(last_key_.value.size()), .lse = static_cast<float>(sink_)};
  }
  std::vector<double> value(last_key_.value.size());
  double weight = 0;
  const auto add = [&](const Tile& tile, double times, double times_weight) {
    const double factor = std::exp(tile.maximum - maximum_);
    for (std::size_t c = 0; c < value.size(); ++c) value[c] += times * factor * tile.value[c];
    weight += times_weight * factor * tile.weight;
  };
  for (const Tile& tile : tiles_) add(tile, 1, 1);
  const Tile& chosen = tiles_[chosen_];
  if (fault == Fault::last_key_lost) add(last_key_, -1, -1);
  if (fault == Fault::tile_lost) add(chosen, -1, -1);
  if (fault == Fault::tile_twice) add(chosen, 1, 1);
  if (fault == Fault::tile_scaled) add(chosen, scaled_by - 1, 0);
  // What was taken away wholly may leave a rounding error.
  const bool nothing = tiles_.size() == 1 && (fault == Fault::tile_lost || chosen.weight == last_key_.weight) &&
                       (fault == Fault::tile_lost || fault == Fault::last_key_lost);
  const double of_keys = nothing ? minus_infinity : maximum_ + std::log(weight);
  const double largest = std::max(of_keys, sink_);
  ComputedRow row;
  if (largest == minus_infinity) {
    row.lse = -std::numeric_limits<float>::infinity();
    row.output.assign(value.size(), 0.0F);
    return row;
  }
  const double lse = largest + std::log(std::exp(of_keys - largest) + std::exp(sink_ - largest));
  const double inverse = nothing ? 0 : std::exp(maximum_ - lse);
  for (const double sum : value) row.output.push_back(static_cast<float>(rounded(storage_, sum * inverse)));
  row.lse = static_cast<float>(lse);
  if (fault == Fault::lse_shifted) row.lse += lse_shift;
  return row;
}

}  // namespace wavejit::tests
