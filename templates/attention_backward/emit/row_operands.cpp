// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_operands.h"

#include <functional>
#include <limits>

#include "codegen/language/control.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention/emit/query.h"
#include "templates/attention_backward/emit/row_numbers.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using attention::QueryTile;
using attention::Slice;
using language::Value;
using language::Values;

Slice RowReader::rows_of(std::size_t at, int dims, int element_bytes, Value* are) const {
  return attention::slice_of(kernel_, tensor_fields(at), place_.queries.front().batch,
                             place_.queries.front().query_head, place_.sequence.query_start,
                             kernel_.ir().CreateAnd(place_.sequence.query_length, are), dims * element_bytes);
}

RowOperands RowReader::load(const QueryTile& queries) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  RowOperands rows;
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
  Value* log_sum_exp = number(numbers(offsetof(Arguments, lse)));
  rows.shift = shift_of(kernel_, log_sum_exp);
  rows.query = attention::query_operands(kernel_, queries, matrix_, q);
  for (Value* dwords : d_o) rows.output_gradient.push_back(matrix_.operand_b(dwords, language::KOrder::contiguous));

  Value* delta = delta_of(o, d_o);
  const auto where_given = [&](std::size_t at, const std::function<Value*(Value * sum, Value * given)>& change) {
    delta = language::if_uniform(kernel_, is_given(at), language::Likelihood::even, {delta},
                                 [&](const Values& sum) { return Values{change(sum[0], number(numbers(at)))}; })[0];
  };
  where_given(offsetof(Arguments, given_delta), [](Value*, Value* given) { return given; });
  // What stands in O of a row that saw no key does not matter, and may be NaN: its weights are 0, and 0 · NaN is NaN.
  Value* saw_none = ir.CreateFCmpOEQ(log_sum_exp, kernel_.constant(-std::numeric_limits<float>::infinity()));
  delta = ir.CreateSelect(saw_none, kernel_.constant(0.0F), delta);
  where_given(offsetof(Arguments, d_lse), [&](Value* sum, Value* given) { return ir.CreateFSub(sum, given); });
  delta = language::with_short_nan(kernel_, delta);
  // One lane of the two that own a row writes; the other points far outside and is dropped.
  Value* writes = ir.CreateICmpEQ(queries.lane_group, kernel_.constant(0));
  numbers(offsetof(Arguments, delta))
      .store(ir.CreateBitCast(delta, kernel_.i32()), ir.CreateSelect(writes, place, ir.getInt32(0x80000000)),
             kernel_.constant(0));
  rows.minus_delta = ir.CreateFNeg(delta);
  if (!deltas_made_anew(spec_))
    rows.minus_delta =
        ir.CreateVectorSplat(static_cast<unsigned>(matrix_.accumulator_layout().registers()), rows.minus_delta);
  return rows;
}

Value* RowReader::is_given(std::size_t at) const {
  return kernel_.ir().CreateIsNotNull(kernel_.argument_i64(at + offsetof(RowNumbersArgument, pointer)));
}

// O of the lane's row, as load_query has it; of f32, 8 dims are two loads. With a delta that is given, zeros.
Values RowReader::load_outputs(const QueryTile& queries) const {
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

// An element of the block's 8 dims that the lane has.
Value* RowReader::output_element(const Values& o, std::size_t block, int index) const {
  if (!spec_.output_fp32) return element(o[block], index);
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* four = o[(2 * block) + static_cast<std::size_t>(index / 4)];
  return ir.CreateBitCast(ir.CreateExtractElement(four, static_cast<std::uint64_t>(index % 4)), kernel_.f32());
}

Value* RowReader::element(Value* dwords, int index) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (spec_.dtype == DataType::fp16) {
    Value* halves = ir.CreateBitCast(dwords, kernel_.vector(llvm::Type::getHalfTy(kernel_.context()), 8));
    return ir.CreateFPExt(ir.CreateExtractElement(halves, static_cast<std::uint64_t>(index)), kernel_.f32());
  }
  Value* dword = ir.CreateExtractElement(dwords, static_cast<std::uint64_t>(index / 2));
  return language::float_of_bf16(kernel_, dword, index % 2);
}

// Σ dO · O: eight chains of dims 8 apart, of this half of the wave; then their tree; then the other half's.
Value* RowReader::delta_of(const Values& o, const Values& d_o) const {
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

}  // namespace wavejit::attention_backward
