// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/key_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <limits>

#include "codegen/language/control.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/query.h"
#include "templates/attention_backward/emit/key_place.h"
#include "templates/attention_backward/emit/read_ahead.h"
#include "templates/attention_backward/emit/row_modifiers.h"
#include "templates/attention_backward/emit/row_numbers.h"
#include "templates/attention_backward/emit/row_store.h"
#include "templates/attention_backward/emit/row_tiles.h"
#include "templates/attention_backward/emit/score_gradient.h"
#include "templates/attention_backward/kernel/arguments.h"
#include "templates/attention_backward/kernel/canon.h"

namespace wavejit::attention_backward {
namespace {

using attention::Slice;
using language::Accumulator;
using language::Element;
using language::Kernel;
using language::OperandA;
using language::OperandB;
using language::Value;
using language::Values;

// The rows of one head that a workgroup takes at a time, all uniform: a row tile, or half of it.
struct Step {
  Value* tile;
  Value* head;  // of the group
  Value* part;  // of the tile
};

class KeyGradient {
 public:
  KeyGradient(Kernel& kernel, const KeyKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        rows_(rows_at_once(spec, kernel.target())),
        matrix_(kernel, 32, 32, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        place_(find_key_place(kernel, spec)),
        cap_rate_(cap_rate(kernel, spec)),
        modifiers_(kernel, spec, place_, cap_rate_),
        q_plan_(plan_tile(kernel.target(), {.rows = rows_, .dims = spec.head_dim, .by_columns = true}, 0, 0)),
        d_o_plan_(plan_tile(kernel.target(), {.rows = rows_, .dims = spec.head_dim, .by_columns = true},
                            q_plan_.total_bytes(), q_plan_.regions())),
        numbers_at_(q_plan_.total_bytes() + d_o_plan_.total_bytes()),
        numbers_region_(q_plan_.regions() + d_o_plan_.regions()),
        lds_(kernel, numbers_at_ + (buffers() * numbers_bytes), numbers_region_ + buffers()),
        queries_(kernel, lds_, matrix_, q_plan_, stride_of(offsetof(Arguments, q))),
        output_gradients_(kernel, lds_, matrix_, d_o_plan_, stride_of(offsetof(Arguments, d_o))) {}

  void emit() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Step first = {.tile = place_.first_tile, .head = kernel_.constant(0), .part = kernel_.constant(0)};
    const Values started = fetch(0, first);
    load_keys();
    const Sums zeros = Sums(static_cast<std::size_t>(2 * dim_blocks()), matrix_.zeros());
    Values initial = {first.tile, first.head, first.part};
    add(initial, zeros);
    if (several_runs()) add(initial, zeros);
    initial.insert(initial.end(), started.begin(), started.end());
    const std::size_t sums_at = 3;
    const std::size_t count = zeros.size();
    const std::size_t in_flight_at = sums_at + (several_runs() ? 2 * count : count);
    const Values end = language::loop_in_phases(
        kernel_, buffers(), initial,
        [&](int buffer, const Values& state) {
          const Step step = {
              .tile = kernel_.uniform(state[0]), .head = kernel_.uniform(state[1]), .part = kernel_.uniform(state[2])};
          const Step next = behind(step);
          const Values ahead = advance(buffer, step, next,
                                       Values(state.begin() + static_cast<std::ptrdiff_t>(in_flight_at), state.end()));
          Sums sums = from(state, sums_at, count);
          Sums runs = several_runs() ? from(state, sums_at + count, count) : Sums{};
          if (several_runs()) end_run(step, sums, runs);
          for (int block = 0; block < rows_ / 32; ++block) attend(buffer, step, block, sums);
          Values after = {next.tile, next.head, next.part};
          add(after, sums);
          add(after, runs);
          after.insert(after.end(), ahead.begin(), ahead.end());
          return after;
        },
        [&](const Values& state) { return ir.CreateICmpSLT(state[0], place_.tiles); });
    Sums sums = from(end, sums_at, count);
    if (several_runs()) sums = added(from(end, sums_at + count, count), sums);
    const auto half = static_cast<std::ptrdiff_t>(count / 2);
    store(offsetof(Arguments, dv), {sums.data(), count / 2}, kernel_.constant(1.0F));
    store(offsetof(Arguments, dk), {sums.data() + half, count / 2}, kernel_.argument_f32(offsetof(Arguments, scale)));
  }

 private:
  using Sums = std::vector<Accumulator>;  // dVᵀ, then dKᵀ, 32 dims each

  static constexpr int numbers_bytes = 2 * tile_rows * 4;  // of a tile: shifts, then −delta
  static constexpr int fragments_ahead = 4;
  int dim_blocks() const { return spec_.head_dim / 32; }
  int buffers() const { return q_plan_.buffers; }
  bool several_runs() const { return spec_.runs == Runs::several; }
  Value* stride_of(std::size_t at) { return kernel_.argument_i32(tensor_fields(at).row_stride); }

  static void add(Values& values, const Sums& sums) {
    for (const Accumulator& sum : sums) values.push_back(sum.value);
  }
  Sums from(const Values& values, std::size_t first, std::size_t count) const {
    Sums sums;
    for (std::size_t i = first; i < first + count; ++i) sums.push_back({values[i], matrix_.accumulator_layout()});
    return sums;
  }
  Sums added(const Sums& before, const Sums& run) {
    Sums sums = before;
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i].value = kernel_.ir().CreateFAdd(before[i].value, run[i].value);
    return sums;
  }

