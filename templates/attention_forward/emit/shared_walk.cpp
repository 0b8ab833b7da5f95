// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/shared_walk.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

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
#include "templates/attention/emit/stream_lines.h"
#include "templates/attention/emit/tile_walk.h"
#include "templates/attention_forward/emit/chunk_exchange.h"
#include "templates/attention_forward/emit/lines_to_fetch.h"
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/emit/tile_growths.h"
#include "templates/attention_forward/emit/walks/list_walk.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using attention::LineStream;
using attention::ScoreModifiers;
using attention::Stop;
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

// W waves walk the tiles in steps of W. All waves have the same 32 rows.
//
//   Sᵀ = K · Qᵀ      wave w computes tile W · step + w, whose K it has fetched for itself
//   maxima           of all tiles of the step, through LDS: every wave raises m tile by tile, as a single wave would
//   P                of the wave's tile, with m as it is after that tile; through LDS, with the sums of its weights
//   Oᵀ += Vᵀ · Pᵀ    for the wave's share of the dims, tile by tile; every wave computes l in the same way
//
// So a row's numbers are added in the order in which a single wave would add them, and the bits are the same. K and V
// have one image each for a wave's tile in LDS. A step has three barriers:
//
//   first     every wave has written its tile's maxima. All reads of the last step's P and sums have returned
//   second    every wave has its P and sums in LDS, and V of its own tile. All reads of maxima have returned
//   third     all reads of V have returned, so that the next V may be fetched
//
// So everything that is computed from K is computed while V is in flight. The next K is fetched as soon as its wave,
// which alone reads it, has read all of it.
//
// Among a wave's transfers, the K of a tile is older than its V, and V is older than the next K. The backend counts
// some transfers as LDS reads; so there is a wait between reads, transfers and the first use of what was read.
class SharedWalk {
 public:
  SharedWalk(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan)
      : kernel_(kernel),
        spec_(spec),
        plan_(plan),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        workgroup_(begin_workgroup(kernel, spec)),
        modifiers_(kernel, spec.modifiers, spec.bias_type(), score_fields, workgroup_),
        lds_(kernel, plan.total_bytes(), regions),
        pages_(attention::pages_of(kernel, spec.key_layout(), workgroup_.keys())),
        keys_(kernel, lds_, matrix_, workgroup_.k, image_of(key_region, plan.k_line_bytes, plan.k_offset(0)),
              spec.head_dim_qk, 1, pages_, no_tile_pages_),
        queries_(kernel, lds_, matrix_, workgroup_.q,
                 {.line_bytes = plan.k_line_bytes,
                  .buffers = {{{exchange_region, query_offset()}, {exchange_region, query_offset()}}},
                  .waited_for = true},
                 spec.head_dim_qk, spec.chunk_waves, no_pages_, no_tile_pages_),
        exchange_(kernel, lds_, exchange_region, plan.exchange_offset(), spec.chunk_waves),
        softmax_(kernel, modifiers_.softmax_scale(), workgroup_.rescale_threshold),
        own_walk_(interval_of(kernel, workgroup_,
                              kernel.ir().CreateAnd(workgroup_.first_tile, kernel.constant(-spec.chunk_waves)))),
        walk_(*own_walk_),
        merged_(kernel, spec, plan, workgroup_, walk_, softmax_),
        image_(kernel.ir().CreateMul(kernel.wave(), kernel.constant(image_bytes()))) {}

  void emit() {
    State end = walk_steps();
    const auto finish = [&] {
      finish_rows(kernel_, spec_, workgroup_, softmax_, merged_, end.softmax, end.merged, matrix_.element(),
                  end.outputs);
    };
    if (has_dims() == nullptr || spec_.split_keys != 0) return finish();
    language::if_uniform(kernel_, has_dims(), Likelihood::even, finish);
  }

 private:
  static constexpr int key_region = 0;
  static constexpr int value_region = 1;
  static constexpr int exchange_region = 2;
  static constexpr int regions = 3;

  struct State {
    Value* step = nullptr;  // its first tile
    SoftmaxState softmax;
    std::vector<Accumulator> outputs;  // Oᵀ, of the wave's dims
    Values merged;                     // the chunks before
    Values entries;                    // of the wave's next tile, of keys that are looked up
    Values marks;                      // of the wave's tile and of its next one, of a walk that has marks
    void each(this auto& state, auto visit) {
      visit(state.step);
      visit(state.softmax);
      visit(state.outputs);
      visit(state.merged);
      visit(state.entries);
      visit(state.marks);
    }
  };

