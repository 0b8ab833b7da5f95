// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A tile of 64 scores in the registers of two lanes, between memory and the softmax.
//
// Scores stand in groups of four neighbouring keys, eight groups a lane: group g is registers 4 · (g mod 4) … + 3 of
// accumulator ⌊g / 4⌋. What the canon's tree adds up (bits 5, 1 and 0 of the key's number) is the same in both orders:
//
//   by_four   bit 2 of the key tells the two lanes apart, as in attention: group g has keys 8g + 4 · half
//   by_eight  bit 3 does: a lane has eight 16-bit keys in a row, which is one load; groups 2i and 2i + 1 have keys
//             16i + 8 · half and + 4
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "codegen/language/buffer.h"
#include "codegen/language/fragment.h"
#include "templates/softmax_lse/kernel/spec.h"

namespace wavejit::softmax_lse {

enum class KeyOrder : std::uint8_t { by_four, by_eight };
KeyOrder key_order(const SoftmaxKernel& spec);

// An offset beyond every slice, also with a tile's own offsets added: nothing is read or written there, and nothing
// wraps.
inline constexpr std::uint32_t nowhere = 0xFFFFFF00;

inline constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

inline constexpr int groups = 8;
inline constexpr int group_keys = 4;

// Keys between the two lanes' first ones.
constexpr int half_keys(KeyOrder order) { return order == KeyOrder::by_four ? 4 : 8; }
// The first key of a group, of the lane with half 0.
constexpr int first_key(KeyOrder order, int group) {
  return order == KeyOrder::by_four ? 2 * group_keys * group : group_keys * ((4 * (group / 2)) + (group % 2));
}
// Where running sum `index` of lane half `half` stands among the canon's eight: its bits 2, 4, 3 of the key, with the
// canon's half in front. `of_half` is what the lane's half adds.
struct SumPlace {
  int fixed;    // canonical half · 4 + canonical index, of half 0
  int of_half;  // added in half 1
};
constexpr SumPlace sum_place(KeyOrder order, int index) {
  if (order == KeyOrder::by_four) return {.fixed = index, .of_half = 4};
  return {.fixed = (4 * (index % 2)) + (2 * (index / 2)), .of_half = 1};
}

using Scores = std::array<language::Accumulator, 2>;

// What a lane needs to find its part of a tile.
struct TilePlace {
  language::Value* row;       // of the workgroup's
  language::Value* tile_key;  // the tile's first key
  language::Value* lane_key;  // the lane's first key of it
};

class ScoreReader {
 public:
  ScoreReader(language::Kernel& kernel, const SoftmaxKernel& spec, const language::Buffer& buffer,
              language::Value* stride, language::Value* negated);
  // Scores in f32, negated where the scale is negative. Lanes without `visible` read nothing and get zeros.
  Scores read(const TilePlace& place, language::Value* visible) const;

 private:
  language::Kernel& kernel_;
  const SoftmaxKernel& spec_;
  const language::Buffer& buffer_;
  language::Value* stride_;
  language::Value* negated_;  // i1, uniform
};

class WeightWriter {
 public:
  WeightWriter(language::Kernel& kernel, const SoftmaxKernel& spec, const language::Buffer& buffer,
               language::Value* stride)
      : kernel_(kernel), spec_(spec), buffer_(buffer), stride_(stride) {}
  // Writes for lanes with `valid`; keys from `keys` on are beyond the row, and not written.
  void write(const Scores& weights, const TilePlace& place, language::Value* valid, language::Value* keys) const;

 private:
  std::vector<language::Value*> stored_dwords(const Scores& weights, int group) const;

  language::Kernel& kernel_;
  const SoftmaxKernel& spec_;
  const language::Buffer& buffer_;
  language::Value* stride_;
};

}  // namespace wavejit::softmax_lse
