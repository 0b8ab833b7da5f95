// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales of tokens in the dual-wave pipeline (token_scales.h). A wave asks for those of K(t + 1) where it reads K(t +
// 1) from LDS, and for those of V(t + 1) where its scores are masked: a register each, of which one more becomes two
// while they are used. Scores are scaled in the softmax that begins under Vᵀ·Pᵀ; those of a tile that hides keys before
// the mask, since −inf times a scale need not be −inf.
#pragma once

#include <span>

#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/tile_softmax.h"
#include "templates/attention_forward/emit/dualwave_state.h"
#include "templates/attention_forward/emit/token_scales.h"

namespace wavejit::attention_forward::dualwave {

class Scales {
 public:
  // `workgroup` stays.
  Scales(language::Kernel& kernel, const ForwardKernel& spec, const Workgroup& workgroup,
         const language::AccumulatorLayout& layout)
      : kernel_(kernel),
        spec_(spec),
        workgroup_(workgroup),
        scales_(kernel, spec, workgroup, layout),
        slots_(static_cast<int>(TokenScales::parts) * layout.registers()) {}

  // `place`: for keys in pages.
  void fetch_of_keys(language::Value* tile, const attention::TilePages::Place& place) {
    of_keys_ = scales_.fetch_folded(TokenScales::Of::keys, tile, place);
  }
  void fetch_of_values(language::Value* tile, const attention::TilePages::Place& place, language::Value* unseen,
                       State& state) const {
    state.value_scales = scales_.fetch_folded(TokenScales::Of::values, tile, place, unseen);
  }

  // In place of `modifiers` alone.
  void modify(const attention::ScoreModifiers& modifiers, language::Value* tile, const language::Values& fetched,
              std::span<language::Accumulator> scores);

  // Slots of either that ladders have no room for: one for each number of a lane.
  int slots() const { return slots_; }
  // What the softmax does to the tile's scores, and to its weights.
  attention::TileSoftmax::Scaled of_scores();
  attention::TileSoftmax::Scaled of_weights(const State& state) const;

 private:
  language::Value* hides_keys(language::Value* tile) const;

  language::Kernel& kernel_;
  const ForwardKernel& spec_;
  const Workgroup& workgroup_;
  TokenScales scales_;
  int slots_;
  language::Value* of_keys_ = nullptr;  // of the tile whose scores are made; null: they have them
};

}  // namespace wavejit::attention_forward::dualwave
