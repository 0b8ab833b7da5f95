// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/emit.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "codegen/language/carried.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/covered_weights.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/tiles.h"
#include "templates/attention/emit/tiles_padded.h"
#include "templates/attention/emit/unseen_keys.h"
#include "templates/attention_forward/emit/byte_products.h"
#include "templates/attention_forward/emit/dualwave.h"
#include "templates/attention_forward/emit/integer_products.h"
#include "templates/attention_forward/emit/interleaved.h"
#include "templates/attention_forward/emit/list_walk.h"
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/emit/shared_register_walk.h"
#include "templates/attention_forward/emit/shared_walk.h"
#include "templates/attention_forward/emit/token_scales.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using language::Accumulator;
using language::Element;
using language::Kernel;
using language::KOrder;
using language::OperandA;
using language::OperandB;
using language::SoftmaxState;
using language::Value;
using language::Values;

// The generic pipeline: waves of 32 query rows (4; 1 or 2 where there are few rows) walk the key tiles together, one
// tile after the other.
//
//   Sᵀ = K · Qᵀ      a lane owns a query row (a column of Sᵀ), so that row statistics stay in the lane
//   P  = softmax weights of S, rounded to the storage type in the registers where S stood
//   Oᵀ += Vᵀ · Pᵀ    with the keys in the order in which the score registers hold them: P never crosses lanes
class GenericPipeline {
 public:
  GenericPipeline(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan)
      : kernel_(kernel),
        spec_(spec),
        plan_(plan),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        workgroup_(begin_workgroup(kernel, spec)),
        modifiers_(kernel, spec.modifiers, spec.bias_type(), score_fields, workgroup_),
        tiles_(plan.layout == LdsLayout::padded ? nullptr
                                                : make_tiles(kernel, tile_shape(spec, kernel.target()), plan,
                                                             workgroup_.keys(), workgroup_.lane_group, matrix_)),
        softmax_(kernel, modifiers_.softmax_scale(), workgroup_.rescale_threshold,
                 spec.narrow_queries ? language::WeightType::bytes : language::WeightType::wide),
        own_walk_(walk_of(kernel, workgroup_)),
        walk_(*own_walk_),
        merged_(kernel, spec, plan, workgroup_, walk_, softmax_) {
    if (plan.layout == LdsLayout::padded)
      padded_.emplace(kernel, tile_shape(spec, kernel.target()), plan, workgroup_.keys(), workgroup_.lane_group,
                      matrix_);
    if (spec.narrow_queries) bytes_.emplace(kernel, spec);
    if (spec.integers)
      integers_.emplace(kernel, spec, workgroup_, workgroup_.kv_head, workgroup_.first_slot, workgroup_.key_length);
    if (spec.cache_has_token_scales()) token_scales_.emplace(kernel, spec, workgroup_, matrix_.accumulator_layout());
  }

  void emit() {
    State end = walk_tiles();
    finish_rows(kernel_, spec_, workgroup_, softmax_, merged_, end.softmax, end.merged, matrix_.element(), end.outputs);
  }

 private:
  // A walk in memory carries the entry of the tile, and of the next. Keys in pages leave no scalar registers for them:
  // there a tile is read where it is asked for.
  static constexpr std::size_t entries_carried = 2;
  bool reads_ahead() const { return (spec_.block_lists || spec_.bool_mask) && !spec_.paged; }

  struct State {
    Value* place = nullptr;  // of the tile in the walk
    Values entries;          // what stands there and at the next place, where it is read ahead
    SoftmaxState softmax;
    std::vector<Accumulator> outputs;  // Oᵀ, a block of dims each
    Values merged;                     // the chunks before, as far as registers hold them
    Values scales;                     // of the tile's keys and values, where each has its own
    Values in_flight;                  // the next tile, as far as it waits in registers
    void each(this auto& state, auto visit) {
      visit(state.place);
      visit(state.softmax);
      visit(state.outputs);
      visit(state.merged);
      visit(state.entries);
      visit(state.scales);
      visit(state.in_flight);
    }
  };

