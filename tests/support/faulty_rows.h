// Rows of attention as a kernel with a fault would give them: every rounding to the storage type that a kernel makes,
// float64 in between. Without a fault such a row is a true result, which the tests that use it check first.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "support/attention_reference.h"
#include "support/storage_types.h"

namespace wavejit::tests {

enum class Fault : std::uint8_t {
  none,
  last_key_lost,
  tile_lost,
  tile_twice,
  neighbours_row,
  tile_scaled,
  lse_shifted
};
inline constexpr std::array faults = {Fault::last_key_lost,  Fault::tile_lost,   Fault::tile_twice,
                                      Fault::neighbours_row, Fault::tile_scaled, Fault::lse_shifted};
const char* to_text(Fault fault);

struct ComputedRow {
  std::vector<float> output;
  float lse = 0;
  bool operator==(const ComputedRow&) const = default;
};

// Tiles of 64 keys, weights of each rounded to the storage type against a maximum that lags
// (docs/canonical-arithmetic.md has the rule), O rounded once.
class EmulatedRow {
 public:
  EmulatedRow(Storage storage, const AttentionInputs& in, int sequence, int row, int head);

  // With a fault in the tile whose weight is nearest to that of an average tile. A neighbour's row is the neighbour's
  // to give.
  ComputedRow with(Fault fault) const;
  bool sees_keys() const { return !tiles_.empty(); }

 private:
  struct Tile {
    double maximum;             // that its weights were computed against
    double weight = 0;          // Σ p
    std::vector<double> value;  // Σ P·v
  };

  Storage storage_;
  double sink_;
  double maximum_;
  std::vector<Tile> tiles_;  // in which the row sees keys
  std::size_t chosen_ = 0;
  Tile last_key_{};
};

}  // namespace wavejit::tests