  static LineStream::Place image_of(int region, int line_bytes, int offset) {
    return {.line_bytes = line_bytes,
            .buffers = {{{region, offset}, {region, offset}}},
            .waited_for = true,
            .own_images = true};
  }
  // The query lies after the maxima, because waves write maxima before all waves have read Q.
  int query_offset() const {
    return plan_.exchange_offset() + ChunkExchangePlan{spec_.chunk_waves, wave_.lanes}.maxima_bytes();
  }
  // Q in f32 cannot pass through LDS, because DMA does not round.
  bool query_by_lds() const { return !spec_.query_fp32 && query_offset() + plan_.k_tile_bytes <= plan_.total_bytes(); }
  int image_bytes() const { return plan_.k_offset(1) - plan_.k_offset(0); }
  int waves() const { return spec_.chunk_waves; }
  int output_blocks() const { return output_blocks_of_wave(spec_, wave_.rows); }
  Value* has_dims() const { return workgroup_.share.has_dims; }

  Value* own_tile(Value* step) const { return kernel_.ir().CreateAdd(step, kernel_.wave()); }
  Value* next_step(Value* step) const { return walk_.ahead(step, waves()); }

  State walk_steps() {
    State state{.step = walk_.first(),
                .softmax = softmax_.initial(),
                .outputs = std::vector<Accumulator>(static_cast<std::size_t>(output_blocks()), matrix_.zeros()),
                .merged = merged_.start(),
                .entries = {},
                .marks = {}};
    if (spec_.bool_mask) state.marks = {walk_.read(own_tile(state.step)), walk_.read(own_tile(next_step(state.step)))};
    fetch_query();
    Value* entries = nullptr;
    if (pages_) {
      entries = pages_->entries(own_tile(state.step));
      state.entries = {entries, pages_->entries(own_tile(next_step(state.step)))};
    }
    const Stop first = stop_of(own_tile(state.step), state.marks, 0);
    lines_of(keys_, first, entries, 0, keys_.lines()).fetch();
    begin_values();
    // V waits for Q: memory's queue is short, and in it K of one wave would wait behind V of another.
    take_query();
    lines_of(*values_, first, entries, 0, first_value_lines(), workgroup_.first_seen).fetch();
    ask_for_walk(kernel_, spec_, workgroup_);
    language::loads_first(kernel_);
    const Values end = language::loop_in_phases(
        kernel_, 1, language::carried(state),
        [&](int, const Values& values) { return language::carried(walk(language::state_of(state, values))); },
        [&](const Values& values) { return walk_.exists(language::state_of(state, values).step); });
    return language::state_of(state, end);
  }

  // K is in flight, so instructions that are issued here cost no time.
  void begin_values() {
    keys_.begin_rows(workgroup_.lane_group);
    queries_.begin_rows(workgroup_.lane_group);
    make_later_slices(kernel_, spec_, workgroup_);
    values_.emplace(kernel_, lds_, matrix_, workgroup_.v, image_of(value_region, plan_.v_line_bytes, plan_.v_offset(0)),
                    spec_.head_dim_v, 1, pages_, no_tile_pages_);
    values_->begin_transposed(workgroup_.lane_group);
  }

  // Loads Q through LDS, at the place of P: a wave fetches whole rows, in place of pieces of all rows.
  void fetch_query() {
    if (!query_by_lds()) {
      query_loads_ = load_query(kernel_, spec_.head_dim_qk, workgroup_.q, workgroup_, query_numbers(spec_));
      return;
    }
    for (std::size_t line = 0; line < queries_.lines(); ++line)
      for (const LineStream::Transfer& transfer :
           queries_.transfers_of_rows(kernel_.constant(0), line,
                                      [&](Value* row) { return begin_of_query_row(kernel_, spec_, workgroup_, row); }))
        transfer();
  }
  // Called after the transfers of the first keys have been issued.
  void take_query() {
    if (!query_by_lds()) {
      query_ = query_operands(kernel_, workgroup_, matrix_, query_loads_, query_numbers(spec_));
      return;
    }
    language::wait_for_lds_and_fills(kernel_, keys_.transfers());
    language::barrier(kernel_);
    Values rows;
    for (int dims = 0; dims < spec_.head_dim_qk / wave_.fragment_k(); ++dims)
      rows.push_back(queries_.rows(queries_.rows_start(kernel_.constant(0)), 0, dims).value);
    query_ = query_operands(kernel_, workgroup_, matrix_, rows);
  }

