// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/row_modifiers.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <numbers>

#include "templates/attention/emit/mask.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Value;

RowModifiers::RowModifiers(Kernel& kernel, const KeyKernel& spec, const KeyPlace& place, Value* cap_rate)
    : kernel_(kernel), spec_(spec), place_(place), cap_rate_(cap_rate) {}

Value* RowModifiers::softmax_scale() const {
  return spec_.modifiers.any() ? kernel_.constant(1.0F) : place_.scale_log2e;
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
      minus_slope = kernel_.uniform(ir.CreateFMul(slope, kernel_.constant(-std::numbers::log2e_v<float>)));
      const LaneKey own = lane_key(kernel_, place_);
      Value* row = ir.CreateAdd(first_row, ir.CreateMul(own.lane_group, kernel_.constant(scores.layout.row_block)));
      distance = ir.CreateSub(ir.CreateSub(own.key, place_.limits.diagonal), row);
    }
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
