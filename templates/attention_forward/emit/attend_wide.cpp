// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// 16-bit products of tiles that stand as lines or swizzled. Q and K may be integers, and caches may have a scale a token.
#include <optional>
#include <utility>

#include "codegen/language/carried.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/unseen_keys.h"
#include "templates/attention_forward/emit/attend.h"
#include "templates/attention_forward/emit/integer_products.h"
#include "templates/attention_forward/emit/token_scales.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using language::Accumulator;
using language::KOrder;
using language::OperandA;
using language::OperandB;
using language::Value;
using language::Values;

class AttendWide final : public Attend {
 public:
  explicit AttendWide(GenericKernel& generic) : generic_(generic) {
    language::Kernel& kernel = generic.kernel;
    const ForwardKernel& spec = generic.spec;
    const Workgroup& workgroup = generic.workgroup;
    if (spec.integers)
      integers_.emplace(kernel, spec, workgroup, workgroup.kv_head, workgroup.first_slot, workgroup.key_length);
    if (spec.cache_has_token_scales())
      token_scales_.emplace(kernel, spec, workgroup, generic.matrix.accumulator_layout());
  }

  Values start_scales() override {
    if (!token_scales_) return {};
    Value* tile = generic_.walk->tile_at(generic_.walk->first());
    return token_scales_->start(tile, attention::unseen_keys(generic_.kernel, generic_.workgroup.first_seen, tile));
  }

  Values start(const Stops& first) override { return generic_.tiles->start(first, *generic_.walk); }

  Values take_query(const Stops& /*first*/, const Values& query, const Values& in_flight) override {
    if (integers_)
      query_integers_ = query;
    else
      query_ =
          query_operands(generic_.kernel, generic_.workgroup, generic_.matrix, query, query_numbers(generic_.spec));
    return in_flight;
  }

  TileState attend(TileState state, int buffer, const Stops& stops) override {
    Values scales;
    if (token_scales_) scales = token_scales_->advance(generic_.walk->tile_at(stops[1]), state.scales);
    state.in_flight = generic_.tiles->advance(buffer, stops, *generic_.walk, state.in_flight);
    generic_.merged.end_chunk(stops.front(), state.softmax, state.outputs, state.merged);
    Value* seen = generic_.walk->sees(stops.front());
    if (seen == nullptr) return attend_seen(std::move(state), buffer, stops, scales);
    const Values after = language::if_uniform(
        generic_.kernel, seen, language::Likelihood::even, language::carried(state), [&](const Values& before) {
          return language::carried(attend_seen(language::state_of(state, before), buffer, stops, scales));
        });
    return language::state_of(state, after);
  }

 private:
  // `scales`: the scales of the tile's tokens, if there are any.
  TileState attend_seen(TileState state, int buffer, const Stops& stops, const Values& scales) {
    const TileWalk& walk = *generic_.walk;
    const Stop& place = stops.front();
    Value* tile = walk.tile_at(place);
    // With a bias in f32 that a branch adds, 32 registers more would be live beside Q and K.
    const bool is_late = generic_.spec.bias_by_tile && generic_.spec.bias_fp32;
    Values fetched;
    if (!is_late) fetched = generic_.modifiers.fetch(walk.marked_at(place));
    std::vector<Accumulator> scores = multiply_keys(buffer, tile);
    generic_.tiles->advance_values(buffer, stops, walk);
    // The first of V are read while the softmax runs.
    FragmentReads values(generic_.value_steps(), [&](const FragmentStep& step) {
      return generic_.tiles->values().transposed(buffer, step.dims, step.keys);
    });
    if (token_scales_) token_scales_->scale_scores(scales, scores);
    if (is_late) fetched = generic_.modifiers.fetch(walk.marked_at(place));
    generic_.modifiers.apply(walk.marked_at(place), fetched, scores);
    if (Value* named = generic_.tiles->named())
      attention::hide_unnamed(generic_.kernel, named, generic_.workgroup.lane_group, scores);
    state.softmax = generic_.softmax.raise_maximum(state.softmax, scores, state.outputs);
    state.softmax = generic_.softmax.weigh(state.softmax, scores);
    if (token_scales_) token_scales_->scale_weights(scales, scores);
    accumulate_values(values, scores, state.outputs);
    return state;
  }

  std::vector<Accumulator> multiply_keys(int buffer, Value* tile) {
    if (integers_) return integers_->scores(generic_.tiles->keys(), buffer, query_integers_, integers_->fetch(tile));
    FragmentReads keys(generic_.key_steps(), [&](const FragmentStep& step) {
      return generic_.tiles->keys().rows(buffer, step.keys, step.dims);
    });
    return generic_.multiply_keys(keys, query_);
  }

  // Oᵀ += Vᵀ · Pᵀ, keys in blocks of 16 from key 0 of the tile upward.
  void accumulate_values(FragmentReads& reads, const std::vector<Accumulator>& weights,
                         std::vector<Accumulator>& outputs) const {
    OperandB packed;
    reads.consume([&](const FragmentStep& step, const OperandA& values) {
      if (step.dims == 0) packed = pack_weights(weights, step.keys);
      Accumulator& sum = outputs[static_cast<std::size_t>(step.dims)];
      sum = generic_.matrix.mma(values, packed, sum);
    });
  }

  // Eight score registers are one operand fragment: a 16-key block in accumulator-row order.
  OperandB pack_weights(const std::vector<Accumulator>& weights, int key_block) const {
    const targets::WaveShape& wave = generic_.wave;
    const int blocks_of_part = wave.registers() / wave.slots();
    const Accumulator& part = weights[static_cast<std::size_t>(key_block / blocks_of_part)];
    const std::vector<Value*> dwords =
        language::convert_packed(generic_.kernel, part.value, key_block % blocks_of_part * wave.slots(), wave.slots(),
                                 generic_.matrix.element(), language::NanInput::irrelevant);
    return generic_.matrix.operand_b(language::gather_dwords(generic_.kernel, dwords), KOrder::accumulator_rows);
  }

  GenericKernel& generic_;
  std::vector<OperandB> query_;
  std::optional<IntegerProducts> integers_;  // of Q and K
  Values query_integers_;
  std::optional<TokenScales> token_scales_;
};

}  // namespace

std::unique_ptr<Attend> attend_wide(GenericKernel& generic) { return std::make_unique<AttendWide>(generic); }

}  // namespace wavejit::attention_forward
