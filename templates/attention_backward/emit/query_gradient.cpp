// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/query_gradient.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention_backward/emit/query_place.h"
#include "templates/attention_backward/emit/row_operands.h"
#include "templates/attention_backward/emit/row_store.h"
#include "templates/attention_backward/emit/schedule.h"
#include "templates/attention_backward/emit/score_gradient.h"
#include "templates/attention_backward/emit/weave.h"
#include "templates/attention_backward/emit/wide_tile.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {
namespace {

using attention::minimum;
using attention::QueryTile;
using attention::Slice;
using attention::tile_keys;
using language::Accumulator;
using language::Element;
using language::Kernel;
using language::OperandA;
using language::OperandB;
using language::Strand;
using language::Value;
using language::Values;

class QueryGradient : private Weaver {
 public:
  QueryGradient(Kernel& kernel, const QueryKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        place_(find_query_place(kernel, spec)),
        row_reader_(kernel, spec, place_, matrix_),
        cap_rate_(cap_rate(kernel, spec)),
        step_keys_(keys_at_once(spec, kernel.target())),
        k_plan_(plan_wide_tile(kernel.target(),
                               {.rows = step_keys_,
                                .dims = spec.head_dim_qk,
                                .element_bytes = attention::bytes_of(spec.dtype),
                                .by_columns = true},
                               0, 0)),
        v_plan_(plan_wide_tile(
            kernel.target(),
            {.rows = step_keys_, .dims = spec.head_dim_v, .element_bytes = attention::bytes_of(spec.dtype)},
            k_plan_.total_bytes(), k_plan_.regions())),
        lds_(kernel, k_plan_.total_bytes() + v_plan_.total_bytes(), k_plan_.regions() + v_plan_.regions()),
        k_(keys_of(offsetof(Arguments, k), spec.head_dim_qk)),
        v_(keys_of(offsetof(Arguments, v), spec.head_dim_v)),
        keys_(kernel, lds_, matrix_, k_plan_, k_.row_stride),
        values_(kernel, lds_, matrix_, v_plan_, v_.row_stride),
        ladder_(ladder_of(spec, kernel.target())),
        score_gradient_(kernel, matrix_, spec,
                        spec.modifiers.any() ? kernel.constant(1.0F) : place_.queries.front().scale_log2e) {
    modifiers_.reserve(place_.queries.size());
    for (const QueryTile& queries : place_.queries)
      modifiers_.emplace_back(kernel, spec.modifiers, spec.bias_type(), score_fields, queries);
  }

  void emit() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const auto steps = [&](Value* tiles) {
      return steps_of_tile() == 1 ? tiles : ir.CreateMul(tiles, kernel_.constant(steps_of_tile()));
    };
    Value* first = steps(place_.first_tile);
    Value* end_of_steps = steps(place_.tiles);
    const Values started = fetched(0, first);
    for (const QueryTile& queries : place_.queries) rows_.push_back(row_reader_.load(queries));
    Values initial = {first};
    add_first_sums(initial);
    const std::size_t count = initial.size() - 1;
    add(initial, begin_reading(started));
    add(initial, started);
    const std::size_t ahead_at = 1 + count;
    const std::size_t arrived_at = ahead_at + static_cast<std::size_t>(ladder_.read_ahead);
    const Values end = language::loop_in_phases(
        kernel_, std::max(k_plan_.buffers(), steps_of_tile()), initial,
        [&](int phase, const Values& state) {
          const auto from_state = [&](std::size_t at) { return state.begin() + static_cast<std::ptrdiff_t>(at); };
          Value* step = kernel_.uniform(state[0]);
          Value* next = ir.CreateAdd(step, kernel_.constant(1));
          // A walk begins with a whole tile. Behind the last step comes that one again: nobody reads it, and no branch
          // is needed.
          at_ = {.buffer = phase % k_plan_.buffers(),
                 .part = phase % steps_of_tile(),
                 .tile = steps_of_tile() == 1 ? step : ir.CreateUDiv(step, kernel_.constant(steps_of_tile())),
                 .next = minimum(kernel_, next, ir.CreateSub(end_of_steps, kernel_.constant(1))),
                 .arrived = {from_state(arrived_at), state.end()}};
          sums_ = sums_from(state, count);
          const Fragments ahead = attend({from_state(ahead_at), from_state(arrived_at)});
          Values after = {next};
          for (const Accumulator& sum : sums_) after.push_back(sum.value);
          add(after, ahead);
          add(after, at_.in_flight);
          return after;
        },
        [&](const Values& state) { return ir.CreateICmpSLT(state[0], end_of_steps); });
    sums_ = sums_from(end, count);
    if (sums_apart()) matrix_.settle(sums_);
    const Slice dq =
        row_reader_.rows_of(offsetof(Arguments, dq), spec_.head_dim_qk, gradient_bytes(spec_), ir.getInt32(~0U));
    for (int block = 0; block < spec_.blocks; ++block) {
      const QueryTile& queries = place_.queries[static_cast<std::size_t>(block)];
      const attention::LanePlace place = attention::lane_place(kernel_, queries);
      store_rows(kernel_, dq, place.row, place.lane_group, matrix_.element(), spec_.gradients_fp32, sums_of(block),
                 kernel_.argument_f32(offsetof(Arguments, dq_factor)));
    }
  }

