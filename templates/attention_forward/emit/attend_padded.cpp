// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 16-bit products of tiles that stand in padded rows. Barriers are in two halves there: what stands between arrival and
// wait needs nobody else (tiles_padded.h).
#include "templates/attention/emit/covered_weights.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/tiles_padded.h"
#include "templates/attention_forward/emit/attend.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using language::Accumulator;
using language::OperandA;
using language::OperandB;
using language::Value;
using language::Values;

class AttendPadded final : public Attend {
 public:
  explicit AttendPadded(GenericKernel& generic)
      : generic_(generic),
        tiles_(generic.kernel, tile_shape(generic.spec, generic.kernel.target()), generic.plan,
               generic.workgroup.keys(), generic.workgroup.lane_group, generic.matrix) {}

  Values start(const Stops& first) override { return tiles_.start(first, *generic_.walk); }

  Values take_query(const Stops& first, const Values& query, const Values& in_flight) override {
    query_ = query_operands(generic_.kernel, generic_.workgroup, generic_.matrix, query, query_numbers(generic_.spec));
    return tiles_.begin(first, *generic_.walk, in_flight);
  }

  TileState attend(TileState state, int /*buffer*/, const Stops& stops) override {
    const TileWalk& walk = *generic_.walk;
    const Stop& place = stops.front();
    Value* marked = walk.marked_at(place);
    generic_.merged.end_chunk(place, state.softmax, state.outputs, state.merged);
    Values fetched;
    if (!fetches_late()) fetched = generic_.modifiers.fetch(marked);
    tiles_.wait();
    FragmentReads keys(generic_.key_steps(),
                       [&](const FragmentStep& step) { return tiles_.keys().rows(0, step.keys, step.dims); });
    state.in_flight = tiles_.put_values(stops, walk, state.in_flight);
    std::vector<Accumulator> scores = generic_.multiply_keys(keys, query_, [&] { tiles_.arrive(); });
    if (fetches_late()) fetched = generic_.modifiers.fetch(marked);
    generic_.modifiers.apply(marked, fetched, scores);
    state.softmax = generic_.softmax.raise_maximum(state.softmax, scores, state.outputs);
    const std::vector<OperandB> weights =
        attention::covered_weights(generic_.kernel, generic_.softmax, generic_.matrix, scores, state.softmax);
    tiles_.wait();
    // Where the scores stood is room for more of them.
    FragmentReads values(
        generic_.value_steps(),
        [&](const FragmentStep& step) { return tiles_.values().transposed(0, step.dims, step.keys); },
        2 * FragmentReads::usual);
    state.in_flight = tiles_.put_keys(stops, walk, state.in_flight);
    const auto use = [&](const FragmentStep& step, const OperandA& fragment) {
      Accumulator& sum = state.outputs[static_cast<std::size_t>(step.dims)];
      sum = generic_.matrix.mma(fragment, weights[static_cast<std::size_t>(step.keys)], sum);
    };
    values.consume(use, [&] { tiles_.arrive(); });
    return state;
  }

  void end() override { tiles_.wait(); }

 private:
  // A tile's bias comes while scores are multiplied; more than 128 dims of K and of Q leave no room for it until the
  // products are done.
  bool fetches_late() const {
    constexpr int usual_dims = 128;
    return generic_.spec.head_dim_qk > usual_dims;
  }

  GenericKernel& generic_;
  PaddedTiles tiles_;
  std::vector<OperandB> query_;
};

}  // namespace

std::unique_ptr<Attend> attend_padded(GenericKernel& generic) { return std::make_unique<AttendPadded>(generic); }

}  // namespace wavejit::attention_forward
