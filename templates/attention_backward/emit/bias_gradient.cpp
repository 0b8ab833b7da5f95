// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/bias_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/matrix.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/modifiers.h"
#include "templates/attention/emit/query.h"
#include "templates/attention/emit/scale.h"
#include "templates/attention_backward/emit/fields.h"
#include "templates/attention_backward/emit/row_numbers.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {
namespace {

using attention::maximum;
using attention::minimum;
using attention::QueryTile;
using attention::Sequence;
using attention::Slice;
using language::Accumulator;
using language::Element;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int bias_tile_keys = attention::tile_keys;

class BiasGradient {
 public:
  BiasGradient(Kernel& kernel, const BiasKernel& spec)
      : kernel_(kernel),
        spec_(spec),
        wave_(language::wave_shape(kernel)),
        matrix_(kernel, wave_.rows, wave_.rows, spec.dtype == DataType::bf16 ? Element::bf16 : Element::fp16),
        lane_row_(language::row_of_lane(kernel, kernel.lane())),
        lane_group_(language::group_of_lane(kernel, kernel.lane())),
        wave_number_(kernel.wave()),
        head_(kernel.workgroup_y()),
        batch_(kernel.workgroup_z()) {}

  void emit() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    find_tile();
    Value* heads = argument(offsetof(BiasGradientArgument, heads));
    Value* count = ir.CreateMul(argument(offsetof(BiasGradientArgument, batches)), heads);
    Values initial = {kernel_.constant(0)};
    for (int part = 0; part < parts(); ++part) initial.push_back(matrix_.zeros().value);
    const Values end = language::loop_in_phases(
        kernel_, 1, initial,
        [&](int, const Values& state) {
          Value* number = kernel_.uniform(state[0]);
          Value* batch = ir.CreateAdd(batch_, ir.CreateUDiv(number, heads));
          Value* head = ir.CreateAdd(head_, ir.CreateURem(number, heads));
          Values after =
              with_head(kernel_.uniform(batch), kernel_.uniform(head), Values(state.begin() + 1, state.end()));
          after.insert(after.begin(), ir.CreateAdd(number, kernel_.constant(1)));
          return after;
        },
        [&](const Values& state) { return ir.CreateICmpSLT(state[0], count); });
    store(Values(end.begin() + 1, end.end()));
  }

 private:
  int parts() const { return bias_tile_keys / wave_.rows; }
  Value* argument(std::size_t field) { return kernel_.argument_i32(offsetof(Arguments, d_bias) + field); }

  // Tiles of a bias: keys of a row of tiles first.
  void find_tile() {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* keys = maximum(kernel_, kernel_.argument_i32(offsetof(Arguments, seen.key_length)), kernel_.constant(1));
    Value* key_tiles =
        ir.CreateUDiv(ir.CreateAdd(keys, kernel_.constant(bias_tile_keys - 1)), kernel_.constant(bias_tile_keys));
    tile_ = kernel_.uniform(ir.CreateURem(kernel_.workgroup_x(), key_tiles));
    Value* row_tile = ir.CreateUDiv(kernel_.workgroup_x(), key_tiles);
    first_row_ = kernel_.uniform(ir.CreateMul(row_tile, kernel_.constant(tile_queries_of(spec_))));
    first_row_of_wave_ = ir.CreateAdd(first_row_, ir.CreateMul(wave_number_, kernel_.constant(wave_.rows)));
    // Where it stands: of the batch and head that the workgroup begins with. Packed rows of another sequence are
    // another workgroup's.
    sequence_ = attention::sequence_of(kernel_, length_fields, batch_);
    language::leave_if(kernel_, ir.CreateICmpSGE(first_row_, sequence_.query_length));
  }

