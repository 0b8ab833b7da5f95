// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of Q, K and V in 8 bits: an operand is half a tile and 64 dims, or a whole tile and 32 dims.
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention_forward/emit/attend.h"
#include "templates/attention_forward/emit/byte_products.h"

namespace wavejit::attention_forward {
namespace {

using language::Accumulator;
using language::Value;
using language::Values;

class AttendBytes final : public Attend {
 public:
  explicit AttendBytes(GenericKernel& generic) : generic_(generic), bytes_(generic.kernel, generic.spec) {}

  Values start(const Stops& first) override { return generic_.tiles->start(first, *generic_.walk); }

  Values take_query(const Stops& /*first*/, const Values& query, const Values& in_flight) override {
    query_ = bytes_.query(query, generic_.workgroup.query_sign);
    return in_flight;
  }

  TileState attend(TileState state, int buffer, const Stops& stops) override {
    const TileWalk& walk = *generic_.walk;
    Tiles& tiles = *generic_.tiles;
    const language::ByteMatrix& matrix = bytes_.matrix();
    state.in_flight = tiles.advance(buffer, stops, walk, state.in_flight);
    const Stop& place = stops.front();
    generic_.merged.end_chunk(place, state.softmax, state.outputs, state.merged);
    const Values fetched = generic_.modifiers.fetch(walk.marked_at(place));
    std::vector<Accumulator> scores(2, generic_.matrix.zeros());
    for (int step = 0; step < bytes_.key_steps(); ++step)
      bytes_.multiply_keys(bytes_.keys(tiles.keys(), buffer, step), query_, scores, step);
    tiles.advance_values(buffer, stops, walk);
    generic_.modifiers.apply(walk.marked_at(place), fetched, scores);
    if (Value* named = tiles.named())
      attention::hide_unnamed(generic_.kernel, named, generic_.workgroup.lane_group, scores);
    state.softmax = generic_.softmax.raise_maximum(state.softmax, scores, state.outputs);
    generic_.softmax.to_weights(state.softmax, scores);
    const language::ByteOperand weights = matrix.rounded(scores[0], scores[1]);
    Value* scale = state.softmax.scale;
    Value*& sum = state.softmax.sums[0];
    sum = generic_.softmax.accumulated(sum, matrix.of_columns(matrix.column_sums(weights, scale)));
    for (int step = 0; step < bytes_.value_steps(); ++step) {
      Accumulator& output = state.outputs[static_cast<std::size_t>(step)];
      output = matrix.mma(bytes_.values(tiles.values(), buffer, step), weights, output, scale);
    }
    return state;
  }

 private:
  GenericKernel& generic_;
  ByteProducts bytes_;
  std::vector<language::ByteOperand> query_;
};

}  // namespace

std::unique_ptr<Attend> attend_bytes(GenericKernel& generic) { return std::make_unique<AttendBytes>(generic); }

}  // namespace wavejit::attention_forward
