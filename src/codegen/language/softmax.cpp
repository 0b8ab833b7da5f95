// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/softmax.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <limits>
#include <numbers>

#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"

namespace wavejit::language {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// Neighbouring terms of vectors that are equally long, as one value: a whole vector, a part of one, or one element.
Value* neighbours(Kernel& kernel, const Values& vectors, int first, int count) {
  Value* vector = vectors.front();
  if (vectors.size() > 1) {
    const auto length = static_cast<int>(llvm::cast<llvm::FixedVectorType>(vector->getType())->getNumElements());
    vector = vectors[static_cast<std::size_t>(first / length)];
    if (count == length) return vector;
    first %= length;
  }
  if (count == 1) return kernel.ir().CreateExtractElement(vector, static_cast<std::uint64_t>(first));
  llvm::SmallVector<int, 16> elements;
  for (int term = 0; term < count; ++term) elements.push_back(first + term);
  return kernel.ir().CreateShuffleVector(vector, elements);
}

}  // namespace

// The upper half onto the lower half, until one is left.
std::vector<std::vector<Addition>> sum_tree(int terms) {
  std::vector<std::vector<Addition>> levels;
  for (int width = terms / 2; width >= 1; width /= 2) {
    std::vector<Addition>& level = levels.emplace_back();
    for (int term = 0; term < width; ++term) level.push_back({.into = term, .other = term + width});
  }
  return levels;
}

SoftmaxState Softmax::initial() const {
  return {
      .maximum = kernel_.constant(minus_infinity), .shift = kernel_.constant(0.0F), .half_sum = kernel_.constant(0.0F)};
}

Value* Softmax::exp2(Value* value) const {
  return kernel_.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {value});
}

// max(m, scores of the whole row). The maximum of a set is the same in whichever order it is taken; a chain in which
// each step takes two more becomes v_max3_f32 throughout.
Value* Softmax::raised(Value* maximum, std::span<const Accumulator> scores) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto larger = [&](Value* a, Value* b) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b); };
  Value* tile = nullptr;
  for (const Accumulator& part : scores) {
    for (int r = 0; r < part.layout.registers(); ++r) {
      Value* score = ir.CreateExtractElement(part.value, r);
      tile = tile ? larger(tile, score) : score;
    }
  }
  return whole_row(tile, maximum);
}

Value* Softmax::larger(Value* a, Value* b, Value* c) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b), c);
}

Value* Softmax::whole_row(Value* tile_maximum, Value* maximum) const {
  const auto [one, other] = both_halves(kernel_, tile_maximum);
  return larger(one, other, maximum);
}

Value* Softmax::grows(Value* maximum, Value* raised) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // Ordered compare: (−inf) − (−inf) is NaN, and a row that still has seen nothing stays as it is.
  Value* growth = ir.CreateFMul(ir.CreateFSub(raised, maximum), scale_);
  return ir.CreateFCmpOGT(growth, rescale_threshold_);
}

Value* Softmax::new_shift(Value* raised) const {
  return kernel_.ir().CreateFNeg(kernel_.ir().CreateFMul(raised, scale_));
}

Value* Softmax::exponent(Value* score, Value* shift) const {
  return kernel_.ir().CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {score, scale_, shift});
}

// Selected, not computed, where a row does not grow: exactly 1, also where m is −inf.
Value* Softmax::rescale_factor(Value* maximum, Value* raised, Value* grows) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* difference = ir.CreateFMul(ir.CreateFSub(maximum, raised), scale_);
  return ir.CreateSelect(grows, exp2(difference), kernel_.constant(1.0F));
}

Value* Softmax::rescaled(Value* value, Value* factor) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return ir.CreateFMul(value, vector ? ir.CreateVectorSplat(vector->getNumElements(), factor) : factor);
}

Value* Softmax::accumulated(Value* half_sum, Value* tile_sum) const {
  return kernel_.ir().CreateFAdd(half_sum, tile_sum);
}

SoftmaxState Softmax::raise_maximum(const SoftmaxState& state, std::span<const Accumulator> scores,
                                    std::span<Accumulator> outputs) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* raised_maximum = raised(state.maximum, scores);
  Value* grows = this->grows(state.maximum, raised_maximum);

  Values values = {state.maximum, state.shift, state.half_sum};
  for (const Accumulator& output : outputs) values.push_back(output.value);
  values = if_uniform(kernel_, any_lane(kernel_, grows), Likelihood::rarely, values, [&](const Values& before) {
    Value* maximum = ir.CreateSelect(grows, raised_maximum, before[0]);
    Value* factor = rescale_factor(before[0], raised_maximum, grows);
    Values after = {maximum, ir.CreateSelect(grows, new_shift(raised_maximum), before[1]), rescaled(before[2], factor)};
    for (std::size_t index = 3; index < before.size(); ++index) after.push_back(rescaled(before[index], factor));
    return after;
  });
  for (std::size_t index = 0; index < outputs.size(); ++index) outputs[index].value = values[index + 3];
  return {.maximum = values[0], .shift = values[1], .half_sum = values[2]};
}

