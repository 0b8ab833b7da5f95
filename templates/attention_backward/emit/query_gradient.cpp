// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/query_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_backward/emit/fields.h"
#include "templates/attention_backward/emit/row_numbers.h"
#include "templates/attention_backward/emit/row_store.h"
#include "templates/attention_backward/emit/schedule.h"
#include "templates/attention_backward/emit/score_gradient.h"
#include "templates/attention_backward/emit/weave.h"
#include "templates/attention_backward/emit/wide_tile.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/ladders.h"

namespace wavejit::attention_backward {
namespace {

using attention::KeyLimits;
using attention::maximum;
using attention::minimum;
using attention::QueryTile;
using attention::Slice;
using language::Accumulator;
using language::Element;
using language::Kernel;
using language::OperandA;
using language::OperandB;
using language::Strand;
using language::Value;
using language::Values;

constexpr int tile_keys = attention::tile_keys;

// What the workgroup works on.
struct Place {
  attention::Sequence sequence;
  Value* kv_head;
  std::vector<QueryTile> queries;  // of each block of the wave
  Value* first_tile;
  Value* tiles;
};

Place find_place(Kernel& kernel, const QueryKernel& spec) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto constant = [&](int value) { return kernel.constant(value); };
  // Ids are made where they are first asked for: here, where every block can see them.
  Value* wave = kernel.wave();
  Value* lane = kernel.lane();
  Value* head = kernel.workgroup_x();
  Value* batch = kernel.workgroup_z();
  Place place = {
      .sequence = attention::sequence_of(kernel, length_fields, batch),
      .kv_head = attention::divided(kernel, head, kernel.argument_i32(offsetof(Arguments, kv_head_multiplier))),
      .queries = {},
      .first_tile = constant(0),
      .tiles = nullptr};
  const attention::Sequence& sequence = place.sequence;
  // The grid has the tiles of the longest sequence. With a diagonal the last one has the most keys: it starts first.
  Value* query_tile = kernel.workgroup_y();
  const int tile_queries = tile_queries_of(spec);
  Value* query_tiles =
      ir.CreateUDiv(ir.CreateAdd(sequence.query_length, constant(tile_queries - 1)), constant(tile_queries));
  language::leave_if(kernel, ir.CreateICmpUGE(query_tile, query_tiles));
  if (spec.mask != Mask::none) query_tile = ir.CreateSub(ir.CreateSub(query_tiles, constant(1)), query_tile);

  Value* first_row = ir.CreateMul(query_tile, constant(tile_queries));
  Value* last_row = minimum(kernel, ir.CreateAdd(first_row, constant(tile_queries - 1)),
                            ir.CreateSub(sequence.query_length, constant(1)));
  Value* last_key = ir.CreateSub(sequence.key_length, constant(1));
  const KeyLimits limits =
      attention::key_limits(kernel, spec.mask, spec.has(Modifier::alibi), diagonal_fields, window_fields, sequence);
  const auto limit_of = [&](Value* row) {
    return limits.to_limit ? minimum(kernel, ir.CreateAdd(row, limits.to_limit), last_key) : last_key;
  };
  // One tile even if no row sees a key: hidden throughout, it changes nothing.
  Value* keys = maximum(kernel, ir.CreateAdd(limit_of(last_row), constant(1)), constant(1));
  Value* last_tile = ir.CreateUDiv(ir.CreateSub(keys, constant(1)), constant(tile_keys));
  if (limits.to_begin) {
    Value* first_key = maximum(kernel, ir.CreateAdd(first_row, limits.to_begin), constant(0));
    place.first_tile = minimum(kernel, ir.CreateUDiv(first_key, constant(tile_keys)), last_tile);
  }
  place.tiles = ir.CreateAdd(last_tile, constant(1));

  Value* scale = kernel.argument_i32(offsetof(Arguments, scale_log2e));
  for (int block = 0; block < spec.blocks; ++block) {
    const int rows = language::wave_shape(kernel).rows;
    Value* first_of_block = ir.CreateAdd(
        first_row,
        ir.CreateMul(ir.CreateAdd(ir.CreateMul(wave, constant(spec.blocks)), constant(block)), constant(rows)));
    place.queries.push_back({
        .query_head = head,
        .batch = batch,
        .query_start = sequence.query_start,
        .query_length = sequence.query_length,
        .scale_log2e = ir.CreateBitCast(attention::positive_scale(kernel, scale), kernel.f32()),
        .query_sign = attention::query_sign(kernel, scale),
        .first_row = first_row,
        .row = ir.CreateAdd(first_of_block, language::row_of_lane(kernel, lane)),
        .lane_group = language::group_of_lane(kernel, lane),
        .first_row_of_wave = first_of_block,
        .limit_offset = limits.to_limit,
        .last_key = last_key,
        .wave_limit = limit_of(first_of_block),
        .begin_offset = limits.to_begin,
        .wave_begin =
            limits.to_begin ? ir.CreateAdd(ir.CreateAdd(first_of_block, constant(rows - 1)), limits.to_begin) : nullptr,
        .diagonal_offset = spec.has(Modifier::alibi) ? limits.diagonal : nullptr,
    });
  }
  return place;
}

class QueryGradient : private Weaver {
 public:
  QueryGradient(Kernel& kernel, const QueryKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        place_(find_place(kernel, spec)),
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
    for (const QueryTile& queries : place_.queries) rows_.push_back(load_operands(queries));
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
    const Slice dq = rows_of(offsetof(Arguments, dq), spec_.head_dim_qk, gradient_bytes(spec_), ir.getInt32(~0U));
    for (int block = 0; block < spec_.blocks; ++block) {
      const QueryTile& queries = place_.queries[static_cast<std::size_t>(block)];
      store_rows(kernel_, dq, queries.row, queries.lane_group, matrix_.element(), spec_.gradients_fp32, sums_of(block),
                 kernel_.argument_f32(offsetof(Arguments, dq_factor)));
    }
  }

