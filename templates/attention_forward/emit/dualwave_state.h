// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What lives from one tile of the overlapped walk to the next, and how it goes round a loop.
#pragma once

#include <vector>

#include "codegen/language/softmax.h"
#include "templates/attention/emit/tile_pages.h"
#include "templates/attention/emit/tile_softmax.h"

namespace wavejit::attention_forward::dualwave {

struct State {
  language::SoftmaxState softmax;
  std::vector<language::Accumulator> outputs;       // Oᵀ, a block of dims each
  language::Values merged;                          // the chunks before, as far as registers hold them
  attention::TileWeights weights;                   // of tile t, half done
  std::vector<attention::TilePages::Place> places;  // of tiles t, t + 1, …; empty where nobody needs it any more
  language::Values entries;                         // of a walk that stands in memory: of tiles t, t + 1, …
  // For a cache of 8 bits: this thread's part of the tiles that go into LDS next, as loaded or widened.
  struct InFlight {
    language::Values loaded;
    language::Values units;
    void each(this auto& stream, auto visit) {
      visit(stream.loaded);
      visit(stream.units);
    }
  };
  InFlight keys_in_flight = {};
  InFlight values_in_flight = {};
  language::Value* value_scales = nullptr;  // of tile t, where tokens have them; on their way
  // With three buffers: where those of tiles t, t + 1 and t + 2 begin. That of t + 3 is that of t.
  language::Values images = {};
  // Where a lane's reads of K(t + 1) and V(t) start.
  language::Values read_starts = {};
  void each(this auto& state, auto visit) {
    visit(state.softmax);
    visit(state.outputs);
    visit(state.merged);
    visit(state.weights.values);
    visit(state.places);
    visit(state.entries);
    visit(state.keys_in_flight);
    visit(state.values_in_flight);
    visit(state.value_scales);
    visit(state.images);
    visit(state.read_starts);
  }
};

// Places of tiles that every fetch is past are dropped, and what stood at tile t.
void to_next_tile(State& state);

}  // namespace wavejit::attention_forward::dualwave
