// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave_fetches.h"

#include <algorithm>
#include <utility>

#include "templates/attention/emit/streams_narrow.h"

namespace wavejit::attention_forward::dualwave {

using language::Value;

Fetches::Fetches(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan, LineTiles& tiles,
                 TileWalk& walk)
    : spec_(spec), tiles_(tiles), walk_(walk) {
  if (!spec.narrow_queries) return;
  for (int buffer = 0; buffer < plan.buffers; ++buffer) images_.push_back(kernel.constant(plan.k_offset(buffer)));
}

Stop Fetches::stop(const State& state, const Place& place, int ahead, bool may_be_past_the_end) const {
  Value* there = walk_.ahead(place.walked, ahead);
  const auto index = static_cast<std::size_t>(ahead);
  // A place after the last one has the entry of the last one.
  if (index < state.entries.size()) return {there, state.entries[index]};
  return may_be_past_the_end ? walk_.at_most_last(there) : there;
}

attention::TilePages::Place Fetches::page(const State& state, int ahead) const {
  return spec_.paged ? state.places[static_cast<std::size_t>(ahead)] : attention::TilePages::Place{};
}

void Fetches::perform(const LookUp& look, State& state, const Place& place) const {
  if (!spec_.paged) return;
  const auto ahead = static_cast<std::size_t>(look.ahead);
  state.places.resize(std::max(state.places.size(), ahead + 1));
  state.places[ahead] = tiles_.look_up(walk_.tile_at(stop(state, place, look.ahead, true)));
}

void Fetches::perform(const ReadWalk& read, State& state, const Place& place) const {
  if (!spec_.block_lists) return;
  while (std::ssize(state.entries) <= read.ahead)
    state.entries.push_back(walk_.read(walk_.ahead(place.walked, static_cast<int>(state.entries.size()))));
}

void Fetches::perform(const Fetch& fetch, State& state, const Place& place) const {
  Value* wanted = walk_.tile_at(stop(state, place, fetch.tile.ahead, fetch.may_be_past_the_end));
  const attention::TilePages::Place found = page(state, fetch.tile.ahead);
  // Values of tile t are fetched at the start, where t is the first one, and nowhere else.
  Value* unseen = fetch.tile.stream == Stream::values && fetch.tile.ahead == 0 ? tiles_.unseen_of(wanted) : nullptr;
  if (!images_.empty()) {
    // In front of the loop t is 0, so that `ahead` is the tile's number.
    const auto ahead = static_cast<std::size_t>(fetch.tile.ahead) % images_.size();
    LineStream& stream = fetch.tile.stream == Stream::keys ? tiles_.keys() : tiles_.values();
    stream.fetch(state.images.empty() ? images_[ahead] : state.images[ahead], wanted, found, unseen);
    return;
  }
  const int into = (place.buffer + fetch.tile.ahead) % 2;
  if (tiles_.narrow_keys() != nullptr) {
    fetch_narrow(fetch, into, wanted, found, unseen, state, place);
    return;
  }
  if (fetch.tile.stream == Stream::keys) {
    tiles_.keys().fetch(into, wanted, found);
  } else {
    tiles_.values().fetch(into, wanted, found, unseen);
  }
}

// A fetch of a cache of 8 bits: what waits in registers goes where DMA would have put it, and the stream's next tile
// takes its place. So LDS is written sooner than the schedule says, and never after a wait for it. It was widened
// between matrix instructions: here the partner has the vector unit.
void Fetches::fetch_narrow(const Fetch& fetch, int into, Value* wanted, const attention::TilePages::Place& found,
                           Value* unseen, State& state, const Place& place) const {
  const bool keys = fetch.tile.stream == Stream::keys;
  NarrowLines& stream = keys ? *tiles_.narrow_keys() : *tiles_.narrow_values();
  State::InFlight& in_flight = keys ? state.keys_in_flight : state.values_in_flight;
  if (in_flight.loaded.empty() && in_flight.units.empty()) in_flight.loaded = stream.fetch(wanted, found, unseen);
  if (in_flight.units.empty()) {
    stream.write(into, in_flight.loaded).write_rest();
  } else {
    stream.write_units(into, std::exchange(in_flight.units, {}));
  }
  const int next = fetch.tile.ahead + 1;
  in_flight.loaded = stream.fetch(walk_.tile_at(stop(state, place, next, true)), page(state, next));
}

}  // namespace wavejit::attention_forward::dualwave
