// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave_state.h"

#include <algorithm>

namespace wavejit::attention_forward::dualwave {

using attention::TilePages;
using language::Accumulator;
using language::Value;
using language::Values;

Values to_values(const State& state) {
  Values values;
  state.softmax.append_to(values);
  for (const Accumulator& output : state.outputs) values.push_back(output.value);
  values.insert(values.end(), state.merged.begin(), state.merged.end());
  values.insert(values.end(), state.weights.values.begin(), state.weights.values.end());
  for (const TilePages::Place& place : state.places)
    if (place.entry != nullptr) values.insert(values.end(), {place.entry, place.granule, place.live});
  values.insert(values.end(), state.entries.begin(), state.entries.end());
  for (const State::InFlight* stream : {&state.keys_in_flight, &state.values_in_flight}) {
    values.insert(values.end(), stream->loaded.begin(), stream->loaded.end());
    values.insert(values.end(), stream->units.begin(), stream->units.end());
  }
  if (state.value_scales != nullptr) values.push_back(state.value_scales);
  values.insert(values.end(), state.images.begin(), state.images.end());
  values.insert(values.end(), state.read_starts.begin(), state.read_starts.end());
  return values;
}

State from_values(State like, const Values& values) {
  auto next = values.begin();
  like.softmax.take_from(next);
  for (Accumulator& output : like.outputs) output.value = *next++;
  for (Value*& value : like.merged) value = *next++;
  for (Value*& weight : like.weights.values) weight = *next++;
  for (TilePages::Place& place : like.places)
    if (place.entry != nullptr) place = {.entry = *next++, .granule = *next++, .live = *next++};
  for (Value*& entry : like.entries) entry = *next++;
  for (State::InFlight* stream : {&like.keys_in_flight, &like.values_in_flight}) {
    for (Value*& dwords : stream->loaded) dwords = *next++;
    for (Value*& dwords : stream->units) dwords = *next++;
  }
  if (like.value_scales != nullptr) like.value_scales = *next++;
  for (Value*& image : like.images) image = *next++;
  for (Value*& start : like.read_starts) start = *next++;
  return like;
}

void to_next_tile(State& state) {
  if (!state.entries.empty()) state.entries.erase(state.entries.begin());
  if (!state.images.empty()) std::ranges::rotate(state.images, state.images.begin() + 1);
  if (state.places.size() <= 1) return;
  state.places.erase(state.places.begin());
  state.places.front() = {};
}

}  // namespace wavejit::attention_forward::dualwave