  // ---- The walk

  // Part, then head, then tile.
  Step behind(const Step& step) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* one = kernel_.constant(1);
    Value* zero = kernel_.constant(0);
    Step next = step;
    Value* carries = ir.getTrue();
    if (rows_ < tile_rows) {
      Value* part = ir.CreateAdd(step.part, one);
      carries = ir.CreateICmpEQ(part, kernel_.constant(tile_rows / rows_));
      next.part = ir.CreateSelect(carries, zero, part);
    }
    Value* head = ir.CreateSelect(carries, ir.CreateAdd(step.head, one), step.head);
    Value* wraps = ir.CreateICmpEQ(head, place_.group);
    next.head = ir.CreateSelect(wraps, zero, head);
    next.tile = ir.CreateSelect(wraps, ir.CreateAdd(step.tile, one), step.tile);
    return next;
  }

  Value* first_row_of(const Step& step) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    return ir.CreateAdd(ir.CreateMul(step.tile, kernel_.constant(tile_rows)),
                        ir.CreateMul(step.part, kernel_.constant(rows_)));
  }
  Value* head_of(const Step& step) { return kernel_.ir().CreateAdd(place_.first_head, step.head); }

  // Tiles, and a row's two numbers in each lane. A part of a tile may begin beyond the sequence: then its rows are
  // none.
  Values fetch(int buffer, const Step& step) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* head = head_of(step);
    Value* row = first_row_of(step);
    Value* last = ir.CreateSub(place_.sequence.query_length, kernel_.constant(1));
    Value* is_inside = ir.CreateICmpSLE(row, last);
    attention::Sequence sequence = place_.sequence;
    sequence.query_length = ir.CreateSelect(is_inside, sequence.query_length, kernel_.constant(0));
    Value* from = ir.CreateSelect(is_inside, row, kernel_.constant(0));
    const auto rows_of = [&](std::size_t at) {
      return attention::slice_of(kernel_, tensor_fields(at), place_.batch, head, sequence.query_start,
                                 sequence.query_length, spec_.head_dim * 2);
    };
    Values loaded = queries_.fetch(buffer, rows_of(offsetof(Arguments, q)).buffer, from);
    const Values more = output_gradients_.fetch(buffer, rows_of(offsetof(Arguments, d_o)).buffer, from);
    loaded.insert(loaded.end(), more.begin(), more.end());
    Value* own = ir.CreateAdd(row, kernel_.lane());
    const auto number = [&](std::size_t at) {
      const language::Buffer numbers = row_numbers(kernel_, at, place_.batch, head, place_.sequence);
      return ir.CreateBitCast(numbers.load(4, ir.CreateShl(own, 2), kernel_.constant(0)), kernel_.f32());
    };
    loaded.push_back(number(offsetof(Arguments, lse)));
    loaded.push_back(number(offsetof(Arguments, delta)));
    return loaded;
  }

  // After this the step's rows are in `buffer` and the next ones on their way. As in the dQ kernel; the rows' numbers
  // come through registers into LDS, and with two buffers those of this one were read before the last barrier.
  Values advance(int buffer, const Step& step, const Step& next, const Values& arrived) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const std::size_t tiles = (arrived.size() - 2) / 2;
    if (tiles != 0) {
      language::wait_for_lds(kernel_);
      language::barrier(kernel_);
      queries_.write(std::span(arrived).first(tiles));
      output_gradients_.write(std::span(arrived).subspan(tiles, tiles));
    }
    // Rows beyond the sequence weigh nothing.
    Value* has_row = ir.CreateICmpSLT(ir.CreateAdd(first_row_of(step), kernel_.lane()), place_.sequence.query_length);
    Value* shift = ir.CreateSelect(has_row, shift_of(kernel_, arrived[arrived.size() - 2]),
                                   kernel_.constant(-std::numeric_limits<float>::infinity()));
    Value* minus_delta = ir.CreateFNeg(arrived.back());
    language::if_uniform(kernel_, ir.CreateICmpEQ(kernel_.wave(), kernel_.constant(0)), language::Likelihood::even,
                         [&] {
                           Value* own = ir.CreateShl(kernel_.lane(), 2);
                           const auto write = [&](Value* number, int at) {
                             lds_.write(numbers_region_ + buffer, ir.CreateBitCast(number, kernel_.i32()), own,
                                        numbers_at_ + (buffer * numbers_bytes) + at);
                           };
                           write(shift, 0);
                           write(minus_delta, tile_rows * 4);
                         });
    if (tiles != 0)
      language::wait_for_lds(kernel_);
    else
      language::wait_for_lds_fills(kernel_);
    language::barrier(kernel_);
    return language::if_uniform(kernel_, ir.CreateICmpSLT(next.tile, place_.tiles), language::Likelihood::even, arrived,
                                [&](const Values&) { return fetch((buffer + 1) % buffers(), next); });
  }

  // A run ends before the first head of a tile that is a multiple of a run's; 0 + its sums the first time.
  void end_run(const Step& step, Sums& sums, Sums& runs) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* length = kernel_.argument_i32(offsetof(Arguments, run_tiles));
    Value* in_run = ir.CreateURem(step.tile, length);
    Value* ends = ir.CreateICmpEQ(ir.CreateOr(ir.CreateOr(in_run, step.head), step.part), kernel_.constant(0));
    Values all;
    add(all, sums);
    add(all, runs);
    const std::size_t count = sums.size();
    const Values after =
        language::if_uniform(kernel_, ends, language::Likelihood::rarely, all, [&](const Values& values) {
          Values next;
          add(next, Sums(count, matrix_.zeros()));
          add(next, added(from(values, count, count), from(values, 0, count)));
          return next;
        });
    sums = from(after, 0, count);
    runs = from(after, count, count);
  }

  // ---- Keys

  Slice keys_of(std::size_t at, Value* keys, int element_bytes) {
    return attention::slice_of(kernel_, tensor_fields(at), place_.batch, place_.kv_head, place_.sequence.key_start,
                               keys, spec_.head_dim * element_bytes);
  }

  // Rows past the end of the keys are zeros; what comes of them is not stored.
  void load_keys() {
    attention::QueryTile as_rows = {};
    as_rows.row = place_.key;
    as_rows.lane_group = place_.lane_group;
    as_rows.query_sign = place_.sign;
    const auto load = [&](std::size_t at) {
      return attention::load_query(kernel_, spec_.head_dim, keys_of(at, place_.sequence.key_length, 2), as_rows);
    };
    const Values k = load(offsetof(Arguments, k));
    const Values v = load(offsetof(Arguments, v));
    keys_ = attention::query_operands(kernel_, as_rows, matrix_, k);
    for (Value* dwords : v) values_.push_back(matrix_.operand_b(dwords, language::KOrder::contiguous));
  }

  // Keys that key_lengths cuts get zeros: rows do not see them.
  void store(std::size_t at, std::span<const Accumulator> sums, Value* factor) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const Slice slice = keys_of(at, place_.keys_of_tensor, spec_.gradients_fp32 ? 4 : 2);
    Value* counts = ir.CreateICmpSLT(place_.key, place_.sequence.key_length);
    Sums kept(sums.begin(), sums.end());
    for (Accumulator& sum : kept) {
      Value* all = ir.CreateVectorSplat(static_cast<unsigned>(sum.layout.registers()), counts);
      sum.value = ir.CreateSelect(all, sum.value, matrix_.zeros().value);
    }
    store_rows(kernel_, slice, place_.key, place_.lane_group, matrix_.element(), spec_.gradients_fp32, kept, factor);
  }

  // ---- A block of 32 rows

  // Register r of a lane is row 8 · (r / 4) + 4h + r mod 4 of the block: four reads of 16 bytes, the same in all lanes
  // of a group.
  Value* numbers_of(int buffer, int block, int at) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const language::AccumulatorLayout layout = matrix_.accumulator_layout();
    Value* own = ir.CreateShl(place_.lane_group, 4);
    Value* all = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), layout.registers()));
    for (int r = 0; r < layout.registers(); r += 4) {
      const int first = numbers_at_ + (buffer * numbers_bytes) + at + (4 * ((32 * block) + layout.row_of_register(r)));
      Value* four =
          ir.CreateBitCast(lds_.read(numbers_region_ + buffer, 16, own, first), kernel_.vector(kernel_.f32(), 4));
      for (int i = 0; i < 4; ++i)
        all = ir.CreateInsertElement(all, ir.CreateExtractElement(four, static_cast<std::uint64_t>(i)),
                                     static_cast<std::uint64_t>(r) + static_cast<std::uint64_t>(i));
    }
    return all;
  }

  void attend(int buffer, const Step& step, int block, Sums& sums) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* first_row = ir.CreateAdd(first_row_of(step), kernel_.constant(32 * block));
    Accumulator scores = matrix_.zeros();
    read_ahead(
        spec_.head_dim / 16, fragments_ahead, [&](int dims) { return queries_.rows(buffer, block, dims); },
        [&](int dims, const OperandA& rows) {
          scores = matrix_.mma(rows, keys_[static_cast<std::size_t>(dims)], scores);
        });
    Accumulator gradient = {numbers_of(buffer, block, tile_rows * 4), matrix_.accumulator_layout()};
    read_ahead(
        spec_.head_dim / 16, fragments_ahead, [&](int dims) { return output_gradients_.rows(buffer, block, dims); },
        [&](int dims, const OperandA& rows) {
          gradient = matrix_.mma(rows, values_[static_cast<std::size_t>(dims)], gradient);
        });

    const Values slopes = cap_slopes(kernel_, spec_, cap_rate_, scores);
    modifiers_.apply(head_of(step), first_row, scores);
    Value* shifts = numbers_of(buffer, block, 0);
    for (int r = 0; r < scores.layout.registers(); ++r) {
      const auto at = static_cast<std::uint64_t>(r);
      Value* weight = weight_of(kernel_, ir.CreateExtractElement(scores.value, at), modifiers_.softmax_scale(),
                                ir.CreateExtractElement(shifts, at));
      Value* product = ir.CreateFMul(weight, ir.CreateExtractElement(gradient.value, at));
      if (!slopes.empty()) product = ir.CreateFMul(product, slopes[at]);
      scores.value = ir.CreateInsertElement(scores.value, weight, at);
      gradient.value = ir.CreateInsertElement(gradient.value, product, at);
    }
    accumulate(output_gradients_, buffer, block, packed(kernel_, matrix_, scores), {sums.data(), sums.size() / 2});
    accumulate(queries_, buffer, block, packed(kernel_, matrix_, gradient),
               {sums.data() + (sums.size() / 2), sums.size() / 2});
  }

  void accumulate(const RowTile& tile, int buffer, int block, const std::vector<OperandB>& operands,
                  std::span<Accumulator> sums) {
    const int count = dim_blocks();
    read_ahead(
        2 * count, fragments_ahead, [&](int i) { return tile.columns(buffer, i % count, (2 * block) + (i / count)); },
        [&](int i, const OperandA& rows) {
          Accumulator& sum = sums[static_cast<std::size_t>(i % count)];
          sum = matrix_.mma(rows, operands[static_cast<std::size_t>(i / count)], sum);
        });
  }

  Kernel& kernel_;
  const KeyKernel& spec_;
  int rows_;
  language::MatrixUnit matrix_;
  KeyPlace place_;
  Value* cap_rate_;
  RowModifiers modifiers_;
  RowTilePlan q_plan_;
  RowTilePlan d_o_plan_;
  int numbers_at_;
  int numbers_region_;
  language::Lds lds_;
  RowTile queries_;
  RowTile output_gradients_;
  std::vector<OperandB> keys_;
  std::vector<OperandB> values_;
};

}  // namespace

void emit_key_gradient(Kernel& kernel, const KeyKernel& spec) { KeyGradient(kernel, spec).emit(); }

}  // namespace wavejit::attention_backward