  // The lines of a tile that are still to be fetched into the wave's own image. `first_seen`: for the values of the
  // walk's first step (attention/emit/unseen_keys.h).
  LinesToFetch lines_of(LineStream& stream, const Stop& stop, Value* entries, std::size_t first_line, std::size_t lines,
                        Value* first_seen = nullptr) {
    return {{.kernel = &kernel_,
             .stream = &stream,
             .walk = &walk_,
             .first_tile = workgroup_.first_tile,
             .image = image_,
             .seen = stop.entry != nullptr ? walk_.sees(stop) : nullptr,
             .first_seen = first_seen},
            stop.place,
            entries,
            first_line,
            lines};
  }

  // A tile that is not walked counts as one that no row sees.
  Stop stop_of(Value* tile, const Values& marks, std::size_t which) const {
    if (marks.empty()) return tile;
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* exists = ir.CreateAnd(walk_.exists(tile), ir.CreateICmpSGE(tile, workgroup_.first_tile));
    return {tile, ir.CreateSelect(exists, marks[which], kernel_.constant(0))};
  }

  // Memory should always have something to fetch, but a full queue would hold up the waves. So the fetches of a step
  // are spread over all of its work. V's last lines are fetched in the next step.
  static constexpr std::size_t last_value_lines = 3;
  static constexpr std::size_t first_value_transfers = 2;  // before the first product
  // How many parts of the next K are fetched in each stretch of a step.
  static constexpr int keys_under_scores = 5;
  static constexpr int keys_behind_maxima = 3;
  static constexpr int keys_behind_growth = 2;
  static constexpr int keys_behind_weights = 2;
  static constexpr int keys_behind_exchange = 2;
  static constexpr int keys_behind_values = 2;
  static constexpr int key_parts = keys_under_scores + keys_behind_maxima + keys_behind_growth + keys_behind_weights +
                                   keys_behind_exchange + keys_behind_values;
  std::size_t transfers_of_keys(int parts) const {
    return static_cast<std::size_t>(keys_.transfers() * parts / key_parts);
  }
  std::size_t first_value_lines() const { return values_->lines() - last_value_lines; }
  int transfers_of(const LineStream& stream, std::size_t lines) const {
    return static_cast<int>(lines) * stream.transfers() / static_cast<int>(stream.lines());
  }

  State walk(State state) {
    // Opaque to what would carry byte offsets of tiles round the loop in vector registers.
    Value* step = kernel_.uniform(state.step);
    Value* tile = own_tile(step);
    Value* next_tile = own_tile(next_step(step));
    Value* next_entries = pages_ ? state.entries[1] : nullptr;
    const Stop own = stop_of(tile, state.marks, 0);
    const Stop next = stop_of(next_tile, state.marks, 1);
    language::wait_for_lds_and_fills(kernel_, transfers_of(*values_, first_value_lines()));
    merged_.end_chunk(step, state.softmax, state.outputs, state.merged);
    const std::vector<OperandA> keys = read_keys();
    const Values fetched = modifiers_.fetch(spec_.bool_mask ? walk_.at_most_last(tile) : tile);
    Value* entries = pages_ ? pages_->entries(own_tile(next_step(next_step(step)))) : nullptr;
    if (spec_.bool_mask) state.marks = {state.marks[1], walk_.read(own_tile(next_step(next_step(step))))};
    // The other lines were fetched in the step before. Only the first step's lines can have keys that no row sees.
    lines_of(*values_, own, pages_ ? state.entries[0] : nullptr, first_value_lines(), last_value_lines,
             workgroup_.first_seen)
        .fetch();
    language::wait_for_lds(kernel_);
    LinesToFetch next_keys = lines_of(keys_, next, next_entries, 0, keys_.lines());
    std::vector<Accumulator> scores = multiply_keys(keys, next_keys);
    modifiers_.apply(walk_.marked_at(own), fetched, scores);
    exchange_.put_maximum(row_maximum(scores));
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);