  int output_blocks() const { return blocks_of_dims(spec_.head_dim_v, wave_.rows); }
  int score_blocks() const { return spec_.tile_keys / wave_.rows; }
  int dim_blocks() const { return blocks_of_dims(spec_.head_dim_qk, wave_.fragment_k()); }

  State walk_tiles() {
    State start{.place = walk_.first(),
                .entries = {},
                .softmax = softmax_.initial(),
                .outputs = {},
                .merged = merged_.start(),
                .scales = {},
                .in_flight = {}};
    if (reads_ahead())
      for (std::size_t ahead = 0; ahead < entries_carried; ++ahead)
        start.entries.push_back(walk_.read(walk_.ahead(walk_.first(), static_cast<int>(ahead))));
    if (token_scales_) {
      Value* tile = walk_.tile_at(walk_.first());
      start.scales = token_scales_->start(tile, attention::unseen_keys(kernel_, workgroup_.first_seen, tile));
    }
    const Stops first = stops_at(start, walk_.first());
    start.in_flight = padded_ ? padded_->start(first, walk_) : tiles_->start(first, walk_);
    start.outputs.assign(static_cast<std::size_t>(output_blocks()), matrix_.zeros());
    const Values query =
        load_query(kernel_, ByteProducts::loaded_dims(spec_), workgroup_.q, workgroup_, query_numbers(spec_));
    if (integers_) {
      query_integers_ = query;
    } else if (bytes_) {
      query_bytes_ = bytes_->query(query, workgroup_.query_sign);
    } else {
      query_ = query_operands(kernel_, workgroup_, matrix_, query, query_numbers(spec_));
    }

    if (padded_) start.in_flight = padded_->begin(first, walk_, start.in_flight);

    const Values end = language::loop_in_phases(
        kernel_, plan_.buffers, language::carried(start),
        [&](int buffer, const Values& values) {
          State state = language::state_of(start, values);
          // Opaque to loop strength reduction, which would carry the tile's byte offsets round the loop in vector
          // registers, where a buffer instruction cannot take them from.
          Value* place = kernel_.uniform(state.place);
          state.place = walk_.ahead(state.place, 1);
          if (reads_ahead()) state.entries.push_back(walk_.read(walk_.ahead(place, entries_carried)));
          const Stops stops = stops_at(state, place);
          if (reads_ahead()) state.entries.erase(state.entries.begin());
          if (padded_) return language::carried(attend_padded(state, stops));
          Values scales;
          if (token_scales_) scales = token_scales_->advance(walk_.tile_at(stops[1]), state.scales);
          state.in_flight = tiles_->advance(buffer, stops, walk_, state.in_flight);
          return language::carried(attend(state, buffer, stops, scales));
        },
        [&](const Values& values) { return has_tile(language::state_of(start, values)); });
    if (padded_) padded_->wait();
    return language::state_of(start, end);
  }

  Value* has_tile(const State& state) { return walk_.exists(state.place); }

  Stops stops_at(const State& state, Value* place) const {
    Value* next = walk_.ahead(place, 1);
    Stops stops = {place, next, walk_.ahead(next, 1)};
    for (std::size_t ahead = 0; ahead < state.entries.size() && ahead < stops.size(); ++ahead)
      stops[ahead].entry = state.entries[ahead];
    return stops;
  }

  // `scales`: the scales of the tile's tokens, if there are any.
  State attend(State state, int buffer, const Stops& stops, const Values& scales) {
    if (bytes_) return attend_bytes(std::move(state), buffer, stops);
    merged_.end_chunk(stops.front(), state.softmax, state.outputs, state.merged);
    Value* seen = walk_.sees(stops.front());
    if (seen == nullptr) return attend_seen(std::move(state), buffer, stops, scales);
    const Values after = language::if_uniform(
        kernel_, seen, language::Likelihood::even, language::carried(state), [&](const Values& before) {
          return language::carried(attend_seen(language::state_of(state, before), buffer, stops, scales));
        });
    return language::state_of(state, after);
  }

