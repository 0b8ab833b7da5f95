// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/dualwave.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <memory>
#include <optional>
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
#include "templates/attention/emit/streams_narrow.h"
#include "templates/attention/emit/tile_softmax.h"
#include "templates/attention/emit/tiles_lines.h"
#include "templates/attention_forward/emit/dualwave_fetches.h"
#include "templates/attention_forward/emit/dualwave_products.h"
#include "templates/attention_forward/emit/dualwave_scales.h"
#include "templates/attention_forward/emit/dualwave_schedule.h"
#include "templates/attention_forward/emit/dualwave_state.h"
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/emit/second_query.h"
#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/kernel/ladders.h"

namespace wavejit::attention_forward {
namespace dualwave {
namespace {

using language::Accumulator;
using language::Element;
using language::Kernel;
using language::Likelihood;
using language::Strand;
using language::Value;
using language::Values;

// The slots of four cycles that each operation takes. The first maximum brings two canonicalizations, the swap a copy
// and two wait states, the choice of a maximum one wait state.
constexpr OperationSlots cycle_slots = {.exp2 = 2, .first_maximum = 3, .swap = 8, .grows = 3, .choose = 2, .shift = 2};

// A tile of 8 bits is widened after this many slots of a softmax, so that its loads have had this much longer.
constexpr int widen_after = 30;

class Walker {
 public:
  Walker(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan, const Workgroup& workgroup)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        workgroup_(workgroup),
        modifiers_(kernel, spec.modifiers, spec.bias_type(), score_fields, workgroup_),
        tiles_(kernel, tile_shape(spec, kernel.target()), plan, workgroup_.keys(), workgroup_.lane_group, matrix_),
        softmax_(kernel, modifiers_.softmax_scale(), workgroup_.rescale_threshold,
                 spec.narrow_queries ? language::WeightType::bytes : language::WeightType::wide),
        own_walk_(walk_of(kernel, workgroup_)),
        walk_(*own_walk_),
        merged_(kernel, spec, plan, workgroup_, walk_, softmax_, &tiles_),
        ladder_(*find_ladder(Pipeline::dualwave, spec.ladder)),
        schedule_(schedule_in(order_of(spec))),
        tile_softmax_(kernel, softmax_, matrix_, spec.narrow_queries ? ladder_.weighed_bytes : ladder_.weighed,
                      ladder_.by_cycles ? cycle_slots : OperationSlots{}),
        products_(kernel, spec, matrix_, tiles_, softmax_),
        fetches_(kernel, spec, plan, tiles_, walk_) {
    if (spec.token_scales) scales_.emplace(kernel, spec, workgroup_, matrix_.accumulator_layout());
  }

  void emit() {
    State state = before_all_tiles();

    const Values loaded =
        load_query(kernel_, ByteProducts::loaded_dims(spec_), workgroup_.q, workgroup_, query_numbers(spec_));
    walk(schedule_.start, state, walk_.first(), 0);
    state = walk_started(std::move(state), loaded);
    finish(state);
  }

  // One tile of a pair. `loaded`: Q. The first tile loads Q and fetches its keys itself; for the second tile both are
  // already in flight. Returns the Q of the second tile.
  Values emit_in_pair(const WorkgroupPlace& place, Value* tile, const Values& loaded) {
    const SecondQuery second(kernel_, spec_, place, workgroup_, tiles_, tile);
    second_ = &second;
    State state = before_all_tiles();
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* is_first = ir.CreateICmpEQ(tile, place.query_tile);
    const Values query = language::if_uniform(kernel_, is_first, Likelihood::even, loaded, [&](const Values&) {
      Values own = load_query(kernel_, ByteProducts::loaded_dims(spec_), workgroup_.q, workgroup_);
      walk(schedule_.start, state, walk_.first(), 0);
      return own;
    });
    state = walk_started(std::move(state), query);
    // Every wave has passed its last read of a tile, by the drain's barriers. The next tile's fetches are issued before
    // the stores, because a wait for the fetches would otherwise wait for the stores, too.
    const Values none(loaded.size(), llvm::PoisonValue::get(loaded.front()->getType()));
    const Values next = language::if_uniform(kernel_, second.follows(), Likelihood::even, none, [&](const Values&) {
      Values of_second = second.take();
      walk(schedule_.start, state, walk_.first(), 0);
      return of_second;
    });
    finish(state);
    return next;
  }

