// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/query_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <utility>

#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention/emit/visible_keys.h"
#include "templates/attention_backward/emit/fields.h"
#include "templates/attention_backward/emit/read_ahead.h"
#include "templates/attention_backward/emit/row_numbers.h"
#include "templates/attention_backward/emit/row_store.h"
#include "templates/attention_backward/emit/row_tiles.h"
#include "templates/attention_backward/emit/score_gradient.h"
#include "templates/attention_backward/kernel/arguments.h"

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
using language::Value;
using language::Values;

constexpr int tile_keys = attention::tile_keys;

// What the workgroup works on.
struct Place {
  attention::Sequence sequence;
  Value* kv_head;
  QueryTile queries;
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
  Value* query_tiles =
      ir.CreateUDiv(ir.CreateAdd(sequence.query_length, constant(tile_queries - 1)), constant(tile_queries));
  language::leave_if(kernel, ir.CreateICmpUGE(query_tile, query_tiles));
  if (spec.mask != Mask::none) query_tile = ir.CreateSub(ir.CreateSub(query_tiles, constant(1)), query_tile);

  Value* first_row = ir.CreateMul(query_tile, constant(tile_queries));
  Value* last_row = minimum(kernel, ir.CreateAdd(first_row, constant(tile_queries - 1)),
                            ir.CreateSub(sequence.query_length, constant(1)));
  Value* first_of_wave = ir.CreateAdd(first_row, ir.CreateMul(wave, constant(QueryTile::rows_per_wave)));
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
  place.queries = {
      .query_head = head,
      .batch = batch,
      .query_start = sequence.query_start,
      .query_length = sequence.query_length,
      .scale_log2e = ir.CreateBitCast(attention::positive_scale(kernel, scale), kernel.f32()),
      .query_sign = ir.CreateAnd(ir.CreateAShr(scale, constant(31)), ir.getInt32(0x80008000)),
      .first_row = first_row,
      .row = ir.CreateAdd(first_of_wave, ir.CreateAnd(lane, constant(QueryTile::rows_per_wave - 1))),
      .lane_group = ir.CreateLShr(lane, constant(5)),
      .first_row_of_wave = first_of_wave,
      .limit_offset = limits.to_limit,
      .last_key = last_key,
      .wave_limit = limit_of(first_of_wave),
      .begin_offset = limits.to_begin,
      .wave_begin = limits.to_begin ? ir.CreateAdd(ir.CreateAdd(first_of_wave, constant(QueryTile::rows_per_wave - 1)),
                                                   limits.to_begin)
                                    : nullptr,
      .diagonal_offset = spec.has(Modifier::alibi) ? limits.diagonal : nullptr,
  };
  return place;
}

