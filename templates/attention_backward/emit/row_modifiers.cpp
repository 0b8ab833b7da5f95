// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_modifiers.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/convert.h"
#include "codegen/language/synchronize.h"
#include "templates/attention/emit/bias.h"
#include "templates/attention/emit/mask.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Value;
using language::Values;

RowModifiers::RowModifiers(Kernel& kernel, const KeyKernel& spec, const KeyPlace& place, Value* cap_rate)
    : kernel_(kernel), spec_(spec), place_(place), cap_rate_(cap_rate) {}

Value* RowModifiers::softmax_scale() const {
  return spec_.modifiers.any() ? kernel_.constant(1.0F) : place_.scale_log2e;
}

// A lane's key in each of its rows: neighbouring lanes read neighbouring elements. 16-bit ones come in pairs, as rows
// begin at whole dwords and are padded to them.
Values RowModifiers::load_bias(Value* head, Value* first_row, const language::AccumulatorLayout& layout) const {
  constexpr int granule = 8;  // elements: rows are padded to it
  llvm::IRBuilder<>& ir = kernel_.ir();
  const DataType type = spec_.bias_type();
  const int element_bytes = attention::bytes_of(type);
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel_.i64()); };
  // Read where it is needed: scalar registers are short, and loads would be moved out of the walk.
  Value* arguments = language::opaque(kernel_, kernel_.argument_address());
  const auto field = [&](std::size_t in_scores, llvm::Type* of) {
    return kernel_.load_scalar(ir.CreateAdd(arguments, ir.getInt64(offsetof(Arguments, scores) + in_scores)), of);
  };
  Value* row_stride = field(offsetof(attention::ScoreArguments, bias_row_stride), kernel_.i32());
  Value* base = field(offsetof(attention::ScoreArguments, bias), kernel_.i64());
  base = ir.CreateAdd(base, ir.CreateMul(wide(place_.batch),
                                         field(offsetof(attention::ScoreArguments, bias_batch_stride), kernel_.i64())));
  base = ir.CreateAdd(
      base, ir.CreateMul(wide(head), field(offsetof(attention::ScoreArguments, bias_head_stride), kernel_.i64())));
  base = ir.CreateAdd(base, ir.CreateMul(wide(place_.sequence.query_start), wide(row_stride)));
  Value* keys =
      kernel_.load_scalar(ir.CreateAdd(arguments, ir.getInt64(offsetof(Arguments, seen.key_length))), kernel_.i32());
  Value* row_bytes =
      ir.CreateMul(ir.CreateAnd(ir.CreateAdd(keys, kernel_.constant(granule - 1)), kernel_.constant(-granule)),
                   kernel_.constant(element_bytes));
  Value* other_rows = ir.CreateSub(place_.sequence.query_length, kernel_.constant(1));
  const language::Buffer rows(kernel_, base, ir.CreateAdd(ir.CreateMul(other_rows, row_stride), row_bytes));
  const LaneKey own = lane_key(kernel_, place_);
  Value* first = ir.CreateAdd(first_row, ir.CreateMul(own.lane_group, kernel_.constant(layout.row_block)));
  Value* in_row = ir.CreateAnd(ir.CreateMul(own.key, kernel_.constant(element_bytes)),
                               kernel_.constant(-static_cast<int>(sizeof(float))));
  // Keys beyond the sequence are hidden, whatever comes of it; their place may be in the next row.
  Value* is_second = ir.CreateICmpNE(ir.CreateAnd(own.key, kernel_.constant(1)), kernel_.constant(0));
  Values loaded;
  for (int r = 0; r < layout.registers(); ++r) {
    Value* row = ir.CreateAdd(first, kernel_.constant(layout.row_of_register(r)));
    Value* dword = rows.load(sizeof(float), ir.CreateAdd(ir.CreateMul(row, row_stride), in_row), kernel_.constant(0));
    if (type == DataType::fp32) {
      loaded.push_back(ir.CreateBitCast(dword, kernel_.f32()));
      continue;
    }
    constexpr int half_bits = 16;
    Value* high = ir.CreateAnd(dword, ir.getInt32(0xFFFF0000));
    Value* low = ir.CreateShl(dword, half_bits);
    Value* bits = ir.CreateSelect(is_second, high, low);
    if (type == DataType::bf16) {
      loaded.push_back(ir.CreateBitCast(bits, kernel_.f32()));
    } else {
      Value* half = ir.CreateTrunc(ir.CreateLShr(bits, half_bits), kernel_.i16());
      loaded.push_back(ir.CreateFPExt(ir.CreateBitCast(half, llvm::Type::getHalfTy(kernel_.context())), kernel_.f32()));
    }
  }
  return loaded;
}