 private:
  // Values that one act leaves for a later one.
  struct Hand {
    Values modifiers;  // what modifiers of the scores load from memory, in flight
    Growth growth;
    Strand rest;  // of a softmax: operations left for after the barrier
  };

  State before_all_tiles() {
    State state{.softmax = softmax_.initial(),
                .outputs = {},
                .merged = merged_.start(),
                .weights = {},
                .places = {},
                .entries = {},
                .keys_in_flight = {},
                .values_in_flight = {}};
    state.outputs.assign(static_cast<std::size_t>(blocks_of_dims(spec_.head_dim_v, wave_.rows)), matrix_.zeros());
    return state;
  }

  // From the prologue to the drain, after the start.
  State walk_started(State state, const Values& loaded) {
    products_.take_query(workgroup_, loaded);
    // `images` is rotated, because t is one less in the prologue.
    if (const Values& images = fetches_.images(); !images.empty()) {
      state.images = {images.back(), images[0], images[1]};
      products_.make_read_starts(state, 1);
    }
    state.places.insert(state.places.begin(), TilePages::Place{});
    if (spec_.block_lists) state.entries.insert(state.entries.begin(), nullptr);
    // From here on the second group is one barrier short: it runs one cluster behind.
    if (spec_.stagger) barrier_of_group(1);
    walk(schedule_.prologue, state, walk_.ahead(walk_.first(), -1), 1);
    to_next_tile(state);
    state = walk_tiles(state);
    // The first group makes up for it; both have met at as many barriers then.
    if (spec_.stagger) barrier_of_group(0);
    return state;
  }

  void finish(State& state) {
    finish_rows(kernel_, spec_, workgroup_, softmax_, merged_, state.softmax, state.merged, matrix_.element(),
                state.outputs, spec_.paired_tiles ? &tiles_ : nullptr);
  }

  // The tiles after the prologue: pairs of `steady`, so that a buffer is known at compile time, then the code for an
  // odd or an even number of remaining tiles.
  State walk_tiles(const State& first) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const auto tiles_follow = [&](Value* tile, int count) { return walk_.exists(walk_.ahead(tile, count)); };
    // [0]: the tile that the walk is at, an even number of tiles after the first.
    Values values = language::carried(first);
    values.insert(values.begin(), walk_.first());
    const auto state_at = [&](const Values& at) { return language::state_of(first, std::span(at).subspan(1)); };

    const auto pairs_of_tiles = [&](bool with_query, const auto& more) {
      values = language::if_uniform(kernel_, more(values), Likelihood::even, values, [&](const Values& in) {
        return language::loop_in_phases(
            kernel_, 1, in,
            [&](int, const Values& at) {
              // Opaque to loop strength reduction, which would carry byte offsets round the loop in vector registers.
              Value* tile = kernel_.uniform(at[0]);
              State state = state_at(at);
              fetches_query_ = with_query;
              walk(schedule_.steady, state, tile, 0);
              to_next_tile(state);
              walk(schedule_.steady, state, walk_.ahead(tile, 1), 1);
              to_next_tile(state);
              Values next = language::carried(state);
              next.insert(next.begin(), walk_.ahead(tile, 2));
              return next;
            },
            more);
      });
    };
    if (second_ != nullptr) {
      pairs_of_tiles(true,
                     [&](const Values& at) { return ir.CreateAnd(tiles_follow(at[0], 2), second_->is_left(at[0])); });
    }
    pairs_of_tiles(false, [&](const Values& at) { return tiles_follow(at[0], 2); });

    Value* tile = kernel_.uniform(values[0]);
    if (second_ != nullptr) second_->fetch_rest(tile);
    Value* one_more = tiles_follow(tile, 1);
    values = language::if_uniform(kernel_, one_more, Likelihood::even, values, [&](const Values& at) {
      State state = state_at(at);
      walk(schedule_.steady, state, tile, 0);
      to_next_tile(state);
      Values next = language::carried(state);
      next.insert(next.begin(), at[0]);
      return next;
    });
    State end = state_at(values);
    last_buffer_ = ir.CreateZExt(one_more, kernel_.i32());
    walk(schedule_.drain, end, walk_.last(), 0);
    end.images.clear();  // the next tile of a pair starts in the first buffers
    return end;
  }