class QueryGradient {
 public:
  QueryGradient(Kernel& kernel, const QueryKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        matrix_(kernel, 32, 32, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        place_(find_place(kernel, spec)),
        modifiers_(kernel, spec.modifiers, spec.dtype, score_fields, place_.queries),
        cap_rate_(cap_rate(kernel, spec)),
        k_plan_(plan_tile(kernel.target(), {.rows = tile_keys, .dims = spec.head_dim, .by_columns = true}, 0, 0)),
        v_plan_(plan_tile(kernel.target(), {.rows = tile_keys, .dims = spec.head_dim}, k_plan_.total_bytes(),
                          k_plan_.regions())),
        lds_(kernel, k_plan_.total_bytes() + v_plan_.total_bytes(), k_plan_.regions() + v_plan_.regions()),
        k_(keys_of(offsetof(Arguments, k))),
        v_(keys_of(offsetof(Arguments, v))),
        keys_(kernel, lds_, matrix_, k_plan_, k_.row_stride),
        values_(kernel, lds_, matrix_, v_plan_, v_.row_stride) {}

  void emit() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Values in_flight = fetch(0, place_.first_tile);
    load_rows();
    Values initial = {place_.first_tile};
    for (int block = 0; block < dim_blocks(); ++block) initial.push_back(matrix_.zeros().value);
    initial.insert(initial.end(), in_flight.begin(), in_flight.end());
    const std::size_t in_flight_at = 1 + static_cast<std::size_t>(dim_blocks());
    const Values end = language::loop_in_phases(
        kernel_, k_plan_.buffers, initial,
        [&](int buffer, const Values& state) {
          Value* tile = kernel_.uniform(state[0]);
          Value* next = ir.CreateAdd(tile, kernel_.constant(1));
          const Values arrived(state.begin() + static_cast<std::ptrdiff_t>(in_flight_at), state.end());
          const Values ahead = advance(buffer, next, arrived);
          std::vector<Accumulator> sums;
          sums.reserve(static_cast<std::size_t>(dim_blocks()));
          for (int block = 0; block < dim_blocks(); ++block)
            sums.push_back({state[static_cast<std::size_t>(block) + 1], matrix_.accumulator_layout()});
          attend(buffer, tile, sums);
          Values after = {next};
          after.reserve(1 + sums.size() + ahead.size());
          for (const Accumulator& sum : sums) after.push_back(sum.value);
          after.insert(after.end(), ahead.begin(), ahead.end());
          return after;
        },
        [&](const Values& state) { return ir.CreateICmpSLT(state[0], place_.tiles); });
    std::vector<Accumulator> sums;
    sums.reserve(static_cast<std::size_t>(dim_blocks()));
    for (int block = 0; block < dim_blocks(); ++block)
      sums.push_back({end[static_cast<std::size_t>(block) + 1], matrix_.accumulator_layout()});
    store_rows(kernel_, rows_of(offsetof(Arguments, dq), spec_.gradients_fp32 ? 4 : 2), place_.queries.row,
               place_.queries.lane_group, matrix_.element(), spec_.gradients_fp32, sums,
               kernel_.argument_f32(offsetof(Arguments, scale)));
  }

 private:
  int dim_blocks() const { return spec_.head_dim / 32; }
  // The slopes of a soft cap take 32 registers: with 128 dims there is no room for four fragments beside them.
  int ahead() const { return spec_.has(Modifier::softcap) && spec_.head_dim > 64 ? 2 : 4; }

  Slice rows_of(std::size_t at, int element_bytes) {
    return attention::slice_of(kernel_, tensor_fields(at), place_.queries.batch, place_.queries.query_head,
                               place_.sequence.query_start, place_.sequence.query_length,
                               spec_.head_dim * element_bytes);
  }
  Slice keys_of(std::size_t at) {
    return attention::slice_of(kernel_, tensor_fields(at), place_.queries.batch, place_.kv_head,
                               place_.sequence.key_start, place_.sequence.key_length, spec_.head_dim * 2);
  }

  Values fetch(int buffer, Value* tile) {
    Value* first = kernel_.ir().CreateMul(tile, kernel_.constant(tile_keys));
    Values loaded = keys_.fetch(buffer, k_.buffer, first);
    const Values more = values_.fetch(buffer, v_.buffer, first);
    loaded.insert(loaded.end(), more.begin(), more.end());
    return loaded;
  }

  // After this the tile is in `buffer` and the next one on its way. With one buffer everybody's reads of the tile
  // before end at the first barrier; with two, the barrier says that the other one is free.
  Values advance(int buffer, Value* next, const Values& arrived) {
    const bool in_registers = !arrived.empty();
    if (in_registers) {
      language::wait_for_lds(kernel_);
      language::barrier(kernel_);
      const std::size_t half = arrived.size() / 2;
      keys_.write(std::span(arrived).first(half));
      values_.write(std::span(arrived).subspan(half));
      language::wait_for_lds(kernel_);
    } else {
      language::wait_for_lds_fills(kernel_);
    }
    language::barrier(kernel_);
    return language::if_uniform(kernel_, kernel_.ir().CreateICmpSLT(next, place_.tiles), language::Likelihood::even,
                                arrived, [&](const Values&) { return fetch((buffer + 1) % k_plan_.buffers, next); });
  }

  // Q and dO as operands, LSE and delta of the lane's row.
  void load_rows() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const QueryTile& queries = place_.queries;
    const auto load = [&](std::size_t at) {
      return attention::load_query(kernel_, spec_.head_dim, rows_of(at, 2), queries);
    };
    const Values q = load(offsetof(Arguments, q));
    const Values d_o = load(offsetof(Arguments, d_o));
    const Values o = load(offsetof(Arguments, o));
    const auto numbers = [&](std::size_t at) {
      return row_numbers(kernel_, at, queries.batch, queries.query_head, place_.sequence);
    };
    Value* place = ir.CreateShl(queries.row, 2);
    const auto number = [&](const language::Buffer& from) {
      return ir.CreateBitCast(from.load(4, place, kernel_.constant(0)), kernel_.f32());
    };
    shift_ = shift_of(kernel_, number(numbers(offsetof(Arguments, lse))));
    query_ = attention::query_operands(kernel_, queries, matrix_, q);
    for (Value* dwords : d_o) output_gradient_.push_back(matrix_.operand_b(dwords, language::KOrder::contiguous));

    Value* delta = delta_of(o, d_o);
    Value* given = kernel_.argument_i64(offsetof(Arguments, d_lse) + offsetof(RowNumbersArgument, pointer));
    delta = language::if_uniform(kernel_, ir.CreateIsNotNull(given), language::Likelihood::even, {delta},
                                 [&](const Values& sum) {
                                   return Values{ir.CreateFSub(sum[0], number(numbers(offsetof(Arguments, d_lse))))};
                                 })[0];
    // One lane of the two that own a row writes; the other points far outside and is dropped.
    Value* writes = ir.CreateICmpEQ(queries.lane_group, kernel_.constant(0));
    numbers(offsetof(Arguments, delta))
        .store(ir.CreateBitCast(delta, kernel_.i32()), ir.CreateSelect(writes, place, ir.getInt32(0x80000000)),
               kernel_.constant(0));
    minus_delta_ =
        ir.CreateVectorSplat(static_cast<unsigned>(matrix_.accumulator_layout().registers()), ir.CreateFNeg(delta));
  }