void RowModifiers::apply(Value* head, Value* first_row, language::Accumulator& scores) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (spec_.modifiers.any()) {
    const auto argument = [&](std::size_t field) { return offsetof(Arguments, scores) + field; };
    Value* cap = nullptr;
    Value* minus_two_cap = nullptr;
    if (spec_.has(Modifier::softcap)) {
      cap = kernel_.argument_f32(argument(offsetof(attention::ScoreArguments, softcap_log2e)));
      minus_two_cap = ir.CreateFMul(cap, kernel_.constant(-2.0F));
    }
    Value* minus_slope = nullptr;
    Value* distance = nullptr;  // of the first row of the lane's group
    if (spec_.has(Modifier::alibi)) {
      const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel_.i64()); };
      Value* slope = kernel_.argument_i64(argument(offsetof(attention::ScoreArguments, alibi)));
      slope = ir.CreateAdd(
          slope, ir.CreateMul(wide(place_.batch),
                              kernel_.argument_i64(argument(offsetof(attention::ScoreArguments, alibi_batch_stride)))));
      slope = kernel_.load_scalar(ir.CreateAdd(slope, ir.CreateShl(wide(head), 2)), kernel_.f32());
      minus_slope = kernel_.uniform(attention::minus_slope_log2(kernel_, slope));
      const LaneKey own = lane_key(kernel_, place_);
      Value* row = ir.CreateAdd(first_row, ir.CreateMul(own.lane_group, kernel_.constant(scores.layout.row_block)));
      distance = ir.CreateSub(ir.CreateSub(own.key, place_.limits.diagonal), row);
    }
    const Values bias = spec_.has(Modifier::bias) ? load_bias(head, first_row, scores.layout) : Values{};
    Value* limit =
        spec_.has(Modifier::bias) ? attention::limit_of_bias(kernel_, spec_.bias_type(), language::opaque) : nullptr;
    const auto fused = [&](Value* a, Value* b, Value* c) {
      return ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {a, b, c});
    };
    for (int r = 0; r < scores.layout.registers(); ++r) {
      Value* x = ir.CreateExtractElement(scores.value, static_cast<std::uint64_t>(r));
      if (spec_.has(Modifier::softcap)) {
        Value* power = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {ir.CreateFMul(x, cap_rate_)});
        Value* share = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel_.f32()},
                                          {ir.CreateFAdd(power, kernel_.constant(1.0F))});
        x = fused(share, minus_two_cap, cap);
      } else {
        x = ir.CreateFMul(x, place_.scale_log2e);
      }
      if (spec_.has(Modifier::bias)) x = attention::with_bias(kernel_, bias[static_cast<std::size_t>(r)], limit, x);
      if (spec_.has(Modifier::alibi)) {
        // Exact below 2²⁴, in whichever order it is come by.
        Value* keys =
            ir.CreateSIToFP(ir.CreateSub(distance, kernel_.constant(scores.layout.row_of_register(r))), kernel_.f32());
        x = fused(ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, keys), minus_slope, x);
      }
      scores.value = ir.CreateInsertElement(scores.value, x, static_cast<std::uint64_t>(r));
    }
  }
  attention::hide_rows(kernel_, place_.limits, place_.first_key, first_row, scores);
}

}  // namespace wavejit::attention_backward
