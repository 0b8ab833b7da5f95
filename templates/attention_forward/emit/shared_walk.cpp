// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/shared_walk.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

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
#include "templates/attention_forward/emit/merged_rows.h"
#include "templates/attention_forward/emit/output.h"
#include "templates/attention_forward/emit/workgroup.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

using attention::LineStream;
using attention::ScoreModifiers;
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

// W waves walk the tiles in steps of W. All have the same 32 rows.
//
//   Sᵀ = K · Qᵀ      of tile W · step + w, wave w: whose K it has fetched for itself
//   maxima           of all tiles of the step, by LDS: every wave raises m tile by tile, as one wave alone does
//   P                of the wave's tile, with m as it is behind that tile; by LDS, with what its weights add up to
//   Oᵀ += Vᵀ · Pᵀ    of the wave's share of the dims, tile by tile; l likewise, in every wave
//
// So a row's numbers meet in the order in which a wave alone has them, and its bits are the same. Images of K and V
// stand once in LDS, one each for a wave's tile. Three barriers a step:
//
//   first     every wave has V of its own tile in LDS. Everybody's reads of the last step's P and sums have returned
//   second    everybody's reads of V and of the maxima have returned: the next V may come
//   third     every wave has its P and sums in LDS
//
// The next K comes as soon as its wave, which alone reads it, has read the last.
//
// Of a wave's transfers the tile's K are older than its V, and those older than the next K.
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
        values_(kernel, lds_, matrix_, workgroup_.v, image_of(value_region, plan.v_line_bytes, plan.v_offset(0)),
                spec.head_dim_v, 1, pages_, no_tile_pages_),
        queries_(kernel, lds_, matrix_, workgroup_.q,
                 {.line_bytes = plan.k_line_bytes,
                  .buffers = {{{exchange_region, query_offset()}, {exchange_region, query_offset()}}},
                  .waited_for = true},
                 spec.head_dim_qk, spec.chunk_waves, no_pages_, no_tile_pages_),
        exchange_(kernel, lds_, exchange_region, plan.exchange_offset(), spec.chunk_waves),
        softmax_(kernel, modifiers_.softmax_scale(), workgroup_.rescale_threshold),
        walk_(kernel, kernel.ir().CreateAnd(workgroup_.first_tile, kernel.constant(-spec.chunk_waves)),
              workgroup_.tiles),
        merged_(kernel, spec, plan, workgroup_, walk_, softmax_),
        image_(kernel.ir().CreateMul(kernel.wave(), kernel.constant(image_bytes()))) {
    keys_.begin_rows(workgroup_.lane_group);
    values_.begin_transposed(workgroup_.lane_group);
    queries_.begin_rows(workgroup_.lane_group);
  }

  void emit() {
    State end = walk_steps();
    const auto finish = [&] {
      finish_rows(kernel_, spec_, workgroup_, softmax_, merged_, end.softmax, end.merged, matrix_.element(),
                  end.outputs);
    };
    if (has_dims() == nullptr || spec_.split_keys != 0) {
      finish();
    } else {
      language::if_uniform(kernel_, has_dims(), Likelihood::even, finish);
    }
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
  };

  static LineStream::Place image_of(int region, int line_bytes, int offset) {
    return {.line_bytes = line_bytes,
            .buffers = {{{region, offset}, {region, offset}}},
            .waited_for = true,
            .own_images = true};
  }
  // Behind the maxima, which waves leave before all have read Q.
  int query_offset() const {
    return plan_.exchange_offset() + ChunkExchangePlan{spec_.chunk_waves, wave_.lanes}.maxima_bytes();
  }
  bool query_by_lds() const { return query_offset() + plan_.k_tile_bytes <= plan_.total_bytes(); }
  int image_bytes() const { return plan_.k_offset(1) - plan_.k_offset(0); }
  int waves() const { return spec_.chunk_waves; }
  int output_blocks() const { return output_blocks_of_wave(spec_, wave_.rows); }
  Value* has_dims() const { return workgroup_.share.has_dims; }

  // The state as a flat list, as the loop carries it, and back.
  static Values to_values(const State& state) {
    Values values = {state.step, state.softmax.maximum};
    values.insert(values.end(), state.softmax.sums.begin(), state.softmax.sums.end());
    for (const Accumulator& output : state.outputs) values.push_back(output.value);
    values.insert(values.end(), state.merged.begin(), state.merged.end());
    values.insert(values.end(), state.entries.begin(), state.entries.end());
    return values;
  }
  static State from_values(State like, const Values& values) {
    auto next = values.begin();
    like.step = *next++;
    like.softmax.maximum = *next++;
    for (Value*& sum : like.softmax.sums) sum = *next++;
    for (Accumulator& output : like.outputs) output.value = *next++;
    for (Value*& value : like.merged) value = *next++;
    for (Value*& entry : like.entries) entry = *next++;
    return like;
  }

  Value* own_tile(Value* step) const { return kernel_.ir().CreateAdd(step, kernel_.wave()); }
  Value* next_step(Value* step) const { return walk_.ahead(step, waves()); }

  State walk_steps() {
    State state{.step = walk_.first(),
                .softmax = softmax_.initial(),
                .outputs = std::vector<Accumulator>(static_cast<std::size_t>(output_blocks()), matrix_.zeros()),
                .merged = merged_.start(),
                .entries = {}};
    fetch_query();
    Value* entries = nullptr;
    if (pages_) {
      entries = pages_->entries(own_tile(state.step));
      state.entries = {entries, pages_->entries(own_tile(next_step(state.step)))};
    }
    fetch(keys_, own_tile(state.step), entries, 0, keys_.lines());
    fetch(values_, own_tile(state.step), entries, 0, values_.lines() - last_value_lines);
    language::loads_first(kernel_);
    take_query();
    const Values end = language::loop_in_phases(
        kernel_, 1, to_values(state),
        [&](int, const Values& values) { return to_values(walk(from_values(state, values))); },
        [&](const Values& values) { return walk_.exists(from_values(state, values).step); });
    return from_values(state, end);
  }

  // Q by way of LDS, where P will stand: waves fetch lines of whole rows, and not each wave pieces of all rows.
  void fetch_query() {
    if (!query_by_lds()) {
      query_loads_ = load_query(kernel_, spec_.head_dim_qk, workgroup_.q, workgroup_);
      return;
    }
    for (std::size_t line = 0; line < queries_.lines(); ++line)
      for (const LineStream::Transfer& transfer :
           queries_.transfers_of_rows(kernel_.constant(0), line, [&](Value* row) { return begin_of_query_row(row); }))
        transfer();
  }
  Value* begin_of_query_row(Value* row) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    constexpr std::uint32_t far_outside = 0xFFFFC000;
    Value* of_tile = ir.CreateICmpULT(row, kernel_.constant(wave_.rows));
    const RowOfTile place = row_of_tile(kernel_, spec_, workgroup_, row);
    Value* offset = ir.CreateMul(place.position, workgroup_.q.row_stride);
    if (place.head != nullptr) offset = ir.CreateAdd(offset, ir.CreateMul(place.head, workgroup_.q.head_stride));
    return ir.CreateSelect(ir.CreateAnd(of_tile, place.exists), offset, ir.getInt32(far_outside));
  }
  // Behind the first tiles' transfers.
  void take_query() {
    if (!query_by_lds()) {
      query_ = query_operands(kernel_, workgroup_, matrix_, query_loads_);
      return;
    }
    constexpr int counter_bits = 6;
    constexpr int most = (1 << counter_bits) - 1;  // that a wait leaves
    const int behind = keys_.transfers() + transfers_of(values_, values_.lines() - last_value_lines);
    language::wait_for_lds_and_fills(kernel_, std::min(most, behind));
    language::barrier(kernel_);
    Values rows;
    for (int dims = 0; dims < spec_.head_dim_qk / wave_.fragment_k(); ++dims)
      rows.push_back(queries_.rows(queries_.rows_start(kernel_.constant(0)), 0, dims).value);
    query_ = query_operands(kernel_, workgroup_, matrix_, rows);
  }

  // Lines of a tile's image on their way. Of a tile that is not walked zeros arrive.
  void fetch(LineStream& stream, Value* tile, Value* entries, std::size_t first_line, std::size_t lines) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* exists = ir.CreateAnd(walk_.exists(tile), ir.CreateICmpSGE(tile, workgroup_.first_tile));
    Value* there = ir.CreateSelect(exists, tile, walk_.last());
    // Opaque: the places of all lines would live in scalar registers throughout.
    Value* image = language::opaque(kernel_, image_);
    for (std::size_t line = first_line; line < first_line + lines; ++line)
      for (const LineStream::Transfer& transfer : stream.transfers_of_line(image, there, {}, entries, line, exists))
        transfer();
  }
  // Lines of the next step's tile, if there is one. Returns behind which the next are.
  std::size_t fetch_next(LineStream& stream, const State& state, Value* step, std::size_t first_line,
                         std::size_t lines) {
    language::if_uniform(kernel_, walk_.exists(next_step(step)), Likelihood::even, [&] {
      fetch(stream, own_tile(next_step(step)), pages_ ? state.entries[1] : nullptr, first_line, lines);
    });
    return first_line + lines;
  }

  // Lines of an image that are fetched at a time. Memory is to have something to fetch at any time, and little waits in
  // its queue: so what a step fetches is spread over all that it does. V's last lines come with the next step.
  static constexpr std::size_t key_lines_behind_maxima = 2;
  static constexpr std::size_t last_value_lines = 2;
  std::size_t lines_under_scores() const { return keys_.lines() - key_lines_behind_maxima; }
  int transfers_of(const LineStream& stream, std::size_t lines) const {
    return static_cast<int>(lines) * stream.transfers() / static_cast<int>(stream.lines());
  }

  State walk(State state) {
    // Opaque to what would carry byte offsets of tiles round the loop in vector registers.
    Value* step = kernel_.uniform(state.step);
    Value* tile = own_tile(step);
    language::wait_for_lds_and_fills(kernel_, transfers_of(values_, values_.lines() - last_value_lines));
    merged_.end_chunk(step, state.softmax, state.outputs, state.merged);
    const std::vector<OperandA> keys = read_keys();
    fetch(values_, tile, pages_ ? state.entries[0] : nullptr, values_.lines() - last_value_lines, last_value_lines);
    const Values fetched = modifiers_.fetch(tile);
    Value* entries = pages_ ? pages_->entries(own_tile(next_step(next_step(step)))) : nullptr;
    language::wait_for_lds(kernel_);
    std::vector<Accumulator> scores = multiply_keys(keys, state, step);
    modifiers_.apply(tile, fetched, scores);
    exchange_.put_maximum(row_maximum(scores));
    wait_for_values(step);
    language::barrier(kernel_);

    const Values maxima = exchange_.maxima();
    const std::vector<OperandA> values = read_values();
    fetch_next(keys_, state, step, lines_under_scores(), key_lines_behind_maxima);
    const Growths growths = raise_maximum(state.softmax.maximum, maxima);
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);

    std::size_t line = fetch_next(values_, state, step, 0, 2);
    leave_weights(own_maximum(growths), scores);
    line = fetch_next(values_, state, step, line, 1);
    language::wait_for_lds(kernel_);
    language::barrier(kernel_);

    const std::size_t values_of_tile = values.size() / static_cast<std::size_t>(waves());
    TileParts parts = read_parts(0);
    for (int each = 0; each < waves(); ++each) {
      const auto tile_of_step = static_cast<std::size_t>(each);
      const TileParts next = each + 1 < waves() ? read_parts(each + 1) : TileParts{};
      accumulate(state, &values[tile_of_step * values_of_tile], growths[tile_of_step], parts);
      const std::size_t left = values_.lines() - last_value_lines - line;
      const auto after = static_cast<std::size_t>(waves() - 1 - each);
      if (left > 0) line = fetch_next(values_, state, step, line, after == 0 ? left : (left + after) / (after + 1));
      parts = next;
    }
    state.softmax.maximum = growths.back().maximum;
    if (pages_) state.entries = {state.entries[1], entries};
    state.step = next_step(step);
    return state;
  }

  // The wave's V has arrived. The next step's K, where there is one, is younger.
  void wait_for_values(Value* step) {
    Value* follows = walk_.exists(next_step(step));
    language::if_uniform(kernel_, follows, Likelihood::even,
                         [&] { language::wait_for_lds_and_fills(kernel_, transfers_of(keys_, lines_under_scores())); });
    language::if_uniform(kernel_, kernel_.ir().CreateNot(follows), Likelihood::rarely,
                         [&] { language::wait_for_lds_fills(kernel_); });
  }

  // Of the wave's tile, both blocks of keys of the first dims, then of the next.
  std::vector<OperandA> read_keys() {
    std::vector<OperandA> read;
    Value* start = keys_.rows_start(image_);
    for (int dims = 0; dims < spec_.head_dim_qk / wave_.fragment_k(); ++dims)
      for (int block = 0; block < score_blocks(); ++block) read.push_back(keys_.rows(start, block, dims));
    return read;
  }
  int score_blocks() const { return spec_.tile_keys / wave_.rows; }

  std::vector<Accumulator> multiply_keys(const std::vector<OperandA>& keys, const State& state, Value* step) {
    constexpr std::size_t lines = 2;
    const std::size_t times = lines_under_scores() / lines;
    const auto blocks = static_cast<std::size_t>(score_blocks());
    std::vector<Accumulator> scores(blocks, matrix_.zeros());
    std::size_t line = 0;
    for (std::size_t at = 0; at < keys.size(); ++at) {
      Accumulator& sum = scores[at % blocks];
      sum = matrix_.mma(keys[at], query_[at / blocks], sum);
      if ((at + 1) * times >= (line / lines + 1) * keys.size()) line = fetch_next(keys_, state, step, line, lines);
    }
    return scores;
  }

  Value* row_maximum(const std::vector<Accumulator>& scores) {
    const auto [one, other] = language::both_halves(kernel_, softmax_.largest(scores));
    return kernel_.ir().CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, one, other);
  }

  // What a tile does to m, per lane.
  struct Growth {
    Value* before;
    Value* raised;
    Value* grows;
    Value* maximum;  // behind it
  };
  using Growths = std::vector<Growth>;
  Growths raise_maximum(Value* maximum, const Values& maxima) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Growths growths;
    for (Value* of_tile : maxima) {
      Value* raised = ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, of_tile, maximum);
      Value* grows = softmax_.grows(maximum, raised);
      growths.push_back({maximum, raised, grows, ir.CreateSelect(grows, raised, maximum)});
      maximum = growths.back().maximum;
    }
    return growths;
  }
  Value* own_maximum(const Growths& growths) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* own = growths.front().maximum;
    for (std::size_t each = 1; each < growths.size(); ++each)
      own = ir.CreateSelect(ir.CreateICmpEQ(kernel_.wave(), kernel_.constant(static_cast<int>(each))),
                            growths[each].maximum, own);
    return own;
  }

  // P of the wave's tile and what it adds up to, for all.
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
  int operands() const { return spec_.tile_keys / wave_.fragment_k(); }

  // Where V's dims of the wave begin in an image. Who has none reads another's.
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
      Value* start = values_.transposed_start_in(kernel_.ir().CreateAdd(begin, kernel_.constant(tile * image_bytes())));
      for (int keys = 0; keys < operands(); ++keys)
        for (int dims = 0; dims < output_blocks(); ++dims) read.push_back(values_.transposed(start, dims, keys));
    }
    return read;
  }

  // What a wave left of its tile.
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

  // l and O of the wave's dims with a tile: as in a wave alone, first onto the tile's maximum.
  void accumulate(State& state, const OperandA* values, const Growth& growth, const TileParts& parts) {
    Values all(state.softmax.sums.begin(), state.softmax.sums.end());
    for (const Accumulator& output : state.outputs) all.push_back(output.value);
    all = language::if_uniform(kernel_, language::any_lane(kernel_, growth.grows), Likelihood::rarely, all,
                               [&](const Values& before) {
                                 Value* factor = softmax_.rescale_factor(growth.before, growth.raised, growth.grows);
                                 Values after;
                                 for (Value* value : before) after.push_back(softmax_.rescaled(value, factor));
                                 return after;
                               });
    for (std::size_t j = 0; j < state.softmax.sums.size(); ++j)
      state.softmax.sums[j] = softmax_.accumulated(all[j], parts.sums[j]);
    const Values outputs(all.begin() + static_cast<std::ptrdiff_t>(state.softmax.sums.size()), all.end());
    const auto multiplied = [&](const Values& before) {
      Values after = before;
      for (const OperandB& weights : parts.weights)
        for (std::size_t dims = 0; dims < after.size(); ++dims)
          after[dims] = matrix_.mma(*values++, weights, {after[dims], state.outputs[dims].layout}).value;
      return after;
    };
    const Values after = has_dims() == nullptr
                             ? multiplied(outputs)
                             : language::if_uniform(kernel_, has_dims(), Likelihood::even, outputs, multiplied);
    for (std::size_t dims = 0; dims < after.size(); ++dims) state.outputs[dims].value = after[dims];
  }

  Kernel& kernel_;
  const ForwardKernel& spec_;
  const LdsPlan& plan_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Workgroup workgroup_;
  ScoreModifiers modifiers_;
  language::Lds lds_;
  std::optional<attention::KeyPages> pages_;  // before the streams, which ask for it
  std::optional<attention::KeyPages> no_pages_;
  std::optional<attention::TilePages> no_tile_pages_;
  LineStream keys_;
  LineStream values_;
  LineStream queries_;
  ChunkExchange exchange_;
  language::Softmax softmax_;
  attention::TileInterval walk_;
  MergedRows merged_;
  Value* image_;        // uniform: where the wave's images begin behind the first wave's
  Values query_loads_;  // where LDS has no room for Q
  std::vector<OperandB> query_;
};

}  // namespace

void emit_shared_walk(Kernel& kernel, const ForwardKernel& spec, const LdsPlan& plan) {
  SharedWalk(kernel, spec, plan).emit();
}

}  // namespace wavejit::attention_forward
