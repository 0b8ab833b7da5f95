// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/shared_register_walk.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "codegen/language/carried.h"
#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/loads_first.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/key_pages.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/streams_swizzled.h"
#include "templates/attention/emit/tile_walk.h"
#include "templates/attention/emit/unseen_keys.h"
#include "templates/attention_forward/emit/chunk_exchange.h"
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/emit/tile_growths.h"
#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/emit/wave_values.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/arguments.h"

namespace wavejit::attention_forward {
namespace {

using attention::ScoreModifiers;
using attention::Stop;
using attention::SwizzledRows;
using language::Accumulator;
using language::Element;
using language::Kernel;
using language::KOrder;
using language::Likelihood;
using language::OperandA;
using language::OperandB;
using language::SoftmaxState;
using language::Value;
using language::Values;

// W waves walk the tiles in steps of W, all with the same rows, as in shared_walk.cpp. Here waves share nothing but
// what they exchange about rows:
//
//   K   of the wave's own tile, whole rows, into registers; by an image of half a tile into operands
//   V   of all tiles of the step, the wave's dims, into registers; by the same image into operands, tile by tile
//
// So a step has two barriers:
//
//   first    every wave has left its tile's maxima. Everybody's reads of the last step's P and sums have returned
//   second   every wave has left its P and sums. Everybody's reads of maxima have returned
//
// A register that a step has written to LDS is loaded again for the next step at once, so that memory has a whole step
// for the load.
class SharedRegisterWalk {
 public:
  SharedRegisterWalk(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        workgroup_(begin_workgroup(kernel, spec)),
        modifiers_(kernel, spec.modifiers, spec.bias_type(), score_fields, workgroup_),
        lds_(kernel, plan.total_bytes(), regions),
        pages_(attention::pages_of(kernel, spec.key_layout(), workgroup_.keys())),
        image_(kernel.ir().CreateMul(kernel.wave(), kernel.constant(plan.k_offset(1) - plan.k_offset(0)))),
        keys_(kernel, lds_, matrix_, workgroup_.k, image_region, plan.k_offset(0), spec.head_dim_qk,
              kernel.target().wave_size, workgroup_.lane_group, pages_, no_tile_pages_),
        exchange_(kernel, lds_, exchange_region, plan.exchange_offset(), spec.chunk_waves),
        softmax_(kernel, modifiers_.softmax_scale(), workgroup_.rescale_threshold),
        own_walk_(interval_of(kernel, workgroup_,
                              kernel.ir().CreateAnd(workgroup_.first_tile, kernel.constant(-spec.chunk_waves)))),
        walk_(*own_walk_),
        merged_(kernel, spec, plan, workgroup_, walk_, softmax_) {
    Values starts = keys_.starts();
    for (Value*& start : starts) start = kernel.ir().CreateAdd(start, image_);
    keys_.set_starts(starts);
  }

  void emit() {
    State end = walk_steps();
    const auto finish = [&] {
      make_last_outputs(kernel_, spec_, workgroup_);
      finish_rows(kernel_, spec_, workgroup_, softmax_, merged_, end.softmax, end.merged, matrix_.element(),
                  end.outputs);
    };
    if (has_dims() == nullptr || spec_.split_keys != 0) return finish();
    language::if_uniform(kernel_, has_dims(), Likelihood::even, finish);
  }

 private:
  static constexpr int image_region = 0;
  static constexpr int exchange_region = 1;
  static constexpr int regions = 2;

  using Load = SwizzledRows::Load;

  struct State {
    Value* step = nullptr;  // its first tile
    SoftmaxState softmax;
    std::vector<Accumulator> outputs;  // Oᵀ, of the wave's dims
    Values merged;                     // the chunks before
    Values entries;                    // of the next step, of keys that are looked up
    Values marks;                      // of the own tile and of the next one, of a walk that has marks
    Values keys;                       // of the own tile, in registers
    std::vector<Values> values;        // of each tile
    void each(this auto& state, auto visit) {
      visit(state.step);
      visit(state.softmax);
      visit(state.outputs);
      visit(state.merged);
      visit(state.entries);
      visit(state.marks);
      visit(state.keys);
      visit(state.values);
    }
  };

  int waves() const { return spec_.chunk_waves; }
  int output_blocks() const { return output_blocks_of_wave(spec_, wave_.rows); }
  int score_blocks() const { return spec_.tile_keys / wave_.rows; }
  int operands() const { return spec_.tile_keys / wave_.fragment_k(); }
  Value* has_dims() const { return workgroup_.share.has_dims; }

  Value* own_tile(Value* step) const { return kernel_.ir().CreateAdd(step, kernel_.wave()); }
  Value* tile_of(Value* step, int tile) const { return kernel_.ir().CreateAdd(step, kernel_.constant(tile)); }
  Value* next_step(Value* step) const { return walk_.ahead(step, waves()); }

  // Loads that are issued one by one between other work.
  class Dealt {
   public:
    explicit Dealt(std::vector<Load> loads) : loads_(std::move(loads)) {}
    // Issues loads until `done` of `all` parts of them are in flight.
    void load(std::size_t done, std::size_t all) {
      while (loaded_.size() < done * loads_.size() / all) loaded_.push_back(loads_[loaded_.size()]());
    }
    Values take() {
      load(1, 1);
      return std::move(loaded_);
    }

   private:
    std::vector<Load> loads_;
    Values loaded_;
  };

  // A tile that is not walked, or that no row sees, is read as zeros. `mark`: for walks that have marks.
  struct Walked {
    Value* tile;
    Value* exists;
  };
  Value* is_walked(Value* tile) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    return ir.CreateAnd(walk_.exists(tile), ir.CreateICmpSGE(tile, workgroup_.first_tile));
  }
  Walked walked(Value* tile, Value* mark) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* exists = is_walked(tile);
    if (mark != nullptr) exists = ir.CreateAnd(exists, walk_.sees({tile, mark}));
    return {.tile = ir.CreateSelect(exists, tile, walk_.last()), .exists = exists};
  }
  Dealt loads_of_keys(Value* step, const Values& entries, Value* mark) {
    const Walked own = walked(own_tile(step), mark);
    return Dealt(keys_.loads_of(own.tile, {}, own_entries(entries), own.exists));
  }
  // The loads of the wave's values; none for a wave without dims. `first_seen`: for the walk's first step
  // (attention/emit/unseen_keys.h).
  Dealt loads_of_values(Value* step, int tile, const Values& entries, const Values& marks,
                        Value* first_seen = nullptr) {
    Walked of_step = walked(tile_of(step, tile), marks.empty() ? nullptr : marks[static_cast<std::size_t>(tile)]);
    if (has_dims() != nullptr) of_step.exists = kernel_.ir().CreateAnd(of_step.exists, has_dims());
    return Dealt(values_->loads_of(of_step.tile, entries_of_tile(entries, tile), of_step.exists,
                                   attention::unseen_keys(kernel_, first_seen, of_step.tile)));
  }

