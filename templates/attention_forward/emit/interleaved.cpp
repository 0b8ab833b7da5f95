// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/interleaved.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "codegen/language/carried.h"
#include "codegen/language/control.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/tile_softmax.h"
#include "templates/attention/emit/tiles_swizzled.h"
#include "templates/attention_forward/emit/interleaved_schedule.h"
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/emit/token_scales.h"
#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/kernel/ladders.h"

namespace wavejit::attention_forward {
namespace interleaved {
namespace {

using language::Accumulator;
using language::Element;
using language::Kernel;
using language::Likelihood;
using language::OperandA;
using language::OperandB;
using language::SoftmaxState;
using language::Strand;
using language::Value;
using language::Values;

OperationSlots slots_of(const ForwardKernel& spec) {
  // With 128 dims the shift stands where nothing else does; the ladder was found without it.
  return {.exp2 = exp2_slots,
          .convert = spec.dtype == DataType::bf16 ? convert_bf16_slots : convert_fp16_slots,
          .exchange = exchange_slots,
          .shift = spec.head_dim_v > 64 ? 0 : 2};
}

class Walker {
 public:
  Walker(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        workgroup_(begin_workgroup(kernel, spec)),
        modifiers_(kernel, spec.modifiers, spec.bias_type(), score_fields, workgroup_),
        tiles_(kernel, tile_shape(spec, kernel.target()), plan, workgroup_.keys(), workgroup_.lane_group, matrix_),
        softmax_(kernel, modifiers_.softmax_scale(), workgroup_.rescale_threshold),
        own_walk_(walk_of(kernel, workgroup_)),
        walk_(*own_walk_),
        merged_(kernel, spec, plan, workgroup_, walk_, softmax_),
        ladder_(*find_ladder(Pipeline::interleaved, spec.ladder)),
        schedule_(schedule_in(order_of(spec), look_ups_of(spec))),
        tile_softmax_(kernel, softmax_, matrix_, ladder_.weighed, slots_of(spec)) {
    if (spec.token_scales) token_scales_.emplace(kernel, spec, workgroup_, matrix_.accumulator_layout());
  }

  void emit() {
    State state{.softmax = softmax_.initial(),
                .outputs = {},
                .merged = merged_.start(),
                .weights = {},
                .places = {},
                .values_in_flight = {},
                .entries = {},
                .value_scales = {}};
    state.outputs.assign(static_cast<std::size_t>(blocks_of_dims(spec_.head_dim_v, wave_.rows)), matrix_.zeros());

    const Values loaded = load_query(kernel_, spec_.head_dim_qk, workgroup_.q, workgroup_, query_numbers(spec_));
    walk(schedule_.start, state, walk_.first());
    query_ = query_operands(kernel_, workgroup_, matrix_, loaded, query_numbers(spec_));
    // t is one less.
    state.places.insert(state.places.begin(), TilePages::Place{});
    if (spec_.block_lists) state.entries.insert(state.entries.begin(), nullptr);
    walk(schedule_.prologue, state, walk_.ahead(walk_.first(), -1));
    to_next_tile(state);
    state = walk_tiles(state);
    walk(schedule_.drain, state, walk_.last());

    finish_rows(kernel_, spec_, workgroup_, softmax_, merged_, state.softmax, state.merged, matrix_.element(),
                state.outputs);
  }

 private:
  // What lives from one `steady` to the next.
  struct State {
    SoftmaxState softmax;
    std::vector<Accumulator> outputs;      // Oᵀ, a block of dims each
    Values merged;                         // the chunks before, as far as registers hold them
    TileWeights weights;                   // of tile t, partly done
    std::vector<TilePages::Place> places;  // of tiles t, t + 1, …; empty where nobody needs it any more
    Values values_in_flight;               // V(t), this thread's part
    Values entries;                        // of a walk that stands in memory: of tiles t, t + 1, …
    Values value_scales;                   // of tile t, where tokens have them
    void each(this auto& state, auto visit) {
      visit(state.softmax);
      visit(state.outputs);
      visit(state.merged);
      visit(state.weights.values);
      visit(state.places);
      visit(state.entries);
      visit(state.value_scales);
      visit(state.values_in_flight);
    }
  };

  // All tiles but the last, after the prologue.
  State walk_tiles(const State& first) {
    const auto one_follows = [&](const Values& at) { return walk_.exists(walk_.ahead(at[0], 1)); };
    const auto state_at = [&](const Values& at) { return language::state_of(first, std::span(at).subspan(1)); };
    // [0]: the tile that the walk is at.
    Values values = language::carried(first);
    values.insert(values.begin(), walk_.first());
    values = language::if_uniform(kernel_, one_follows(values), Likelihood::even, values, [&](const Values& in) {
      return language::loop_in_phases(
          kernel_, 1, in,
          [&](int, const Values& at) {
            // Opaque to loop strength reduction, which would carry byte offsets round the loop in vector registers.
            Value* place = kernel_.uniform(at[0]);
            State state = state_at(at);
            walk(schedule_.steady, state, place);
            to_next_tile(state);
            Values next = language::carried(state);
            next.insert(next.begin(), walk_.ahead(place, 1));
            return next;
          },
          one_follows);
    });
    return state_at(values);
  }

  // Places of tiles that every fetch is past are dropped, and what stood at tile t.
  void to_next_tile(State& state) {
    if (!state.entries.empty()) state.entries.erase(state.entries.begin());
    if (!spec_.paged) return;
    // Nobody waits: one of a vector load came before keys that are in LDS by now.
    state.places.back().entry = kernel_.uniform(state.places.back().entry);
    state.places.erase(state.places.begin());
    state.places.front() = {};
  }

  template <typename Rows>
  void walk(const Rows& rows, State& state, Value* place) {
    for (const Step& step : rows) {
      for (const Act& act : step.acts) std::visit([&](const auto& each) { perform(each, state, place); }, act);
      language::wait_for_lds(kernel_);
      language::barrier(kernel_);
    }
  }

  // The line of tile t + `ahead`.
  Stop stop(const State& state, Value* place, int ahead, bool may_be_past_the_end = false) const {
    Value* there = walk_.ahead(place, ahead);
    const auto index = static_cast<std::size_t>(ahead);
    // A place after the last one has the entry of the last one.
    if (index < state.entries.size()) return {there, state.entries[index]};
    return may_be_past_the_end ? walk_.at_most_last(there) : there;
  }
  void read_entries(State& state, Value* place, int last_ahead) const {
    while (std::ssize(state.entries) <= last_ahead)
      state.entries.push_back(walk_.read(walk_.ahead(place, static_cast<int>(state.entries.size()))));
  }

  void perform(const LookUp& look, State& state, Value* place) {
    // The table is asked for a tile whose number has arrived.
    if (spec_.block_lists) read_entries(state, place, look.ahead);
    if (!spec_.paged) return;
    const auto ahead = static_cast<std::size_t>(look.ahead);
    state.places.resize(std::max(state.places.size(), ahead + 1));
    state.places[ahead] = tiles_.look_up(walk_.tile_at(stop(state, place, look.ahead, true)), look.way);
    if (spec_.block_lists) read_entries(state, place, look.ahead + 1);
  }

  void perform(const Fetch& fetch, State& state, Value* place) {
    Value* wanted = walk_.tile_at(stop(state, place, fetch.tile.ahead, fetch.may_be_past_the_end));
    const TilePages::Place found =
        spec_.paged ? state.places[static_cast<std::size_t>(fetch.tile.ahead)] : TilePages::Place{};
    if (fetch.tile.stream == Stream::keys) {
      keys_in_flight_ = tiles_.keys().fetch(wanted, found);
    } else {
      Value* unseen = std::exchange(values_begin_, false) ? tiles_.unseen_of(wanted) : nullptr;
      state.values_in_flight = tiles_.values().fetch(wanted, found, unseen);
    }
  }

  void perform(const Read& read, State& state, Value* place) {
    if (token_scales_ && read.tile.stream == Stream::keys) {
      Value* tile = walk_.tile_at(stop(state, place, read.tile.ahead));
      scales_ = token_scales_->fetch(tile, std::exchange(scales_begin_, false) ? tiles_.unseen_of(tile) : nullptr);
    }
    products_ = read.tile.stream == Stream::keys ? multiply_keys() : multiply_values(state.outputs);
  }

  void perform(const Modify& modify, State& state, Value* place) {
    if (token_scales_) {
      token_scales_->scale_scores(scales_, scores_);
      state.value_scales = token_scales_->of_values(scales_);
    }
    modifiers_.apply(walk_.marked_at(stop(state, place, modify.ahead)), modifiers_in_flight_, scores_);
  }

  void perform(const Overlap& overlap, State& state, Value* /*place*/) {
    Strand vector;
    if (overlap.softmax == Softmax::begin) vector = tile_softmax_.begin(scores_, state.softmax, state.weights, growth_);
    if (overlap.softmax == Softmax::finish) {
      TileSoftmax::Scaled scaled;
      if (token_scales_)
        scaled = [this, of_values = state.value_scales](int part, int r, Value* weight) {
          return token_scales_->scaled(of_values, part, r, weight);
        };
      vector = tile_softmax_.finish(state.weights, state.softmax, packed_, scaled);
    }
    // Without a product there is nothing to stand between.
    const Shadow shadow = overlap.product == Product::none    ? Shadow{}
                          : overlap.softmax == Softmax::begin ? ladder_.begin
                                                              : ladder_.finish;
    if (overlap.write) {
      vector.insert(shadow.write_after, overlap.write->stream == Stream::keys
                                            ? tiles_.keys().write(keys_in_flight_)
                                            : tiles_.values().write(state.values_in_flight));
    }
    vector.write(shadow.lead);
    language::interleave(products_, vector, rungs_of(shadow, Pipeline::interleaved, products_.size()));
    pin(overlap, state);
  }

  void perform(const LoadModifiers& load, State& state, Value* place) {
    modifiers_in_flight_ = modifiers_.fetch(walk_.marked_at(stop(state, place, load.ahead)));
  }

  void perform(const Rescale& /*act*/, State& state, Value* place) {
    tile_softmax_.rescale(growth_, state.softmax, state.outputs,
                          [&] { return walk_.begins_chunk(stop(state, place, 1)); });
  }

  void perform(const EndPart& end, State& state, Value* place) {
    const Stop tile = stop(state, place, end.ahead);
    const Stop next(walk_.ahead(tile.place, 1), stop(state, place, end.ahead + 1).entry);
    merged_.end_part(tile, next, state.softmax, state.merged);
  }

  void perform(const Merge& merge, State& state, Value* place) {
    merged_.merge(merge.half, merge.apart, stop(state, place, 0), state.softmax, state.outputs, state.merged);
  }

  // Products in order, each with its fragment, which is read some fragments earlier. The first are read at
  // once.
  struct Fragment {
    int keys;
    int dims;
  };
  template <typename Read, typename Multiply>
  Strand products(const std::vector<Fragment>& order, Read read, Multiply multiply) {
    fragments_.assign(order.size(), {});
    const auto count = static_cast<std::size_t>(ladder_.read_ahead);
    for (std::size_t index = 0; index < std::min(count, order.size()); ++index) fragments_[index] = read(order[index]);
    Strand strand;
    for (std::size_t index = 0; index < order.size(); ++index) {
      for (int step = 0; step < matrix_.steps(); ++step) {
        strand.add([=, this] {
          if (step == 0 && index + count < order.size()) fragments_[index + count] = read(order[index + count]);
          multiply(order[index], fragments_[index], step);
        });
      }
    }
    return strand;
  }

  // Sᵀ = K · Qᵀ: dims in blocks of 16 upward; both accumulators in turn, so that neighbours do not wait for each other.
  Strand multiply_keys() {
    scores_.assign(2, matrix_.zeros());
    std::vector<Fragment> order;
    for (int dims = 0; dims < blocks_of_dims(spec_.head_dim_qk, wave_.fragment_k()); ++dims)
      for (int keys = 0; keys < 2; ++keys) order.push_back({keys, dims});
    return products(
        order, [this](const Fragment& at) { return tiles_.keys().rows(0, at.keys, at.dims); },
        [this](const Fragment& at, const OperandA& keys, int step) {
          Accumulator& sum = scores_[static_cast<std::size_t>(at.keys)];
          sum = matrix_.mma_step(keys, query_[static_cast<std::size_t>(at.dims)], sum, step);
        });
  }

  // Oᵀ += Vᵀ · Pᵀ: keys in blocks of 16 upward.
  Strand multiply_values(std::vector<Accumulator>& outputs) {
    std::vector<Fragment> order;
    for (int keys = 0; keys < spec_.tile_keys / wave_.fragment_k(); ++keys)
      for (int dims = 0; dims < blocks_of_dims(spec_.head_dim_v, wave_.rows); ++dims) order.push_back({keys, dims});
    return products(
        order, [this](const Fragment& at) { return tiles_.values().transposed(0, at.dims, at.keys); },
        [this, &outputs](const Fragment& at, const OperandA& values, int step) {
          Accumulator& sum = outputs[static_cast<std::size_t>(at.dims)];
          sum = matrix_.mma_step(values, packed_[static_cast<std::size_t>(at.keys)], sum, step);
        });
  }

  // What an Overlap made stays in it: without a use here the backend would sink operations towards their first one,
  // behind barriers and branches and away from the matrix instructions that were to hide them.
  void pin(const Overlap& overlap, const State& state) {
    Values made;
    if (overlap.product == Product::scores)
      for (const Accumulator& part : scores_) made.push_back(part.value);
    if (overlap.softmax == Softmax::finish) {
      for (const OperandB& part : packed_) made.push_back(part.value);
      made.insert(made.end(), state.softmax.sums.begin(), state.softmax.sums.end());
    }
    if (overlap.softmax == Softmax::begin) {
      made.insert(made.end(), state.weights.values.begin(), state.weights.values.end());
      made.push_back(state.softmax.maximum);
    }
    if (!made.empty()) language::pin(kernel_, made);
  }

  Kernel& kernel_;
  const ForwardKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  ScoreModifiers modifiers_;
  SwizzledTiles tiles_;
  language::Softmax softmax_;
  std::unique_ptr<TileWalk> own_walk_;
  TileWalk& walk_;
  MergedRows merged_;
  const Ladder& ladder_;
  const Schedule& schedule_;
  TileSoftmax tile_softmax_;
  std::vector<OperandB> query_;
  // What lives from one act to a later one.
  Strand products_;  // begun by a Read
  Growth growth_;
  Values keys_in_flight_;
  std::optional<TokenScales> token_scales_;
  Values scales_;               // of tile t + 1
  Values modifiers_in_flight_;  // what those of scores_ read from memory
  std::vector<OperandA> fragments_;
  std::vector<Accumulator> scores_;
  std::vector<OperandB> packed_;
  // Whether the values, and the scales, that come next are the first tile's.
  bool values_begin_ = true;
  bool scales_begin_ = true;
};

}  // namespace
}  // namespace interleaved

void emit_interleaved(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan) {
  interleaved::Walker(kernel, spec, plan).emit();
}

}  // namespace wavejit::attention_forward