 private:
  int dim_blocks() const { return spec_.head_dim_qk / wave_.rows; }
  // A tile of keys, or half of it where LDS has no room for more.
  int steps_of_tile() const { return tile_keys / step_keys_; }
  int fragments_of_block() const { return wave_.rows / wave_.fragment_k(); }
  // Operands of two blocks and 128 dims are 256 registers.
  bool sums_apart() const { return spec_.blocks == 2 || held_registers(spec_) >= vector_registers; }

  // What a block of rows has throughout.
  struct Rows {
    std::vector<OperandB> query, output_gradient;  // a fragment of dims each
    Value* shift = nullptr;
    Value* minus_delta = nullptr;
  };

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

  // `are`: all bits, or none where there are no such rows.
  Slice rows_of(std::size_t at, int dims, int element_bytes, Value* are) {
    return attention::slice_of(kernel_, tensor_fields(at), place_.queries.front().batch,
                               place_.queries.front().query_head, place_.sequence.query_start,
                               kernel_.ir().CreateAnd(place_.sequence.query_length, are), dims * element_bytes);
  }

  // Zeros, or what a call before left.
  void add_first_sums(Values& initial) {
    const auto dims = static_cast<std::size_t>(dim_blocks());
    if (!spec_.gradients_fp32) {
      initial.insert(initial.end(), dims * place_.queries.size(), matrix_.zeros().value);
      return;
    }
    const Slice before =
        rows_of(offsetof(Arguments, dq), spec_.head_dim_qk, 4, kernel_.argument_i32(offsetof(Arguments, dq_before)));
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
    return schedule::query_schedule(key_blocks(),
                                    k_plan_.buffers() > 1 ? schedule::Order::hiding : schedule::Order::rows_first);
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

  // Q and dO as operands, LSE and delta of the lane's row.
  Rows load_operands(const QueryTile& queries) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Rows rows;
    const auto load = [&](std::size_t at, int dims) {
      return attention::load_query(kernel_, dims, rows_of(at, dims, attention::bytes_of(spec_.dtype), ir.getInt32(~0U)),
                                   queries);
    };
    const Values q = load(offsetof(Arguments, q), spec_.head_dim_qk);
    const Values d_o = load(offsetof(Arguments, d_o), spec_.head_dim_v);
    const Values o = load_outputs(queries);
    const auto numbers = [&](std::size_t at) {
      return row_numbers(kernel_, at, queries.batch, queries.query_head, place_.sequence);
    };
    Value* place = ir.CreateShl(queries.row, 2);
    const auto number = [&](const language::Buffer& from) {
      return ir.CreateBitCast(from.load(4, place, kernel_.constant(0)), kernel_.f32());
    };
    rows.shift = shift_of(kernel_, number(numbers(offsetof(Arguments, lse))));
    rows.query = attention::query_operands(kernel_, queries, matrix_, q);
    for (Value* dwords : d_o) rows.output_gradient.push_back(matrix_.operand_b(dwords, language::KOrder::contiguous));

    Value* delta = delta_of(o, d_o);
    const auto where_given = [&](std::size_t at, const std::function<Value*(Value * sum, Value * given)>& change) {
      delta = language::if_uniform(kernel_, is_given(at), language::Likelihood::even, {delta},
                                   [&](const Values& sum) { return Values{change(sum[0], number(numbers(at)))}; })[0];
    };
    where_given(offsetof(Arguments, given_delta), [](Value*, Value* given) { return given; });
    where_given(offsetof(Arguments, d_lse), [&](Value* sum, Value* given) { return ir.CreateFSub(sum, given); });
    delta = language::with_short_nan(kernel_, delta);
    // One lane of the two that own a row writes; the other points far outside and is dropped.
    Value* writes = ir.CreateICmpEQ(queries.lane_group, kernel_.constant(0));
    numbers(offsetof(Arguments, delta))
        .store(ir.CreateBitCast(delta, kernel_.i32()), ir.CreateSelect(writes, place, ir.getInt32(0x80000000)),
               kernel_.constant(0));
    rows.minus_delta = ir.CreateFNeg(delta);
    if (!deltas_made_anew())
      rows.minus_delta =
          ir.CreateVectorSplat(static_cast<unsigned>(matrix_.accumulator_layout().registers()), rows.minus_delta);
    return rows;
  }