    const Values maxima = exchange_.maxima();
    next_keys.fetch(transfers_of_keys(keys_behind_maxima));
    language::wait_for_lds(kernel_);
    const TileGrowths growths = growths_of(kernel_, softmax_, state.softmax.maximum, maxima);
    Value* grows = any_grows(kernel_, growths);
    next_keys.fetch(transfers_of_keys(keys_behind_growth));
    leave_weights(maximum_behind_own(kernel_, growths), scores, next_keys);
    // The wave's V has arrived, since it is older than the next K.
    language::wait_for_lds_and_fills(kernel_, keys_.transfers() - static_cast<int>(next_keys.left()));
    language::barrier(kernel_);

    const std::vector<OperandA> values = read_values();
    next_keys.fetch();
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);

    accumulate(state, values, growths, grows,
               [&] { return lines_of(*values_, next, next_entries, 0, first_value_lines()); });
    state.softmax.maximum = growths.back().maximum;
    if (pages_) state.entries = {state.entries[1], entries};
    state.step = next_step(step);
    return state;
  }

  // Reads the wave's tile, both blocks of keys of the first dims, then of the next.
  std::vector<OperandA> read_keys() {
    std::vector<OperandA> read;
    Value* start = keys_.rows_start(image_);
    for (int dims = 0; dims < spec_.head_dim_qk / wave_.fragment_k(); ++dims)
      for (int block = 0; block < score_blocks(); ++block) read.push_back(keys_.rows(start, block, dims));
    return read;
  }
  int score_blocks() const { return spec_.tile_keys / wave_.rows; }

  // Fetches of the next K are issued between the products.
  std::vector<Accumulator> multiply_keys(const std::vector<OperandA>& keys, LinesToFetch& next) {
    const auto blocks = static_cast<std::size_t>(score_blocks());
    const std::size_t transfers = transfers_of_keys(keys_under_scores);
    std::vector<Accumulator> scores(blocks, matrix_.zeros());
    for (std::size_t at = 0; at < keys.size(); ++at) {
      Accumulator& sum = scores[at % blocks];
      sum = matrix_.mma(keys[at], query_[at / blocks], sum);
      next.fetch((((at + 1) * transfers) / keys.size()) - ((at * transfers) / keys.size()));
    }
    return scores;
  }

  Value* row_maximum(const std::vector<Accumulator>& scores) {
    const auto [one, other] = language::both_halves(kernel_, softmax_.largest(scores));
    return kernel_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, one, other);
  }

  // Writes P of the wave's tile and the sum of its weights to LDS, for all waves.
  void leave_weights(Value* maximum, std::vector<Accumulator>& scores, LinesToFetch& next) {
    SoftmaxState own = softmax_.initial();
    own.maximum = maximum;
    own = softmax_.weigh(own, scores);
    next.fetch(transfers_of_keys(keys_behind_weights));
    for (int operand = 0; operand < operands(); ++operand) {
      const Accumulator& part = scores[static_cast<std::size_t>(operand / 2)];
      const std::vector<Value*> dwords =
          language::convert_packed(kernel_, part.value, operand % 2 * wave_.slots(), wave_.slots(), matrix_.element(),
                                   language::NanInput::irrelevant);
      exchange_.put_weights(operand, language::gather_dwords(kernel_, dwords));
    }
    exchange_.put_sums(own.sums);
    next.fetch(transfers_of_keys(keys_behind_exchange));
  }
  int operands() const { return spec_.tile_keys / wave_.fragment_k(); }

  // Where the wave's dims of V begin in an image. A wave without dims reads those of another wave.
  Value* begin_of_dims() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const int block_bytes = wave_.rows * targets::bytes_of(matrix_.element());
    const int blocks_of_piece = LdsPlan::piece_bytes / block_bytes;
    Value* wave = ir.CreateAnd(kernel_.wave(), kernel_.constant(waves_with_outputs(spec_, wave_.rows) - 1));
    Value* block = ir.CreateMul(wave, kernel_.constant(output_blocks()));
    Value* piece = ir.CreateUDiv(block, kernel_.constant(blocks_of_piece));
    Value* in_piece = ir.CreateAnd(block, kernel_.constant(blocks_of_piece - 1));
    return ir.CreateAdd(ir.CreateMul(piece, kernel_.constant(LdsPlan::lines_per_piece * plan_.v_line_bytes)),
                        ir.CreateMul(in_piece, kernel_.constant(block_bytes)));
  }

  // V of all tiles, of the wave's dims: [tile][16 keys][32 dims].
  std::vector<OperandA> read_values() {
    std::vector<OperandA> read;
    Value* begin = begin_of_dims();
    for (int tile = 0; tile < waves(); ++tile) {
      Value* start =
          values_->transposed_start_in(kernel_.ir().CreateAdd(begin, kernel_.constant(tile * image_bytes())));
      for (int keys = 0; keys < operands(); ++keys)
        for (int dims = 0; dims < output_blocks(); ++dims) read.push_back(values_->transposed(start, dims, keys));
    }
    return read;
  }

  // What a wave wrote to LDS about its tile.
  struct TileParts {
    std::vector<OperandB> weights;
    language::RunningSums sums;
  };
  TileParts read_parts(int tile) {
    TileParts parts;
    for (int operand = 0; operand < operands(); ++operand)
      parts.weights.push_back(matrix_.operand_b(exchange_.weights(tile, operand), KOrder::accumulator_rows));
    parts.sums = exchange_.sums(tile);
    return parts;
  }

  // Updates l and the wave's dims of O with all tiles of the step. As in a single wave, both are first rescaled to the
  // tile's maximum. If no row's maximum grows, nothing is issued between the products. Fetches of the next V begin
  // here.
  void accumulate(State& state, const std::vector<OperandA>& values, const TileGrowths& growths, Value* any,
                  const std::function<LinesToFetch()>& next) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Values before(state.softmax.sums.begin(), state.softmax.sums.end());
    for (const Accumulator& output : state.outputs) before.push_back(output.value);
    // Two conditions in place of one with two branches, because the backend would add paths through the code to the
    // latter.
    Values after = language::if_uniform(kernel_, ir.CreateNot(any), Likelihood::even, before, [&](const Values& from) {
      return accumulated(from, state, values, nullptr, next());
    });
    after = language::if_uniform(kernel_, any, Likelihood::rarely, after, [&](const Values& from) {
      return accumulated(from, state, values, &growths, next());
    });
    auto from = after.begin();
    for (Value*& sum : state.softmax.sums) sum = *from++;
    for (Accumulator& output : state.outputs) output.value = *from++;
  }
  Values accumulated(Values all, const State& state, const std::vector<OperandA>& values, const TileGrowths* growths,
                     LinesToFetch next) {
    const std::size_t sums = state.softmax.sums.size();
    const std::size_t transfers = next.left();
    const std::size_t operands_of_all = values.size() / state.outputs.size();
    auto value = values.begin();
    std::size_t done = 0;
    next.fetch(first_value_transfers);
    TileParts parts = read_parts(0);
    for (int tile = 0; tile < waves(); ++tile) {
      language::wait_for_lds(kernel_);
      const TileParts behind = tile + 1 < waves() ? read_parts(tile + 1) : TileParts{};
      if (growths != nullptr) {
        const TileGrowth& growth = (*growths)[static_cast<std::size_t>(tile)];
        Value* factor = softmax_.rescale_factor(growth.before, growth.raised, growth.grows);
        for (Value*& each : all) each = softmax_.rescaled(each, factor);
      }
      for (std::size_t j = 0; j < sums; ++j) all[j] = softmax_.accumulated(all[j], parts.sums[j]);
      for (const OperandB& weights : parts.weights) {
        for (std::size_t dims = 0; dims < state.outputs.size(); ++dims) {
          Value*& output = all[sums + dims];
          output = matrix_.mma(*value++, weights, {output, state.outputs[dims].layout}).value;
        }
        ++done;
        const std::size_t fetched = transfers - next.left();
        next.fetch(std::max(done * transfers / operands_of_all, fetched) - fetched);
      }
      parts = behind;
    }
    return all;
  }

  Kernel& kernel_;
  const ForwardKernel& spec_;
  const LdsPlan& plan_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  ScoreModifiers modifiers_;
  language::Lds lds_;
  std::optional<attention::KeyPages> pages_;  // declared before the streams, which use it
  std::optional<attention::KeyPages> no_pages_;
  std::optional<attention::TilePages> no_tile_pages_;
  LineStream keys_;
  std::optional<LineStream> values_;  // made in begin_values
  LineStream queries_;
  ChunkExchange exchange_;
  language::Softmax softmax_;
  std::unique_ptr<attention::TileInterval> own_walk_;
  attention::TileInterval& walk_;
  MergedRows merged_;
  Value* image_;        // uniform: where the wave's images begin behind the first wave's
  Values query_loads_;  // if LDS has no room for Q
  std::vector<OperandB> query_;
};

}  // namespace

void emit_shared_walk(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan) {
  SharedWalk(kernel, spec, plan).emit();
}

}  // namespace wavejit::attention_forward