 private:
  int dim_blocks() const { return spec_.head_dim_qk / wave_.rows; }
  // A tile of keys, or half of it where LDS has no room for more.
  int steps_of_tile() const { return tile_keys / step_keys_; }
  int fragments_of_block() const { return wave_.rows / wave_.fragment_k(); }
  // Where registers are short, a bias comes when its block needs it: what the others have of it is not loaded.
  bool fetches_late() const { return takes_all_registers(spec_, kernel_.target()); }
  // Operands of two blocks and 128 dims are 256 registers.
  bool sums_apart() const { return spec_.blocks == 2 || held_registers(spec_) >= vector_registers; }

  std::vector<Accumulator> sums_from(const Values& state, std::size_t count) const {
    std::vector<Accumulator> sums;
    sums.reserve(count);
    for (std::size_t i = 0; i < count; ++i) sums.push_back({state[i + 1], matrix_.accumulator_layout()});
    return sums;
  }
  std::span<Accumulator> sums_of(int block) {
    const auto dims = static_cast<std::size_t>(dim_blocks());
    return std::span(sums_).subspan(static_cast<std::size_t>(block) * dims, dims);
  }

  // Zeros, or what a call before left.
  void add_first_sums(Values& initial) {
    const auto dims = static_cast<std::size_t>(dim_blocks());
    if (!spec_.gradients_fp32) {
      initial.insert(initial.end(), dims * place_.queries.size(), matrix_.zeros().value);
      return;
    }
    const Slice before = row_reader_.rows_of(offsetof(Arguments, dq), spec_.head_dim_qk, 4,
                                             kernel_.argument_i32(offsetof(Arguments, dq_before)));
    for (const QueryTile& queries : place_.queries)
      for (const Accumulator& sum :
           load_rows(kernel_, before, queries.row, queries.lane_group, matrix_.accumulator_layout(), dims))
        initial.push_back(sum.value);
  }
  Slice keys_of(std::size_t at, int dims) {
    return attention::slice_of(kernel_, tensor_fields(at), place_.queries.front().batch, place_.kv_head,
                               place_.sequence.key_start, place_.sequence.key_length,
                               dims * attention::bytes_of(spec_.dtype));
  }

  int other_buffer() const { return (at_.buffer + 1) % k_plan_.buffers(); }
  int key_blocks() const { return step_keys_ / wave_.rows; }  // of a step
  const schedule::Schedule& table() const {
    return schedule::query_schedule(key_blocks(), schedule::order_of(kernel_.target(), k_plan_.buffers()));
  }
  static void add(Values& values, const Fragments& fragments) {
    for (const OperandA& fragment : fragments) values.push_back(fragment.value);
  }
  static void add(Values& values, const Values& more) { values.insert(values.end(), more.begin(), more.end()); }