  Value* element(Value* dwords, int index) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (spec_.dtype == DataType::fp16) {
      Value* halves = ir.CreateBitCast(dwords, kernel_.vector(llvm::Type::getHalfTy(kernel_.context()), 8));
      return ir.CreateFPExt(ir.CreateExtractElement(halves, static_cast<std::uint64_t>(index)), kernel_.f32());
    }
    Value* dword = ir.CreateExtractElement(dwords, static_cast<std::uint64_t>(index / 2));
    Value* bits = index % 2 == 0 ? ir.CreateShl(dword, 16) : ir.CreateAnd(dword, ir.getInt32(0xFFFF0000));
    return ir.CreateBitCast(bits, kernel_.f32());
  }

  // Σ dO · O: eight chains of dims 8 apart, of this half of the wave; then their tree; then the other half's.
  Value* delta_of(const Values& o, const Values& d_o) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Values chains(8, kernel_.constant(0.0F));
    for (std::size_t block = 0; block < o.size(); ++block)
      for (int i = 0; i < 8; ++i) {
        Value*& chain = chains[static_cast<std::size_t>(i)];
        chain = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()},
                                   {element(d_o[block], i), element(o[block], i), chain});
      }
    for (std::size_t apart = 4; apart > 0; apart /= 2)
      for (std::size_t i = 0; i < apart; ++i) chains[i] = ir.CreateFAdd(chains[i], chains[i + apart]);
    const auto [one, other] = language::both_halves(kernel_, chains[0]);
    return ir.CreateFAdd(one, other);
  }

  void attend(int buffer, Value* tile, std::vector<Accumulator>& sums) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    constexpr int blocks = tile_keys / 32;
    const Values fetched = modifiers_.fetch(tile);
    std::vector<Accumulator> scores(blocks, matrix_.zeros());
    read_ahead(
        blocks * spec_.head_dim / 16, ahead(), [&](int i) { return keys_.rows(buffer, i % blocks, i / blocks); },
        [&](int i, const OperandA& keys) {
          Accumulator& sum = scores[static_cast<std::size_t>(i % blocks)];
          sum = matrix_.mma(keys, query_[static_cast<std::size_t>(i / blocks)], sum);
        });
    std::vector<Values> slopes;
    slopes.reserve(scores.size());
    for (const Accumulator& raw : scores) slopes.push_back(cap_slopes(kernel_, spec_, cap_rate_, raw));
    modifiers_.apply(tile, fetched, scores);

    for (int block = 0; block < blocks; ++block) {
      Accumulator gradient = {minus_delta_, matrix_.accumulator_layout()};
      read_ahead(
          spec_.head_dim / 16, ahead(), [&](int dims) { return values_.rows(buffer, block, dims); },
          [&](int dims, const OperandA& values) {
            gradient = matrix_.mma(values, output_gradient_[static_cast<std::size_t>(dims)], gradient);
          });
      const auto index = static_cast<std::size_t>(block);
      for (int r = 0; r < gradient.layout.registers(); ++r) {
        const auto at = static_cast<std::uint64_t>(r);
        Value* weight =
            weight_of(kernel_, ir.CreateExtractElement(scores[index].value, at), modifiers_.softmax_scale(), shift_);
        Value* product = ir.CreateFMul(weight, ir.CreateExtractElement(gradient.value, at));
        if (!slopes[index].empty()) product = ir.CreateFMul(product, slopes[index][at]);
        gradient.value = ir.CreateInsertElement(gradient.value, product, at);
      }
      const std::vector<OperandB> operands = packed(kernel_, matrix_, gradient);
      const int count = dim_blocks();
      read_ahead(
          2 * count, ahead(), [&](int i) { return keys_.columns(buffer, i % count, (2 * block) + (i / count)); },
          [&](int i, const OperandA& keys) {
            Accumulator& sum = sums[static_cast<std::size_t>(i % count)];
            sum = matrix_.mma(keys, operands[static_cast<std::size_t>(i / count)], sum);
          });
    }
  }

  Kernel& kernel_;
  const QueryKernel& spec_;
  language::MatrixUnit matrix_;
  Place place_;
  attention::ScoreModifiers modifiers_;
  Value* cap_rate_;
  RowTilePlan k_plan_;
  RowTilePlan v_plan_;
  language::Lds lds_;
  Slice k_;
  Slice v_;
  RowTile keys_;
  RowTile values_;
  std::vector<OperandB> query_;
  std::vector<OperandB> output_gradient_;
  Value* shift_ = nullptr;
  Value* minus_delta_ = nullptr;
};

}  // namespace

void emit_query_gradient(Kernel& kernel, const QueryKernel& spec) { QueryGradient(kernel, spec).emit(); }

}  // namespace wavejit::attention_backward