  State attend_seen(State state, int buffer, const Stops& stops, const Values& scales) {
    const Stop& place = stops.front();
    Value* tile = walk_.tile_at(place);
    // With a bias in f32 that a branch adds, 32 registers more would be live beside Q and K.
    const bool is_late = spec_.bias_by_tile && spec_.bias_fp32;
    Values fetched;
    if (!is_late) fetched = modifiers_.fetch(walk_.marked_at(place));
    std::vector<Accumulator> scores;
    if (integers_) {
      scores = multiply_integers(buffer, tile);
    } else {
      ReadAhead keys(key_steps(), [&](const Step& step) { return tiles_->keys().rows(buffer, step.keys, step.dims); });
      scores = multiply_keys(keys);
    }
    tiles_->advance_values(buffer, stops, walk_);
    // The first of V are read while the softmax runs.
    ReadAhead values(value_steps(),
                     [&](const Step& step) { return tiles_->values().transposed(buffer, step.dims, step.keys); });
    if (token_scales_) token_scales_->scale_scores(scales, scores);
    if (is_late) fetched = modifiers_.fetch(walk_.marked_at(place));
    modifiers_.apply(walk_.marked_at(place), fetched, scores);
    if (Value* named = tiles_->named()) attention::hide_unnamed(kernel_, named, workgroup_.lane_group, scores);
    state.softmax = softmax_.raise_maximum(state.softmax, scores, state.outputs);
    state.softmax = softmax_.weigh(state.softmax, scores);
    if (token_scales_) token_scales_->scale_weights(scales, scores);
    accumulate_values(values, scores, state.outputs);
    return state;
  }

  // A tile's bias comes while scores are multiplied; more than 128 dims of K and of Q leave no room for it until they
  // are.
  bool fetches_late() const {
    constexpr int usual_dims = 128;
    return spec_.head_dim_qk > usual_dims;
  }
  // The same where barriers are in two: what stands between arrival and wait needs nobody else (tiles_padded.h).
  State attend_padded(State state, const Stops& stops) {
    const Stop& place = stops.front();
    Value* marked = walk_.marked_at(place);
    merged_.end_chunk(place, state.softmax, state.outputs, state.merged);
    Values fetched;
    if (!fetches_late()) fetched = modifiers_.fetch(marked);
    padded_->wait();
    ReadAhead keys(key_steps(), [&](const Step& step) { return padded_->keys().rows(0, step.keys, step.dims); });
    state.in_flight = padded_->put_values(stops, walk_, state.in_flight);
    std::vector<Accumulator> scores = multiply_keys(keys, [&] { padded_->arrive(); });
    if (fetches_late()) fetched = modifiers_.fetch(marked);
    modifiers_.apply(marked, fetched, scores);
    state.softmax = softmax_.raise_maximum(state.softmax, scores, state.outputs);
    const std::vector<OperandB> weights = attention::covered_weights(kernel_, softmax_, matrix_, scores, state.softmax);
    padded_->wait();
    // Where the scores stood is room for more of them.
    ReadAhead values(
        value_steps(), [&](const Step& step) { return padded_->values().transposed(0, step.dims, step.keys); },
        2 * ReadAhead::usual);
    state.in_flight = padded_->put_keys(stops, walk_, state.in_flight);
    const auto use = [&](const Step& step, const OperandA& fragment) {
      Accumulator& sum = state.outputs[static_cast<std::size_t>(step.dims)];
      sum = matrix_.mma(fragment, weights[static_cast<std::size_t>(step.keys)], sum);
    };
    values.consume(use, [&] { padded_->arrive(); });
    return state;
  }