SoftmaxState Softmax::weigh(const SoftmaxState& state, std::span<Accumulator> scores) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // Register pairs: one packed multiply-add each, the same operation per element. All of a part before its first exp2,
  // which would wait for a neighbour.
  Value* scale_pair = ir.CreateVectorSplat(2, scale_);
  Value* shift_pair = ir.CreateVectorSplat(2, state.shift);
  for (Accumulator& part : scores) {
    std::vector<Value*> pairs;
    for (int r = 0; r < part.layout.registers(); r += 2) {
      Value* pair = ir.CreateShuffleVector(part.value, {r, r + 1});
      pairs.push_back(ir.CreateIntrinsic(llvm::Intrinsic::fma, {pair->getType()}, {pair, scale_pair, shift_pair}));
    }
    Value* weights = llvm::PoisonValue::get(part.value->getType());
    for (int r = 0; r < part.layout.registers(); ++r) {
      Value* exponent = ir.CreateExtractElement(pairs[static_cast<std::size_t>(r / 2)], r % 2);
      weights = ir.CreateInsertElement(weights, exp2(exponent), r);
    }
    part.value = weights;
  }
  // A level's additions are neighbours, so that they can be written as one addition of vectors.
  Values terms;
  for (const Accumulator& part : scores) terms.push_back(part.value);
  for (const std::vector<Addition>& level :
       sum_tree(static_cast<int>(scores.size()) * scores.front().layout.registers())) {
    const auto count = static_cast<int>(level.size());
    Value* into = neighbours(kernel_, terms, level.front().into, count);
    Value* other = neighbours(kernel_, terms, level.front().other, count);
    terms = {ir.CreateFAdd(into, other)};
  }
  SoftmaxState next = state;
  next.half_sum = accumulated(state.half_sum, terms.front());
  return next;
}

Value* Softmax::row_sum(const SoftmaxState& state) const {
  const auto [one, other] = both_halves(kernel_, state.half_sum);
  return kernel_.ir().CreateFAdd(one, other);
}

Value* Softmax::inverse(Value* row_sum) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* reciprocal = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel_.f32()}, {row_sum});
  Value* zero = kernel_.constant(0.0F);
  return ir.CreateSelect(ir.CreateFCmpOEQ(row_sum, zero), zero, reciprocal);
}

Value* Softmax::log_sum_exp(const SoftmaxState& state, Value* row_sum) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // log2(0) is −inf and m of an empty row is −inf with c > 0: −inf comes out by itself.
  Value* log2_sum = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_log, {kernel_.f32()}, {row_sum});
  Value* log2 = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {state.maximum, scale_, log2_sum});
  return ir.CreateFMul(log2, kernel_.constant(std::numbers::ln2_v<float>));
}

Value* Softmax::scaled_maximum(const SoftmaxState& state) const {
  return kernel_.ir().CreateFMul(state.maximum, scale_);
}

RowEnd end_with_sink(Kernel& kernel, Value* scaled_maximum, Value* row_sum, Value* sink) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto intrinsic = [&](llvm::Intrinsic::ID which, Value* value) {
    return ir.CreateIntrinsic(which, {kernel.f32()}, {value});
  };
  const auto larger = [&](Value* a, Value* b) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b); };
  Value* zero = kernel.constant(0.0F);
  Value* sink_log2 = ir.CreateFMul(sink, kernel.constant(std::numbers::log2e_v<float>));
  // Finite, so that neither difference is −inf − −inf.
  Value* maximum = larger(larger(scaled_maximum, sink_log2), kernel.constant(std::numeric_limits<float>::lowest()));
  Value* share = intrinsic(llvm::Intrinsic::amdgcn_exp2, ir.CreateFSub(scaled_maximum, maximum));
  Value* sink_weight = intrinsic(llvm::Intrinsic::amdgcn_exp2, ir.CreateFSub(sink_log2, maximum));
  Value* sum = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {row_sum, share, sink_weight});
  Value* factor = ir.CreateFMul(share, intrinsic(llvm::Intrinsic::amdgcn_rcp, sum));
  Value* log2 = ir.CreateFAdd(maximum, intrinsic(llvm::Intrinsic::amdgcn_log, sum));
  Value* log_sum_exp = ir.CreateFMul(log2, kernel.constant(std::numbers::ln2_v<float>));
  // A row that saw no key: exactly the sink.
  return {.factor = ir.CreateSelect(ir.CreateFCmpOEQ(sum, zero), zero, factor),
          .log_sum_exp = ir.CreateSelect(ir.CreateFCmpOEQ(row_sum, zero), sink, log_sum_exp)};
}

}  // namespace wavejit::language