  // The marks of all tiles of a step, if the walk has marks.
  Values marks_of(Value* step) const {
    Values marks;
    for (int tile = 0; spec_.bool_mask && tile < waves(); ++tile) marks.push_back(walk_.read(tile_of(step, tile)));
    return marks;
  }

  // The block-table entries of all tiles of a step. Keys that are looked up one by one take one register for each tile.
  // Granules of 16 keys take 4 lanes of a register, so the tiles share one, with tile l mod W in lane l: one load then
  // reads what is mostly one line of the table, where a load for each tile would read as many lines.
  Values entries_of(Value* step) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (!pages_) return {};
    if (!pages_->looks_up_each_key())
      return {pages_->entries(ir.CreateAdd(step, ir.CreateAnd(kernel_.lane(), kernel_.constant(waves() - 1))))};
    Values entries;
    for (int tile = 0; tile < waves(); ++tile) entries.push_back(pages_->entries(tile_of(step, tile)));
    return entries;
  }
  Value* entries_of_tile(const Values& entries, int tile) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (!pages_) return nullptr;
    if (pages_->looks_up_each_key()) return entries[static_cast<std::size_t>(tile)];
    Value* in_row = ir.CreateBitCast(entries.front(), kernel_.f32());
    return ir.CreateBitCast(language::of_lane_in_row(kernel_, in_row, tile), kernel_.i32());
  }
  Value* own_entries(const Values& entries) const {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (!pages_) return nullptr;
    Value* own = entries_of_tile(entries, 0);
    for (int tile = 1; tile < waves(); ++tile)
      own =
          ir.CreateSelect(ir.CreateICmpEQ(kernel_.wave(), kernel_.constant(tile)), entries_of_tile(entries, tile), own);
    return own;
  }

  State walk_steps() {
    State state{.step = walk_.first(),
                .softmax = softmax_.initial(),
                .outputs = std::vector<Accumulator>(static_cast<std::size_t>(output_blocks()), matrix_.zeros()),
                .merged = merged_.start(),
                .entries = {},
                .marks = {},
                .keys = {},
                .values = {}};
    const Values entries = entries_of(state.step);
    state.entries = entries_of(next_step(state.step));
    if (spec_.bool_mask) state.marks = {walk_.read(own_tile(state.step)), walk_.read(own_tile(next_step(state.step)))};
    state.keys = loads_of_keys(state.step, entries, spec_.bool_mask ? state.marks[0] : nullptr).take();
    const Values marks = marks_of(state.step);
    // K is in flight, so instructions that are issued here cost no time.
    make_later_slices(kernel_, spec_, workgroup_);
    values_.emplace(kernel_, lds_, matrix_, workgroup_.v,
                    WaveValues::Place{.region = image_region,
                                      .image = image_,
                                      .first_dim = workgroup_.share.first_dim,
                                      .dims = output_blocks() * wave_.rows},
                    workgroup_.lane_group, pages_);
    const Values query = load_query(kernel_, spec_.head_dim_qk, workgroup_.q, workgroup_, query_numbers(spec_));
    for (int tile = 0; tile < waves(); ++tile)
      state.values.push_back(loads_of_values(state.step, tile, entries, marks, workgroup_.first_seen).take());
    language::loads_first(kernel_, entries);
    query_ = query_operands(kernel_, workgroup_, matrix_, query, query_numbers(spec_));
    const Values end = language::loop_in_phases(
        kernel_, 1, language::carried(state),
        [&](int, const Values& values) { return language::carried(walk(language::state_of(state, values))); },
        [&](const Values& values) { return walk_.exists(language::state_of(state, values).step); });
    return language::state_of(state, end);
  }

  State walk(State state) {
    // Opaque to what would carry byte offsets of tiles round the loop in vector registers.
    Value* step = kernel_.uniform(state.step);
    Value* tile = own_tile(step);
    Value* next = next_step(step);
    merged_.end_chunk(step, state.softmax, state.outputs, state.merged);
    const Values fetched = modifiers_.fetch(spec_.bool_mask ? walk_.at_most_last(tile) : tile);
    const Values entries = std::exchange(state.entries, entries_of(next_step(next)));
    const Values next_marks = marks_of(next);
    Stop own = tile;
    Value* next_mark = nullptr;
    if (spec_.bool_mask) {
      // A tile that is not walked counts as one that no row sees.
      own.entry = kernel_.ir().CreateSelect(is_walked(tile), state.marks[0], kernel_.constant(0));
      next_mark = state.marks[1];
      state.marks = {next_mark, walk_.read(own_tile(next_step(next)))};
    }
    Dealt next_keys = loads_of_keys(next, entries, next_mark);
    std::vector<Accumulator> scores = multiply_keys(state.keys, next_keys);
    state.keys = next_keys.take();
    modifiers_.apply(walk_.marked_at(own), fetched, scores);
    exchange_.put_maximum(row_maximum(scores));
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);

    const TileGrowths growths = growths_of(kernel_, softmax_, state.softmax.maximum, exchange_.maxima());
    Value* grows = any_grows(kernel_, growths);
    leave_weights(maximum_behind_own(kernel_, growths), scores);
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);

    accumulate(state, growths, grows, next, entries, next_marks);
    state.softmax.maximum = growths.back().maximum;
    state.step = next;
    return state;
  }

  // Sᵀ = K · Qᵀ of the wave's tile, in halves of 32 keys. The reads of a half are issued before the writes of the next
  // half. The writes are spread over the products, so that they do not hold up another wave at the LDS that both share.
  std::vector<Accumulator> multiply_keys(const Values& loaded, Dealt& next) {
    const auto blocks = static_cast<std::size_t>(score_blocks());
    const std::size_t of_block = loaded.size() / blocks;
    const auto dims = static_cast<std::size_t>(spec_.head_dim_qk / wave_.fragment_k());
    std::size_t written = 0;
    const auto write_up_to = [&](std::size_t count) {
      const std::size_t first = written / of_block * of_block;  // of the half's loads
      keys_.write_first_rows(std::span(loaded).subspan(written, count - written), static_cast<int>(written),
                             static_cast<int>(first));
      written = count;
    };
    write_up_to(of_block);
    std::vector<Accumulator> scores(blocks, matrix_.zeros());
    for (std::size_t block = 0; block < blocks; ++block) {
      std::vector<OperandA> keys;
      keys.reserve(dims);
      for (std::size_t dim = 0; dim < dims; ++dim) keys.push_back(keys_.rows(0, 0, static_cast<int>(dim)));
      for (std::size_t dim = 0; dim < dims; ++dim) {
        scores[block] = matrix_.mma(keys[dim], query_[dim], scores[block]);
        if (block + 1 < blocks) write_up_to(of_block + (of_block * (dim + 1) / dims));
        next.load((block * dims) + dim + 1, blocks * dims);
      }
    }
    return scores;
  }

  Value* row_maximum(const std::vector<Accumulator>& scores) {
    const auto [one, other] = language::both_halves(kernel_, softmax_.largest(scores));
    return kernel_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, one, other);
  }

  // Writes P of the wave's tile and the sum of its weights to LDS, for all waves.
  void leave_weights(Value* maximum, std::vector<Accumulator>& scores) {
    SoftmaxState own = softmax_.initial();
    own.maximum = maximum;
    own = softmax_.weigh(own, scores);
    for (int operand = 0; operand < operands(); ++operand) {
      const Accumulator& part = scores[static_cast<std::size_t>(operand / 2)];
      const std::vector<Value*> dwords =
          language::convert_packed(kernel_, part.value, operand % 2 * wave_.slots(), wave_.slots(), matrix_.element(),
                                   language::NanInput::irrelevant);
      exchange_.put_weights(operand, language::gather_dwords(kernel_, dwords));
    }
    exchange_.put_sums(own.sums);
  }

  // A tile's V in operands, [16 keys][32 dims], and what its wave wrote to LDS about the tile.
  struct TileParts {
    std::vector<OperandA> values;
    std::vector<OperandB> weights;
    language::RunningSums sums;
  };
  TileParts read_tile(int tile, const Values& loaded) {
    TileParts parts;
    values_->write(loaded);
    for (int keys = 0; keys < operands(); ++keys)
      for (int dims = 0; dims < output_blocks(); ++dims) parts.values.push_back(values_->transposed(dims, keys));
    for (int operand = 0; operand < operands(); ++operand)
      parts.weights.push_back(matrix_.operand_b(exchange_.weights(tile, operand), KOrder::accumulator_rows));
    parts.sums = exchange_.sums(tile);
    return parts;
  }

  // Updates l and the wave's dims of O with all tiles of the step. As in a single wave, both are first rescaled to the
  // tile's maximum.
  void accumulate(State& state, const TileGrowths& growths, Value* any, Value* next, const Values& entries,
                  const Values& marks) {
    TileParts parts = read_tile(0, state.values.front());
    for (int tile = 0; tile < waves(); ++tile) {
      const auto at = static_cast<std::size_t>(tile);
      Dealt next_values = loads_of_values(next, tile, entries, marks);
      const TileParts behind = tile + 1 < waves() ? read_tile(tile + 1, state.values[at + 1]) : TileParts{};
      rescale(state, growths[at], any);
      for (std::size_t j = 0; j < state.softmax.sums.size(); ++j)
        state.softmax.sums[j] = softmax_.accumulated(state.softmax.sums[j], parts.sums[j]);
      auto values = parts.values.begin();
      std::size_t done = 0;
      for (const OperandB& weights : parts.weights)
        for (Accumulator& output : state.outputs) {
          output = matrix_.mma(*values++, weights, output);
          next_values.load(++done, parts.values.size());
        }
      state.values[at] = next_values.take();
      parts = behind;
    }
  }

  void rescale(State& state, const TileGrowth& growth, Value* any) {
    Values before(state.softmax.sums.begin(), state.softmax.sums.end());
    for (const Accumulator& output : state.outputs) before.push_back(output.value);
    const Values after = language::if_uniform(kernel_, any, Likelihood::rarely, before, [&](const Values& from) {
      Value* factor = softmax_.rescale_factor(growth.before, growth.raised, growth.grows);
      Values all = from;
      for (Value*& each : all) each = softmax_.rescaled(each, factor);
      return all;
    });
    auto from = after.begin();
    for (Value*& sum : state.softmax.sums) sum = *from++;
    for (Accumulator& output : state.outputs) output.value = *from++;
  }

  Kernel& kernel_;
  const ForwardKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  ScoreModifiers modifiers_;
  language::Lds lds_;
  std::optional<attention::KeyPages> pages_;  // declared before the streams, which use it
  std::optional<attention::TilePages> no_tile_pages_;
  Value* image_;  // uniform: where the wave's image begins
  SwizzledRows keys_;
  std::optional<WaveValues> values_;  // made in walk_steps
  ChunkExchange exchange_;
  language::Softmax softmax_;
  std::unique_ptr<attention::TileInterval> own_walk_;
  attention::TileInterval& walk_;
  MergedRows merged_;
  std::vector<OperandB> query_;
};

}  // namespace

void emit_shared_register_walk(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan) {
  SharedRegisterWalk(kernel, spec, plan).emit();
}

}  // namespace wavejit::attention_forward