  // The same of bytes: an operand is half a tile and 64 dims, or a whole one and 32.
  State attend_bytes(State state, int buffer, const Stops& stops) {
    const Stop& place = stops.front();
    merged_.end_chunk(place, state.softmax, state.outputs, state.merged);
    const Values fetched = modifiers_.fetch(walk_.marked_at(place));
    std::vector<Accumulator> scores(2, matrix_.zeros());
    for (int step = 0; step < bytes_->key_steps(); ++step)
      bytes_->multiply_keys(bytes_->keys(tiles_->keys(), buffer, step), query_bytes_, scores, step);
    tiles_->advance_values(buffer, stops, walk_);
    modifiers_.apply(walk_.marked_at(place), fetched, scores);
    if (Value* named = tiles_->named()) attention::hide_unnamed(kernel_, named, workgroup_.lane_group, scores);
    state.softmax = softmax_.raise_maximum(state.softmax, scores, state.outputs);
    softmax_.to_weights(state.softmax, scores);
    const language::ByteOperand weights = bytes_->matrix().rounded(scores[0], scores[1]);
    Value* scale = state.softmax.scale;
    Value*& sum = state.softmax.sums[0];
    sum = softmax_.accumulated(sum, bytes_->matrix().of_columns(bytes_->matrix().column_sums(weights, scale)));
    for (int step = 0; step < bytes_->value_steps(); ++step) {
      Accumulator& output = state.outputs[static_cast<std::size_t>(step)];
      output = bytes_->matrix().mma(bytes_->values(tiles_->values(), buffer, step), weights, output, scale);
    }
    return state;
  }

  // One fragment product: which block of keys, which block of dims.
  struct Step {
    int keys;
    int dims;
  };
  // Both accumulators of the scores in turn, so that neighbours do not wait for each other.
  std::vector<Step> key_steps() const {
    std::vector<Step> steps;
    for (int dims = 0; dims < dim_blocks(); ++dims)
      for (int keys = 0; keys < score_blocks(); ++keys) steps.push_back({keys, dims});
    return steps;
  }
  std::vector<Step> value_steps() const {
    std::vector<Step> steps;
    for (int keys = 0; keys < spec_.tile_keys / wave_.fragment_k(); ++keys)
      for (int dims = 0; dims < output_blocks(); ++dims) steps.push_back({keys, dims});
    return steps;
  }

  // LDS reads that run a few fragments ahead of the matrix instructions that consume them.
  class ReadAhead {
   public:
    static constexpr std::size_t usual = 4;
    ReadAhead(std::vector<Step> steps, std::function<OperandA(const Step&)> read, std::size_t distance = usual)
        : steps_(std::move(steps)), read_(std::move(read)), distance_(distance) {
      fill(distance_);
    }
    // Calls use(step, fragment) for every step in order. `all_read`: once all reads have been asked for, and half of
    // the last ones were used.
    template <typename Use>
    void consume(Use use, const std::function<void()>& all_read = {}) {
      for (std::size_t index = 0; index < steps_.size(); ++index) {
        fill(index + distance_);
        if (all_read && index + (distance_ / 2) == steps_.size()) all_read();
        use(steps_[index], fragments_[index]);
      }
    }

   private:
    void fill(std::size_t count) {
      while (fragments_.size() < std::min(count, steps_.size())) fragments_.push_back(read_(steps_[fragments_.size()]));
    }
    std::vector<Step> steps_;
    std::function<OperandA(const Step&)> read_;
    std::size_t distance_;
    std::vector<OperandA> fragments_;
  };

  // Sᵀ = K · Qᵀ: raw scores, dims in blocks of 16 from dim 0 upward.
  std::vector<Accumulator> multiply_keys(ReadAhead& reads, const std::function<void()>& all_read = {}) {
    std::vector<Accumulator> scores(static_cast<std::size_t>(score_blocks()), matrix_.zeros());
    const auto use = [&](const Step& step, const OperandA& keys) {
      Accumulator& sum = scores[static_cast<std::size_t>(step.keys)];
      sum = matrix_.mma(keys, query_[static_cast<std::size_t>(step.dims)], sum);
    };
    reads.consume(use, all_read);
    return scores;
  }

  std::vector<Accumulator> multiply_integers(int buffer, Value* tile) {
    const Values scales = integers_->fetch(tile);
    return integers_->scores(tiles_->keys(), buffer, query_integers_, scales);
  }