  // `buffer`: the buffer of tile t.
  template <typename Rows>
  void walk(const Rows& rows, State& state, Value* walked, int buffer) {
    const Place place{.walked = walked, .buffer = buffer};
    for (const Cluster* cluster = rows.begin(); cluster != rows.end(); ++cluster) {
      std::visit([&](const auto& row) { take(row, state, place); }, *cluster);
      if (std::exchange(fetches_query_, false)) fetch_query(walked);
      if (cluster + 1 != rows.end() && raises(cluster[1])) language::set_priority(kernel_, 1);
      language::barrier(kernel_);
      if (raises(*cluster)) language::set_priority(kernel_, 0);
      if (const Compute* compute = std::get_if<Compute>(cluster))
        for (const ComputeAct& act : compute->behind)
          std::visit([&](const auto& each) { perform(each, state, place); }, act);
    }
  }
  bool raises(const Cluster& cluster) const {
    const Compute* compute = std::get_if<Compute>(&cluster);
    return compute != nullptr && compute->raised_priority && spec_.raised_priority;
  }

  void take(const Memory& cluster, State& state, const Place& place) {
    for (const MemoryAct& act : cluster.acts) std::visit([&](const auto& each) { perform(each, state, place); }, act);
  }

  void take(const Compute& cluster, State& state, const Place& place) {
    for (const ComputeAct& act : cluster.acts) std::visit([&](const auto& each) { perform(each, state, place); }, act);
    if (products_.bytes()) products_.make_read_starts(state, 2);
  }

  void perform(const LookUp& look, State& state, const Place& place) { fetches_.perform(look, state, place); }
  void perform(const ReadWalk& read, State& state, const Place& place) { fetches_.perform(read, state, place); }
  void perform(const Fetch& fetch, State& state, const Place& place) { fetches_.perform(fetch, state, place); }

  void perform(const Read& read, State& state, const Place& place) {
    if (scales_ && read.tile.stream == Stream::keys)
      scales_->fetch_of_keys(walk_.tile_at(fetches_.stop(state, place, read.tile.ahead)),
                             fetches_.page(state, read.tile.ahead));
    if (products_.bytes()) {
      products_.read_bytes(read.tile.stream, state);
    } else if (read.tile.stream == Stream::values && last_buffer_ != nullptr) {
      products_.read_last_values(last_buffer_);
    } else {
      products_.read(read.tile.stream, (place.buffer + read.tile.ahead) % 2);
    }
  }

  void perform(const Modify& modify, State& state, const Place& place) {
    Value* tile = walk_.marked_at(fetches_.stop(state, place, modify.ahead));
    if (!scales_) {
      modifiers_.apply(tile, hand_.modifiers, products_.scores);
      return;
    }
    scales_->fetch_of_values(tile, fetches_.page(state, modify.ahead),
                             std::exchange(scales_begin_, false) ? tiles_.unseen_of(tile) : nullptr, state);
    scales_->modify(modifiers_, tile, hand_.modifiers, products_.scores);
  }

  void perform(const Wait& wait, State& /*state*/, const Place& /*place*/) {
    // Fetches into registers are waited for at their use.
    if (wait.fetches_left == Wait::all || tiles_.narrow_keys() != nullptr) {
      language::wait_for_lds(kernel_);
    } else {
      int left = wait.fetches_left * tiles_.keys().transfers();
      if (waits_past_query_ > 0) {
        left += SecondQuery::fetches;
        --waits_past_query_;
      }
      language::wait_for_lds_and_fills(kernel_, left);
    }
  }

  // Issued after the wait for V(t). The next two waits are for K(t + 2) and V(t + 1), which were fetched before; the
  // wait after them is for K(t + 3), which is fetched after.
  void fetch_query(Value* tile) {
    second_->fetch(tile);
    // With three buffers the next wait is for a fetch before it; the wait after that is for one fetched with it.
    waits_past_query_ = products_.bytes() ? 1 : 2;
  }