  void add_fetch(Strand& strand, int buffer, Value* step, Values& in_flight) {
    Value* first = kernel_.ir().CreateMul(step, kernel_.constant(step_keys_));
    keys_.add_fetch(strand, buffer, [this] { return k_.buffer; }, first, in_flight);
    values_.add_fetch(strand, buffer, [this] { return v_.buffer; }, first, in_flight);
  }
  Values fetched(int buffer, Value* step) {
    Values in_flight;
    Strand strand;
    add_fetch(strand, buffer, step, in_flight);
    strand.write_rest();
    return in_flight;
  }
  Strand fetch() override {
    Strand strand;
    add_fetch(strand, other_buffer(), at_.next, at_.in_flight);
    return strand;
  }
  Strand receive() override { return rows_into_lds(at_.in_flight); }
  Strand receive_columns() override {
    Strand strand;
    keys_.add_columns(strand, at_.arrived, 0);
    return strand;
  }
  Strand rows_into_lds(const Values& in_flight) {
    Strand strand;
    keys_.add_rows(strand, in_flight, 0);
    values_.add_rows(strand, in_flight, keys_.in_flight());
    return strand;
  }
  // What was received may be read by everybody, and what has been read is free.
  void turn() override {
    if (k_plan_.buffers() > 1)
      language::wait_for_lds_fills(kernel_);
    else
      language::wait_for_lds(kernel_);
    language::barrier(kernel_);
  }
  Fragments begin_reading(const Values& started) {
    Strand rows = rows_into_lds(started);
    rows.write_rest();
    turn();
    return read_first(*this, table(), ladder_, 0);
  }

  // A tile, with its first fragments; returns the next one's.
  Fragments attend(const Values& before) {
    fetched_.clear();
    if (!fetches_late())
      for (const attention::ScoreModifiers& modifiers : modifiers_) fetched_.push_back(modifiers.fetch(at_.tile));
    blocks_.assign(static_cast<std::size_t>(key_blocks()), std::vector<Block>(rows_.size()));
    Fragments first;
    for (Value* value : before) first.push_back(matrix_.operand_a(value, language::KOrder::contiguous));
    return weave(*this, table(), ladder_, {.own = at_.buffer, .next = other_buffer()}, first);
  }

  std::vector<Block>& blocks_at(int block) { return blocks_[static_cast<std::size_t>(block)]; }

  void begin(const schedule::Multiply& multiply) override {
    if (multiply.product == schedule::Product::queries && sums_apart()) matrix_.begin_apart();
  }
  void end(const schedule::Multiply& multiply) override {
    if (multiply.product != schedule::Product::queries) return;
    for (Block& block : blocks_at(multiply.block)) block.d_scores.fragments.clear();
  }
  void prepare(const schedule::Multiply& multiply) override {
    if (multiply.product != schedule::Product::scores) return;
    for (std::size_t rows = 0; rows < rows_.size(); ++rows) {
      Block& block = blocks_at(multiply.block)[rows];
      block.scores = matrix_.zeros();
      block.gradients = {minus_delta_of(rows_[rows]), matrix_.accumulator_layout()};
    }
  }

  // In every register of an accumulator. Two blocks of wide heads have no registers for it: there it is made anew.
  Value* minus_delta_of(const RowOperands& rows) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (!deltas_made_anew(spec_)) return rows.minus_delta;
    Value* bits = ir.CreateBitCast(rows.minus_delta, kernel_.i32());
    Value* anew = ir.CreateBitCast(ir.CreateXor(bits, language::opaque(kernel_, kernel_.constant(0))), kernel_.f32());
    return ir.CreateVectorSplat(static_cast<unsigned>(matrix_.accumulator_layout().registers()), anew);
  }

  std::vector<Multiplication> multiplications(const schedule::Multiply& multiply) override {
    using schedule::Product;
    switch (multiply.product) {
      case Product::scores:
        return from_rows(keys_, spec_.head_dim_qk, multiply.block, &Block::scores, &RowOperands::query);
      case Product::gradients:
        return from_rows(values_, spec_.head_dim_v, multiply.block, &Block::gradients, &RowOperands::output_gradient);
      case Product::queries:
        return from_columns(multiply.block);
      case Product::values:
      case Product::keys:
        break;
    }
    return {};
  }

  // A block of keys times the rows' operands.
  std::vector<Multiplication> from_rows(attention::TileStream& tile, int all_dims, int block, Accumulator Block::* into,
                                        std::vector<OperandB> RowOperands::* operands) {
    std::vector<Multiplication> all;
    for (int dims = 0; dims < all_dims / wave_.fragment_k(); ++dims) {
      Multiplication one = {.read = [&tile, block, dims](int buffer) { return tile.rows(buffer, block, dims); },
                            .instructions = {},
                            .is_made = {}};
      for (std::size_t rows = 0; rows < rows_.size(); ++rows)
        for (int step = 0; step < matrix_.steps(); ++step)
          one.instructions.emplace_back([=, this](const OperandA& keys) {
            Accumulator& sum = blocks_at(block)[rows].*into;
            sum = matrix_.mma_step(keys, (rows_[rows].*operands)[static_cast<std::size_t>(dims)], sum, step);
          });
      all.push_back(std::move(one));
    }
    return all;
  }