  // Sums of the tile with the terms of one head.
  Values with_head(Value* batch, Value* head, const Values& sums) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const Sequence sequence = attention::sequence_of(kernel_, length_fields, batch);
    const QueryTile queries = queries_of(batch, head, sequence);
    // In a tile that no row sees all terms are 0.
    Value* last_row = minimum(kernel_, ir.CreateAdd(first_row_, kernel_.constant(tile_queries_of(spec_) - 1)),
                              ir.CreateSub(sequence.query_length, kernel_.constant(1)));
    Value* last_key = queries.last_key;
    if (queries.limit_offset) last_key = minimum(kernel_, ir.CreateAdd(last_row, queries.limit_offset), last_key);
    Value* first_of_tile = ir.CreateMul(tile_, kernel_.constant(bias_tile_keys));
    Value* sees = ir.CreateICmpSLE(first_of_tile, last_key);
    if (queries.begin_offset) {
      Value* last_of_tile = ir.CreateAdd(first_of_tile, kernel_.constant(bias_tile_keys - 1));
      sees = ir.CreateAnd(sees, ir.CreateICmpSGE(last_of_tile, ir.CreateAdd(first_row_, queries.begin_offset)));
    }
    return language::if_uniform(kernel_, sees, language::Likelihood::even, sums,
                                [&](const Values& before) { return with_terms(queries, sequence, before); });
  }

  QueryTile queries_of(Value* batch, Value* head, const Sequence& sequence) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const attention::KeyLimits limits = attention::key_limits(kernel_, spec_.mask, spec_.has(Modifier::alibi),
                                                              diagonal_fields, window_fields, sequence);
    Value* last_key = ir.CreateSub(sequence.key_length, kernel_.constant(1));
    Value* last_of_wave = ir.CreateAdd(first_row_of_wave_, kernel_.constant(wave_.rows - 1));
    Value* scale = kernel_.argument_i32(offsetof(Arguments, scale_log2e));
    QueryTile queries = {};
    queries.query_head = head;
    queries.batch = batch;
    queries.query_start = sequence.query_start;
    queries.query_length = sequence.query_length;
    queries.scale_log2e = ir.CreateBitCast(attention::positive_scale(kernel_, scale), kernel_.f32());
    queries.query_sign = attention::query_sign(kernel_, scale);
    queries.first_row = first_row_;
    queries.row = ir.CreateAdd(first_row_of_wave_, lane_row_);
    queries.lane_group = lane_group_;
    queries.first_row_of_wave = first_row_of_wave_;
    queries.limit_offset = limits.to_limit;
    queries.last_key = last_key;
    queries.wave_limit =
        limits.to_limit ? minimum(kernel_, ir.CreateAdd(first_row_of_wave_, limits.to_limit), last_key) : last_key;
    queries.begin_offset = limits.to_begin;
    queries.wave_begin = limits.to_begin ? ir.CreateAdd(last_of_wave, limits.to_begin) : nullptr;
    queries.diagonal_offset = spec_.has(Modifier::alibi) ? limits.diagonal : nullptr;
    return queries;
  }

  // As attention::slice_of, from arguments read anew.
  Value* read_anew(std::size_t at, llvm::Type* type) {
    return kernel_.load_scalar(kernel_.ir().CreateAdd(arguments_, kernel_.ir().getInt64(at)), type);
  }
  Value* address_of(std::size_t pointer, std::size_t batch_stride, std::size_t head_stride, Value* batch, Value* head) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const auto step = [&](Value* index, std::size_t at) {
      return ir.CreateMul(ir.CreateZExt(index, kernel_.i64()), read_anew(at, kernel_.i64()));
    };
    return ir.CreateAdd(ir.CreateAdd(read_anew(pointer, kernel_.i64()), step(batch, batch_stride)),
                        step(head, head_stride));
  }
  Slice slice_of(std::size_t at, int dims, Value* batch, Value* head, Value* first, Value* rows) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    const attention::TensorFields fields = tensor_fields(at);
    Value* row_stride = read_anew(fields.row_stride, kernel_.i32());
    Value* base = address_of(fields.pointer, fields.batch_stride, fields.head_stride, batch, head);
    base =
        ir.CreateAdd(base, ir.CreateMul(ir.CreateZExt(first, kernel_.i64()), ir.CreateZExt(row_stride, kernel_.i64())));
    const int row_bytes = dims * attention::bytes_of(spec_.dtype);
    return {.buffer = language::Buffer(kernel_, base, language::slice_bytes(kernel_, rows, row_stride, row_bytes)),
            .row_stride = row_stride};
  }

  Values with_terms(const QueryTile& queries, const Sequence& sequence, const Values& sums) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    // Read in every round: kept through the walk, where tensors lie would take more scalar registers than there are.
    arguments_ = language::opaque(kernel_, kernel_.argument_address());
    const auto of_rows = [&](std::size_t at, int dims) {
      const Slice slice =
          slice_of(at, dims, queries.batch, queries.query_head, sequence.query_start, sequence.query_length);
      return attention::load_query(kernel_, dims, slice, queries);
    };
    const std::vector<language::OperandB> query =
        attention::query_operands(kernel_, queries, matrix_, of_rows(offsetof(Arguments, q), spec_.head_dim_qk));
    const Values output_gradient = of_rows(offsetof(Arguments, d_o), spec_.head_dim_v);
    Value* place = ir.CreateShl(queries.row, 2);
    const auto number = [&](std::size_t at) {
      Value* base =
          address_of(at + offsetof(RowNumbersArgument, pointer), at + offsetof(RowNumbersArgument, batch_stride),
                     at + offsetof(RowNumbersArgument, head_stride), queries.batch, queries.query_head);
      base = ir.CreateAdd(base, ir.CreateShl(ir.CreateZExt(sequence.query_start, kernel_.i64()), 2));
      const language::Buffer numbers(kernel_, base, ir.CreateShl(sequence.query_length, 2));
      return ir.CreateBitCast(numbers.load(4, place, kernel_.constant(0)), kernel_.f32());
    };
    Value* shift = shift_of(kernel_, number(offsetof(Arguments, lse)));
    Value* minus_delta = ir.CreateFNeg(number(offsetof(Arguments, delta)));
    const attention::ScoreModifiers modifiers(kernel_, spec_.modifiers, spec_.bias_type(), score_fields, queries);
    const Values fetched = modifiers.fetch(tile_);
    Value* kv_head =
        attention::divided(kernel_, queries.query_head, kernel_.argument_i32(offsetof(Arguments, kv_head_multiplier)));
    const int registers = matrix_.accumulator_layout().registers();
    Values after;
    for (int part = 0; part < parts(); ++part) {
      QueryTile as_rows = {};
      as_rows.row = ir.CreateAdd(ir.CreateMul(tile_, kernel_.constant(bias_tile_keys)),
                                 ir.CreateAdd(lane_row_, kernel_.constant(part * wave_.rows)));
      as_rows.lane_group = lane_group_;
      const auto of_keys = [&](std::size_t at, int dims) {
        const Slice slice = slice_of(at, dims, queries.batch, kv_head, sequence.key_start, sequence.key_length);
        return attention::load_query(kernel_, dims, slice, as_rows);
      };
      const Values keys = of_keys(offsetof(Arguments, k), spec_.head_dim_qk);
      const Values values = of_keys(offsetof(Arguments, v), spec_.head_dim_v);
      Accumulator scores = matrix_.zeros();
      Accumulator gradients = {ir.CreateVectorSplat(static_cast<unsigned>(registers), minus_delta),
                               matrix_.accumulator_layout()};
      for (std::size_t dims = 0; dims < keys.size(); ++dims)
        scores = matrix_.mma(matrix_.operand_a(keys[dims], language::KOrder::contiguous), query[dims], scores);
      for (std::size_t dims = 0; dims < values.size(); ++dims)
        gradients = matrix_.mma(matrix_.operand_a(values[dims], language::KOrder::contiguous),
                                matrix_.operand_b(output_gradient[dims], language::KOrder::contiguous), gradients);
      modifiers.apply(tile_, fetched, {&scores, 1}, static_cast<std::size_t>(part));
      Value* sum = sums[static_cast<std::size_t>(part)];
      for (int r = 0; r < registers; ++r) {
        const auto at = static_cast<std::uint64_t>(r);
        Value* weight = weight_of(kernel_, ir.CreateExtractElement(scores.value, at), kernel_.constant(1.0F), shift);
        Value* term = ir.CreateFMul(weight, ir.CreateExtractElement(gradients.value, at));
        sum = ir.CreateInsertElement(sum, ir.CreateFAdd(ir.CreateExtractElement(sum, at), term), at);
      }
      after.push_back(sum);
    }
    return after;
  }

  // ---- The way out: a lane has four neighbouring keys of its row in four registers, of four or eight. Where a tile
  // reaches beyond the keys, one by one.

  void store(const Values& sums) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    constexpr int block = 4;
    const int element_bytes = spec_.gradients_fp32 ? static_cast<int>(sizeof(float)) : attention::bytes_of(spec_.dtype);
    Value* keys = kernel_.argument_i32(offsetof(Arguments, seen.key_length));
    Value* row_stride = argument(offsetof(BiasGradientArgument, row_stride));
    const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel_.i64()); };
    const auto field = [&](std::size_t at) { return kernel_.argument_i64(offsetof(Arguments, d_bias) + at); };
    Value* base = field(offsetof(BiasGradientArgument, pointer));
    base = ir.CreateAdd(base, ir.CreateMul(wide(batch_), field(offsetof(BiasGradientArgument, batch_stride))));
    base = ir.CreateAdd(base, ir.CreateMul(wide(head_), field(offsetof(BiasGradientArgument, head_stride))));
    base = ir.CreateAdd(base, ir.CreateMul(wide(sequence_.query_start), wide(row_stride)));
    Value* bytes = ir.CreateAdd(ir.CreateMul(ir.CreateSub(sequence_.query_length, kernel_.constant(1)), row_stride),
                                ir.CreateMul(keys, kernel_.constant(element_bytes)));
    const language::Buffer to(kernel_, base, bytes);
    Value* first_key = ir.CreateAdd(ir.CreateMul(tile_, kernel_.constant(bias_tile_keys)),
                                    ir.CreateMul(lane_group_, kernel_.constant(kernel_.target().row_block)));
    Value* row = ir.CreateAdd(first_row_of_wave_, lane_row_);
    Value* has_row = ir.CreateICmpSLT(row, sequence_.query_length);
    Value* place =
        ir.CreateAdd(ir.CreateMul(row, row_stride), ir.CreateMul(first_key, kernel_.constant(element_bytes)));
    Value* far_outside = ir.getInt32(0x80000000);
    const language::AccumulatorLayout layout = matrix_.accumulator_layout();
    const auto for_each_block = [&](const auto& put) {
      for (int part = 0; part < parts(); ++part)
        for (int r = 0; r < layout.registers(); r += block)
          put(dwords_of(sums[static_cast<std::size_t>(part)], r, block),
              (part * wave_.rows) + layout.row_of_register(r));
    };
    Value* end = ir.CreateMul(ir.CreateAdd(tile_, kernel_.constant(1)), kernel_.constant(bias_tile_keys));
    Value* whole = ir.CreateICmpSLE(end, keys);
    language::if_uniform(kernel_, whole, language::Likelihood::even, [&] {
      for_each_block([&](Value* dwords, int key) {
        Value* at = ir.CreateAdd(place, kernel_.constant(key * element_bytes));
        to.store(dwords, ir.CreateSelect(has_row, at, far_outside), kernel_.constant(0));
      });
    });
    language::if_uniform(kernel_, ir.CreateNot(whole), language::Likelihood::rarely, [&] {
      for_each_block([&](Value* dwords, int key) {
        for (int i = 0; i < block; ++i) {
          Value* counts =
              ir.CreateAnd(has_row, ir.CreateICmpSLT(ir.CreateAdd(first_key, kernel_.constant(key + i)), keys));
          Value* at = ir.CreateAdd(place, kernel_.constant((key + i) * element_bytes));
          to.store(element_of(dwords, i), ir.CreateSelect(counts, at, far_outside), kernel_.constant(0));
        }
      });
    });
  }

  Value* dwords_of(Value* sum, int r, int count) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (spec_.gradients_fp32)
      return ir.CreateBitCast(ir.CreateShuffleVector(sum, {r, r + 1, r + 2, r + 3}),
                              kernel_.vector(kernel_.i32(), count));
    return language::gather_dwords(
        kernel_, language::convert_packed(kernel_, sum, r, count, matrix_.element(), language::NanInput::kept));
  }
  // 4 bytes, or 2.
  Value* element_of(Value* dwords, int i) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    if (spec_.gradients_fp32) return ir.CreateExtractElement(dwords, static_cast<std::uint64_t>(i));
    Value* halves = ir.CreateBitCast(dwords, kernel_.vector(kernel_.i16(), 4));
    return ir.CreateExtractElement(halves, static_cast<std::uint64_t>(i));
  }

  Kernel& kernel_;
  const BiasKernel& spec_;
  targets::WaveShape wave_;
  language::MatrixUnit matrix_;
  Value* lane_row_;
  Value* lane_group_;
  Value* wave_number_;
  Value* head_;
  Value* batch_;
  Value* tile_ = nullptr;  // of 64 keys
  Value* first_row_ = nullptr;
  Value* first_row_of_wave_ = nullptr;
  Sequence sequence_ = {};
  Value* arguments_ = nullptr;  // where they are, of this round
};

}  // namespace

void emit_bias_gradient(Kernel& kernel, const BiasKernel& spec) { BiasGradient(kernel, spec).emit(); }

}  // namespace wavejit::attention_backward