  void perform(const Overlap& overlap, State& state, const Place& /*place*/) {
    Strand matrix;
    if (overlap.product == Product::scores) matrix = products_.multiply_keys();
    if (overlap.product == Product::output) matrix = products_.multiply_values(state);
    Strand vector;
    if (overlap.softmax == Softmax::begin)
      vector = tile_softmax_.begin(products_.scores, state.softmax, state.weights, hand_.growth,
                                   scales_ ? scales_->of_scores() : TileSoftmax::Scaled{});
    if (overlap.softmax == Softmax::finish)
      vector = products_.bytes()
                   ? tile_softmax_.finish(state.weights, products_.bytes()->matrix(), products_.packed_bytes)
                   : tile_softmax_.finish(state.weights, state.softmax, products_.packed,
                                          scales_ ? scales_->of_weights(state) : TileSoftmax::Scaled{});
    // Widens loads that were issued three clusters ago, one cluster before they are written to LDS.
    State::InFlight* widened = nullptr;
    if (tiles_.narrow_keys() != nullptr && overlap.product == Product::scores) widened = &state.keys_in_flight;
    if (tiles_.narrow_keys() != nullptr && overlap.softmax == Softmax::begin) widened = &state.values_in_flight;
    if (widened != nullptr) {
      const NarrowLines& stream = widened == &state.keys_in_flight ? *tiles_.narrow_keys() : *tiles_.narrow_values();
      vector.insert(widen_after, stream.widen(widened->loaded, widened->units));
    }
    // Without a product there is nothing to interleave with.
    if (overlap.product != Product::none) {
      const Shadow& shadow = overlap.softmax == Softmax::begin ? ladder_.begin : ladder_.finish;
      vector.write(shadow.lead);
      if (products_.bytes()) {
        language::interleave_what_fits(matrix, vector, shadow.rungs_bytes);
      } else {
        language::interleave_what_fits(
            matrix, vector, rungs_of(shadow, Pipeline::dualwave, matrix.size(), scales_ ? scales_->slots() : 0));
      }
    }
    // The partner begins its products, so the rest of the softmax is left for after the barrier.
    if (products_.bytes() && overlap.softmax == Softmax::begin) {
      hand_.rest = std::move(vector);
    } else {
      vector.write_rest();
    }
    if (widened != nullptr) {
      widened->loaded.clear();
      language::pin(kernel_, widened->units);
    }
    pin(overlap, state);
  }
  // The operations that did not fit in the shadow of the products.
  void perform(const Rest& /*rest*/, State& state, const Place& /*place*/) {
    hand_.rest.write_rest();
    pin_begun(state);
  }

  void perform(const LoadModifiers& load, State& state, const Place& place) {
    hand_.modifiers = modifiers_.fetch(walk_.marked_at(fetches_.stop(state, place, load.ahead)));
  }

  // Chunks have an even number of tiles. Without a window or lists the first tile walked begins a chunk, so that in
  // half of the copies of `steady` no chunk begins. In the drain this is not known at compile time.
  bool may_begin_chunk(const Place& place, int ahead) const {
    if (!spec_.has_chunks()) return false;
    return has_first_key(spec_.mask) || spec_.block_lists || last_buffer_ != nullptr || (place.buffer + ahead) % 2 == 0;
  }

  void perform(const Rescale& /*act*/, State& state, const Place& place) {
    constexpr int ahead = 1;
    tile_softmax_.rescale(hand_.growth, state.softmax, state.outputs, [&]() -> Value* {
      if (!may_begin_chunk(place, ahead)) return kernel_.ir().getFalse();
      return walk_.begins_chunk(fetches_.stop(state, place, ahead));
    });
  }

  void perform(const EndPart& end, State& state, const Place& place) {
    if (!may_begin_chunk(place, end.ahead + 1)) return;
    const Stop tile = fetches_.stop(state, place, end.ahead);
    const Stop next(walk_.ahead(tile.place, 1), fetches_.stop(state, place, end.ahead + 1).entry);
    merged_.end_part(tile, next, state.softmax, state.merged);
  }