  // Columns of K times dS, a fragment of keys at a time.
  std::vector<Multiplication> from_columns(int block) {
    std::vector<Multiplication> all;
    for (int keys = 0; keys < fragments_of_block(); ++keys)
      for (int dims = 0; dims < dim_blocks(); ++dims) {
        Multiplication one = {
            .read = [this, block, keys, dims](
                        int buffer) { return keys_.transposed(buffer, dims, (fragments_of_block() * block) + keys); },
            .instructions = {},
            .made = keys,
            .is_made =
                [=, this] {
                  return std::ranges::all_of(blocks_at(block),
                                             [=](const Block& each) { return each.d_scores.has(keys); });
                }};
        for (std::size_t rows = 0; rows < rows_.size(); ++rows)
          for (int step = 0; step < matrix_.steps(); ++step)
            one.instructions.emplace_back([=, this](const OperandA& columns) {
              Accumulator& sum = sums_of(static_cast<int>(rows))[static_cast<std::size_t>(dims)];
              const OperandB& of_keys = blocks_at(block)[rows].d_scores.fragments[static_cast<std::size_t>(keys)];
              sum = sums_apart() ? matrix_.mma_step_apart(columns, of_keys, sum, step)
                                 : matrix_.mma_step(columns, of_keys, sum, step);
            });
        all.push_back(std::move(one));
      }
    return all;
  }

  void modify(const schedule::Modify& modify) override {
    Values unused;
    for (const std::vector<Block>& blocks : blocks_)
      for (const Block& block : blocks) add_unused(kernel_, block, unused);
    if (!unused.empty()) language::pin(kernel_, unused);
    for (std::size_t rows = 0; rows < rows_.size(); ++rows) {
      Block& block = blocks_at(modify.block)[rows];
      block.slopes = cap_slopes(kernel_, spec_, cap_rate_, block.scores);
      const int part = (key_blocks() * at_.part) + modify.block;
      modifiers_[rows].apply(at_.tile, fetches_late() ? modifiers_[rows].fetch(at_.tile) : fetched_[rows],
                             {&block.scores, 1}, static_cast<std::size_t>(part));
    }
  }

  Strand strand(const schedule::Queue& queue) override {
    Strand strand;
    for (int half = 0; half < fragments_of_block(); ++half)
      for (std::size_t rows = 0; rows < rows_.size(); ++rows) {
        Block& block = blocks_at(queue.block)[rows];
        if (queue.vector == schedule::Vector::weigh)
          score_gradient_.add_weights(strand, block, half, [shift = rows_[rows].shift](int) { return shift; }, false);
        else
          score_gradient_.add_d_scores(strand, block, half);
      }
    return strand;
  }

  Kernel& kernel_;
  const QueryKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  QueryPlace place_;
  RowReader row_reader_;
  Value* cap_rate_;
  int step_keys_;
  WideTilePlan k_plan_;
  WideTilePlan v_plan_;
  language::Lds lds_;
  Slice k_;
  Slice v_;
  WideTile keys_;
  WideTile values_;
  Ladder ladder_;
  ScoreGradient score_gradient_;
  std::vector<attention::ScoreModifiers> modifiers_;  // of each block of rows
  std::vector<RowOperands> rows_;
  // What is known of the tile at hand.
  struct {
    int buffer = 0;
    int part = 0;  // of the tile, a step
    Value* tile = nullptr;
    Value* next = nullptr;  // step
    Values arrived = {};    // of the tile, through registers
    Values in_flight = {};  // of the next one
  } at_;
  std::vector<Values> fetched_;
  std::vector<Accumulator> sums_;           // dQᵀ of each block of rows, a block of dims each
  std::vector<std::vector<Block>> blocks_;  // of keys, of rows
};

}  // namespace

void emit_query_gradient(Kernel& kernel, const QueryKernel& spec) { QueryGradient(kernel, spec).emit(); }

}  // namespace wavejit::attention_backward