  // Oᵀ += Vᵀ · Pᵀ, keys in blocks of 16 from key 0 of the tile upward.
  void accumulate_values(ReadAhead& reads, const std::vector<Accumulator>& weights, std::vector<Accumulator>& outputs) {
    OperandB packed;
    reads.consume([&](const Step& step, const OperandA& values) {
      if (step.dims == 0) packed = pack_weights(weights, step.keys);
      Accumulator& sum = outputs[static_cast<std::size_t>(step.dims)];
      sum = matrix_.mma(values, packed, sum);
    });
  }

  // Eight score registers are one operand fragment: a 16-key block in accumulator-row order.
  OperandB pack_weights(const std::vector<Accumulator>& weights, int key_block) {
    const int blocks_of_part = wave_.registers() / wave_.slots();
    const Accumulator& part = weights[static_cast<std::size_t>(key_block / blocks_of_part)];
    const std::vector<Value*> dwords =
        language::convert_packed(kernel_, part.value, key_block % blocks_of_part * wave_.slots(), wave_.slots(),
                                 matrix_.element(), language::NanInput::irrelevant);
    return matrix_.operand_b(language::gather_dwords(kernel_, dwords), KOrder::accumulator_rows);
  }

  Kernel& kernel_;
  const ForwardKernel& spec_;
  const LdsPlan& plan_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  ScoreModifiers modifiers_;
  std::unique_ptr<Tiles> tiles_;       // or …
  std::optional<PaddedTiles> padded_;  // … where tiles stand padded
  language::Softmax softmax_;
  std::unique_ptr<TileWalk> own_walk_;
  TileWalk& walk_;
  MergedRows merged_;
  std::vector<OperandB> query_;
  std::optional<IntegerProducts> integers_;  // of Q and K
  Values query_integers_;
  std::optional<TokenScales> token_scales_;
  std::optional<ByteProducts> bytes_;  // of Q, K and V in 8 bits
  std::vector<language::ByteOperand> query_bytes_;
};

// Straight-line strength reduction looks at all pairs of addresses: it took two thirds of what compiling these took,
// and 0.1 % of their predicted cycles.
bool has_many_addresses(const ForwardKernel& spec) {
  constexpr int usual_dims = 128;
  if (spec.pipeline != Pipeline::generic) return false;
  return spec.paged || spec.listed || (spec.chunk_waves != 0 && spec.head_dim_v > usual_dims);
}

}  // namespace

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const ForwardKernel& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context) {
  if (spec.target != target.id)
    return std::unexpected("the spec is for target=" + spec.target + ", not for " + std::string(target.id));
  const auto resources = resources_of(spec);
  if (!resources) return std::unexpected(resources.error());
  return emit_unasked(spec, *resources, target, context);
}

std::expected<std::unique_ptr<llvm::Module>, std::string> emit_unasked(const ForwardKernel& spec,
                                                                       const Resources& resources,
                                                                       const targets::Target& target,
                                                                       llvm::LLVMContext& context) {
  const LdsPlan plan = lds_plan(spec, target);
  Kernel kernel(context, target,
                {.name = kernel_name(spec),
                 .threads = resources.threads,
                 .waves_per_simd = targets::waves_with(target, resources.vgpr_budget),
                 .vgpr_budget = resources.vgpr_budget,
                 .argument_bytes = static_cast<int>(argument_bytes(spec)),
                 .strength_reduction = !has_many_addresses(spec)});
  switch (spec.pipeline) {
    case Pipeline::generic:
      if (spec.chunk_waves != 0) {
        plan.layout == LdsLayout::lines ? emit_shared_walk(kernel, spec, plan)
                                        : emit_shared_register_walk(kernel, spec, plan);
        break;
      }
      GenericPipeline(kernel, spec, plan).emit();
      break;
    case Pipeline::dualwave:
      emit_dualwave(kernel, spec, plan);
      break;
    case Pipeline::interleaved:
      emit_interleaved(kernel, spec, plan);
      break;
  }
  return kernel.finish();
}

}  // namespace wavejit::attention_forward
