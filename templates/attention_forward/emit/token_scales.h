// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales that keys and values have each for themselves (docs/canonical-arithmetic.md, "Scales of tokens").
//
// A register of scores holds one key for each half of the wave. So a lane loads two scales of keys and two of values a
// tile, such that the lanes of a row (cross_lane.h) have one for each register of their half, of one accumulator of 16
// registers or of two of 8: a multiplication reads its scale from the lane that has it, and nothing is moved.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

class TokenScales {
 public:
  // `layout`: the layout of the scores' accumulators.
  TokenScales(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
              const language::AccumulatorLayout& layout);

  // Loads a tile's scales, for keys outside of pages and walks that overlap tiles. Here and below: of the first tile,
  // the scales of the first `unseen` values are zeros (attention/emit/unseen_keys.h).
  language::Values fetch(language::Value* tile, language::Value* unseen = nullptr) const;
  // What is on its way for a tile: its scales, and of keys in pages where those of the next stand.
  language::Values start(language::Value* tile, language::Value* unseen) const;
  // The tile's scales, and `in_flight` becomes what is on its way for `next`. To be asked before the next tile's keys
  // are loaded: that is in a branch, behind which a wait for what came before it would be one for everything. They are
  // moved, so that those of `next` come to where these were.
  language::Values advance(language::Value* next, language::Values& in_flight) const;

  // Loads one tensor's scales of a tile into one register: lanes of the first row of a pair have those of the first
  // part, lanes of the second row those of the second part. For walks that overlap tiles and have no register to spare.
  // `place`: for keys in pages of whole tiles.
  enum class Of : std::uint8_t { keys, values };
  language::Value* fetch_folded(Of tensor, language::Value* tile, const attention::TilePages::Place& place,
                                language::Value* unseen = nullptr) const;
  language::Values unfolded(language::Value* folded) const;

  // Each score times its key's scale, each weight times its value's.
  void scale_scores(const language::Values& scales, std::span<language::Accumulator> scores) const;
  void scale_weights(const language::Values& scales, std::span<language::Accumulator> weights) const;
  // One of the scales: register `r` of a part. `of_values`: the part of `scales` that belongs to V.
  static constexpr std::size_t parts = 2;  // loads of a tile; of accumulators of 16 registers one each
  language::Values of_values(const language::Values& scales) const;
  language::Value* scaled(const language::Values& of_values, int part, int r, language::Value* weight) const;

 private:
  language::Value* folded_offset(const attention::Slice& slice) const;
  void load(language::Value* tile, language::Values& in_flight, language::Value* unseen = nullptr) const;
  void scale(std::span<language::Value* const> scales, std::span<language::Accumulator> numbers) const;

  language::Kernel& kernel_;
  language::AccumulatorLayout layout_;
  std::optional<attention::KeyPages> pages_;
  std::optional<attention::TilePages> tile_pages_;
  std::array<attention::Slice, 2> slices_;  // of K's scales, of V's
  language::Value* key_;                    // per lane: of the tile, whose scale of the first part it loads
  std::array<language::Value*, 2> folded_offsets_ = {};  // per lane: of slices_, where a tile's begin; null: not asked
};

}  // namespace wavejit::attention_forward