  void perform(const Merge& merge, State& state, const Place& place) {
    if (!may_begin_chunk(place, 0)) return;
    merged_.merge(merge.half, merge.apart, fetches_.stop(state, place, 0), state.softmax, state.outputs, state.merged);
  }

  // Keeps the results of an Overlap in it. Without a use here the backend would sink operations towards their first
  // use, behind barriers and branches, and away from the matrix instructions that should hide them.
  void pin(const Overlap& overlap, const State& state) {
    Values made;
    if (overlap.product == Product::scores)
      for (const Accumulator& part : products_.scores) made.push_back(part.value);
    if (overlap.softmax == Softmax::finish) {
      for (const language::OperandB& part : products_.packed) made.push_back(part.value);
      if (products_.bytes()) {
        made.push_back(products_.packed_bytes.value);
      } else {
        made.insert(made.end(), state.softmax.sums.begin(), state.softmax.sums.end());
      }
    }
    // Without this use the wave would wait for the product after the barrier.
    if (products_.bytes() && overlap.product == Product::output) made.push_back(state.softmax.sums[0]);
    language::pin(kernel_, made);
    if (overlap.softmax == Softmax::begin && !products_.bytes()) pin_begun(state);
  }
  void pin_begun(const State& state) {
    Values made = state.weights.values;
    made.push_back(state.softmax.maximum);
    language::pin(kernel_, made);
  }

  // Group 0: the first half of the waves, group 1: the second.
  void barrier_of_group(int group) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* half = kernel_.constant(spec_.tile_queries / wave_.rows / 2);
    Value* member = group == 0 ? ir.CreateICmpULT(kernel_.wave(), half) : ir.CreateICmpUGE(kernel_.wave(), half);
    language::if_uniform(kernel_, member, Likelihood::even, [&] { language::barrier(kernel_); });
  }

  Kernel& kernel_;
  const ForwardKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  ScoreModifiers modifiers_;
  LineTiles tiles_;
  language::Softmax softmax_;
  std::unique_ptr<TileWalk> own_walk_;
  TileWalk& walk_;
  MergedRows merged_;
  const Ladder& ladder_;
  const Schedule& schedule_;
  TileSoftmax tile_softmax_;
  Products products_;
  Fetches fetches_;
  std::optional<Scales> scales_;
  Hand hand_;
  const SecondQuery* second_ = nullptr;  // with paired tiles
  bool scales_begin_ = true;             // the scales of the first tile come next
  bool fetches_query_ = false;           // after the next cluster
  int waits_past_query_ = 0;             // this many waits leave the fetches of the next Q outstanding
  Value* last_buffer_ = nullptr;         // the buffer of the drain's tile, whose parity is known at run time only
};

void emit_pair(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const WorkgroupPlace place = find_place(kernel, spec);
  // The state: the tile, or −1 after the last one; then Q.
  Values first = {place.query_tile};
  first.resize(
      1 + static_cast<std::size_t>(ByteProducts::loaded_dims(spec) / language::wave_shape(kernel).fragment_k()),
      llvm::PoisonValue::get(kernel.vector(kernel.i32(), 4)));
  language::loop_in_phases(
      kernel, 1, first,
      [&](int, const Values& at) -> Values {
        Value* tile = kernel.uniform(at[0]);
        Values next = Walker(kernel, spec, plan, begin_tile(kernel, spec, place, tile))
                          .emit_in_pair(place, tile, {at.begin() + 1, at.end()});
        next.insert(next.begin(),
                    ir.CreateSelect(ir.CreateICmpSGT(tile, place.second_tile), place.second_tile, kernel.constant(-1)));
        return next;
      },
      [&](const Values& next) { return ir.CreateICmpSGE(next[0], kernel.constant(0)); });
}

}  // namespace
}  // namespace dualwave

void emit_dualwave(language::Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan) {
  if (spec.paired_tiles) {
    dualwave::emit_pair(kernel, spec, plan);
  } else {
    dualwave::Walker(kernel, spec, plan, begin_workgroup(kernel, spec)).emit();
  }
}

}  // namespace wavejit::attention_forward