  Value* is_given(std::size_t at) {
    return kernel_.ir().CreateIsNotNull(kernel_.argument_i64(at + offsetof(RowNumbersArgument, pointer)));
  }

  // O of the lane's row, as load_query has it; of f32, 8 dims are two loads. With a delta that is given, zeros.
  Values load_outputs(const QueryTile& queries) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* are = ir.CreateSelect(is_given(offsetof(Arguments, given_delta)), kernel_.constant(0), ir.getInt32(~0U));
    const DataType type = spec_.output_fp32 ? DataType::fp32 : spec_.dtype;
    const Slice o = rows_of(offsetof(Arguments, o), spec_.head_dim_v, attention::bytes_of(type), are);
    if (!spec_.output_fp32) return attention::load_query(kernel_, spec_.head_dim_v, o, queries);
    constexpr int load_bytes = 16;
    const int group_bytes = 2 * load_bytes;
    Value* place = ir.CreateAdd(ir.CreateMul(queries.row, o.row_stride),
                                ir.CreateMul(queries.lane_group, kernel_.constant(group_bytes)));
    Values loaded;
    for (int block = 0; block < spec_.head_dim_v / wave_.fragment_k(); ++block)
      for (int half = 0; half < 2; ++half) {
        Value* own = ir.CreateAdd(place, kernel_.constant((block * 2 * group_bytes) + (half * load_bytes)));
        loaded.push_back(o.buffer.load(load_bytes, own, kernel_.constant(0)));
      }
    return loaded;
  }

  // Of the block's 8 dims that the lane has.
  Value* output_element(const Values& o, std::size_t block, int index) {
    if (!spec_.output_fp32) return element(o[block], index);
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* four = o[(2 * block) + static_cast<std::size_t>(index / 4)];
    return ir.CreateBitCast(ir.CreateExtractElement(four, static_cast<std::uint64_t>(index % 4)), kernel_.f32());
  }

  Value* element(Value* dwords, int index) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (spec_.dtype == DataType::fp16) {
      Value* halves = ir.CreateBitCast(dwords, kernel_.vector(llvm::Type::getHalfTy(kernel_.context()), 8));
      return ir.CreateFPExt(ir.CreateExtractElement(halves, static_cast<std::uint64_t>(index)), kernel_.f32());
    }
    Value* dword = ir.CreateExtractElement(dwords, static_cast<std::uint64_t>(index / 2));
    return language::float_of_bf16(kernel_, dword, index % 2);
  }

  // Σ dO · O: eight chains of dims 8 apart, of this half of the wave; then their tree; then the other half's.
  Value* delta_of(const Values& o, const Values& d_o) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Values chains(8, kernel_.constant(0.0F));
    for (std::size_t block = 0; block < d_o.size(); ++block)
      for (int i = 0; i < 8; ++i) {
        Value*& chain = chains[static_cast<std::size_t>(i)];
        chain = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()},
                                   {element(d_o[block], i), output_element(o, block, i), chain});
      }
    for (std::size_t apart = 4; apart > 0; apart /= 2)
      for (std::size_t i = 0; i < apart; ++i) chains[i] = ir.CreateFAdd(chains[i], chains[i + apart]);
    const auto [one, other] = language::both_halves(kernel_, chains[0]);
    return ir.CreateFAdd(one, other);
  }

  // A tile, with its first fragments; returns the next one's.
  Fragments attend(const Values& before) {
    fetched_.clear();
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
  Value* minus_delta_of(const Rows& rows) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (!deltas_made_anew()) return rows.minus_delta;
    Value* bits = ir.CreateBitCast(rows.minus_delta, kernel_.i32());
    Value* anew = ir.CreateBitCast(ir.CreateXor(bits, language::opaque(kernel_, kernel_.constant(0))), kernel_.f32());
    return ir.CreateVectorSplat(static_cast<unsigned>(matrix_.accumulator_layout().registers()), anew);
  }
  bool deltas_made_anew() const { return spec_.blocks == 2 && spec_.head_dim_qk > 128; }

  std::vector<Multiplication> multiplications(const schedule::Multiply& multiply) override {
    using schedule::Product;
    switch (multiply.product) {
      case Product::scores:
        return from_rows(keys_, spec_.head_dim_qk, multiply.block, &Block::scores, &Rows::query);
      case Product::gradients:
        return from_rows(values_, spec_.head_dim_v, multiply.block, &Block::gradients, &Rows::output_gradient);
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
                                        std::vector<OperandB> Rows::* operands) {
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
      modifiers_[rows].apply(at_.tile, fetched_[rows], {&block.scores, 1}, static_cast<std::size_t>(part));
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
  Place place_;
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
  std::vector<Rows> rows_;
  // Of the tile at hand.
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
