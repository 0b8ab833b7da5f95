// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/softmax.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <algorithm>
#include <limits>
#include <numbers>

#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/synchronize.h"

namespace wavejit::language {
namespace {

constexpr float minus_infinity = -std::numeric_limits<float>::infinity();

// The offset of weights in 8 bits, in powers of two. The largest is below 8 + 0.5 and what f32 adds to it: 362.1 of
// 448. A half is a constant that an instruction holds.
constexpr float byte_offset = 8;
constexpr float byte_headroom = 0.5F;
// A score's product with c and the shift are rounded, each by 2⁻²⁴ of it at most; N is so much larger that no weight
// is.
constexpr float byte_margin = 0x1p-22F;
constexpr float no_power = -std::numeric_limits<float>::max();  // of a row that has seen no key
// Within f32: a sum of 2³¹ products below 448² is below 2⁴⁹.
constexpr float furthest_power = 0x1p6F;
// Added to a whole number it leaves that and e8m0's bias in the lowest byte, and the bias alone in the next one.
constexpr float scale_in_lowest_byte = 0x1p23F + 0x7F7F;

}  // namespace

// Register r of accumulator a holds key 32a + 8⌊r / 4⌋ + 4h + r mod 4; of four accumulators in blocks of eight key 16a
// + 8h + r: bits 2 and 3 of the key then have each other's places in a lane.
std::vector<std::vector<Addition>> sum_tree(int registers) {
  std::vector<std::vector<Addition>> levels(3);
  for (int r = 0; r < registers; ++r) {
    levels[0].push_back({.into = r, .other = r + registers});
    if (r % 4 < 2) levels[1].push_back({.into = r, .other = r + 2});
    if (r % 4 == 0) levels[2].push_back({.into = r, .other = r + 1});
  }
  return levels;
}

Softmax::Softmax(Kernel& kernel, Value* scale_log2e, Value* rescale_threshold, WeightType weights)
    : kernel_(kernel), scale_(scale_log2e), rescale_threshold_(rescale_threshold), weights_(weights) {
  if (weights == WeightType::bytes) least_ = opaque_constant(kernel, kernel.constant(minus_infinity));
}

SoftmaxState Softmax::initial() const {
  const bool bytes = weights_ == WeightType::bytes;
  SoftmaxState state{.maximum = kernel_.constant(bytes ? no_power : minus_infinity),
                     .sums = RunningSums(bytes ? 1 : running_sums)};
  state.sums.fill(kernel_.constant(0.0F));
  if (bytes) state.scale = kernel_.constant(scale_in_lowest_byte);
  return state;
}

Value* Softmax::exp2(Value* value) const {
  return kernel_.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {value});
}

// The maximum of a set is the same in whichever order it is taken; a chain in which each step takes two more becomes
// v_max3_f32 throughout.
Value* Softmax::largest(std::span<const Accumulator> scores) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto larger = [&](Value* a, Value* b) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b); };
  Value* tile = nullptr;
  for (const Accumulator& part : scores) {
    for (int r = 0; r < part.layout.registers(); ++r) {
      Value* score = ir.CreateExtractElement(part.value, r);
      tile = tile ? larger(tile, score) : score;
    }
  }
  return tile;
}

// max(m, scores of the whole row).
Value* Softmax::raised(Value* maximum, std::span<const Accumulator> scores) const {
  return whole_row(largest(scores), maximum);
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

// Where the row saw no key, every score is −inf, and any finite shift leaves it so; ∞ would not.
Value* Softmax::shift(Value* maximum) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (weights_ == WeightType::bytes) return ir.CreateFSub(kernel_.constant(byte_offset), maximum);
  Value* largest = kernel_.constant(std::numeric_limits<float>::max());
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::minnum, ir.CreateFNeg(ir.CreateFMul(maximum, scale_)), largest);
}

void Softmax::multiply(PowerSteps& steps, Value* one_half, Value* other_half) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* largest = larger(least_, one_half, other_half);
  steps.product =
      ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {largest, scale_, kernel_.constant(-byte_headroom)});
}

void Softmax::add_margin(PowerSteps& steps) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* magnitude = ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, steps.product);
  steps.above = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()},
                                   {magnitude, kernel_.constant(byte_margin), steps.product});
}

void Softmax::round_up(PowerSteps& steps) const {
  steps.whole = kernel_.ir().CreateUnaryIntrinsic(llvm::Intrinsic::ceil, steps.above);
}

// The margin of a tile without a visible key is ∞ − ∞, NaN, which a maximum ignores.
Value* Softmax::power(const PowerSteps& steps, Value* power) const { return larger(least_, steps.whole, power); }

SoftmaxState Softmax::scaled(const SoftmaxState& state, Value* before, std::span<Accumulator> outputs) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* scale = ir.CreateFAdd(state.scale, ir.CreateFSub(state.maximum, before));
  Value* leaves = ir.CreateFCmpOGT(scale, kernel_.constant(scale_in_lowest_byte + furthest_power));
  // Zeros of before the first tile stay what they are.
  const auto is_zero = [](const Value* value) { return llvm::isa<llvm::Constant>(value); };
  Values values = {scale};
  values.insert(values.end(), state.sums.begin(), state.sums.end());
  for (const Accumulator& output : outputs) values.push_back(output.value);
  values = if_uniform(kernel_, any_lane(kernel_, leaves), Likelihood::rarely, values, [&](const Values& from) {
    Value* start = kernel_.constant(scale_in_lowest_byte);
    Value* factor = ir.CreateSelect(leaves, exp2(ir.CreateFSub(start, from[0])), kernel_.constant(1.0F));
    Values after = {ir.CreateSelect(leaves, start, from[0])};
    for (std::size_t each = after.size(); each < from.size(); ++each)
      after.push_back(is_zero(from[each]) ? from[each] : rescaled(from[each], factor));
    return after;
  });
  SoftmaxState next = state;
  next.scale = values[0];
  std::copy_n(values.begin() + 1, state.sums.size(), next.sums.begin());
  for (std::size_t index = 0; index < outputs.size(); ++index)
    outputs[index].value = values[index + 1 + state.sums.size()];
  return next;
}

PartStatistics Softmax::whole_of(const SoftmaxState& state) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (weights_ == WeightType::wide) return {.maximum = state.maximum, .sum = row_sum(state)};
  Value* distance = ir.CreateFSub(state.scale, kernel_.constant(scale_in_lowest_byte));
  return {.maximum = ir.CreateFSub(state.maximum, distance), .sum = row_sum(state)};
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

Value* Softmax::accumulated(Value* running, Value* tile_sum) const {
  return kernel_.ir().CreateFAdd(running, tile_sum);
}

SoftmaxState Softmax::raise_maximum(const SoftmaxState& state, std::span<const Accumulator> scores,
                                    std::span<Accumulator> outputs, const Rescale& rescale) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  if (weights_ == WeightType::bytes) {
    const auto [one, other] = both_halves(kernel_, largest(scores));
    PowerSteps steps;
    multiply(steps, one, other);
    add_margin(steps);
    round_up(steps);
    SoftmaxState raised = state;
    raised.maximum = power(steps, state.maximum);
    return scaled(raised, state.maximum, outputs);
  }
  Value* raised_maximum = raised(state.maximum, scores);
  Value* grows = this->grows(state.maximum, raised_maximum);

  Values values = {state.maximum};
  values.insert(values.end(), state.sums.begin(), state.sums.end());
  for (const Accumulator& output : outputs) values.push_back(output.value);
  values = if_uniform(kernel_, any_lane(kernel_, grows), Likelihood::rarely, values, [&](const Values& before) {
    Value* factor = rescale_factor(before[0], raised_maximum, grows);
    Values after = {ir.CreateSelect(grows, raised_maximum, before[0])};
    after.insert(after.end(), before.begin() + 1, before.end());
    const std::span<Value*> all = std::span(after).subspan(1);
    const std::size_t sums = state.sums.size();
    const std::span<Value*> of_outputs = all.subspan(sums);
    const auto each = [&](std::span<Value*> values) {
      for (Value*& value : values) value = rescaled(value, factor);
    };
    each(rescale ? all.first(sums) : all);
    if (rescale) rescale(of_outputs, factor);
    return after;
  });
  SoftmaxState next{.maximum = values[0], .sums = state.sums};
  std::copy_n(values.begin() + 1, state.sums.size(), next.sums.begin());
  for (std::size_t index = 0; index < outputs.size(); ++index)
    outputs[index].value = values[index + 1 + state.sums.size()];
  return next;
}

void Softmax::to_weights(const SoftmaxState& state, std::span<Accumulator> scores) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // Register pairs: one packed multiply-add each, the same operation per element. All of a part before its first exp2,
  // which would wait for a neighbour.
  Value* scale_pair = ir.CreateVectorSplat(2, scale_);
  Value* shift_pair = ir.CreateVectorSplat(2, shift(state.maximum));
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
}

SoftmaxState Softmax::weigh(const SoftmaxState& state, std::span<Accumulator> scores) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  to_weights(state, scores);
  // sum_tree, a running sum at a time, so that few sums are in registers beside the weights: bit 5 of the key, then
  // bit 1, then bit 0.
  SoftmaxState next = state;
  for (std::size_t j = 0; j < running_sums; ++j) {
    // Registers of all accumulators in a row; bit 5 of the key is the upper half of them.
    const int registers = scores.front().layout.registers();
    const int half = static_cast<int>(scores.size()) * registers / 2;
    const auto four_from = [&](int term) {
      const int first = term % registers;
      return ir.CreateShuffleVector(scores[static_cast<std::size_t>(term / registers)].value,
                                    {first, first + 1, first + 2, first + 3});
    };
    const int first = static_cast<int>(4 * j);
    Value* four = ir.CreateFAdd(four_from(first), four_from(first + half));
    Value* two = ir.CreateFAdd(ir.CreateShuffleVector(four, {0, 1}), ir.CreateShuffleVector(four, {2, 3}));
    Value* tile =
        ir.CreateFAdd(ir.CreateExtractElement(two, std::uint64_t{0}), ir.CreateExtractElement(two, std::uint64_t{1}));
    next.sums[j] = accumulated(state.sums[j], tile);
  }
  return next;
}

// Bit 4 of the key, then bit 3, then bit 2. The other half has the other bit 2; in blocks of eight the other bit 3.
Value* Softmax::row_sum(const SoftmaxState& state) const {
  if (weights_ == WeightType::bytes) return state.sums[0];
  llvm::IRBuilder<>& ir = kernel_.ir();
  constexpr int bit_2 = 4;  // keys that a block of rows holds below it
  if (kernel_.target().row_block != bit_2) {
    Value* sums[2];
    for (std::size_t j = 0; j < 2; ++j) {
      const auto [one, other] = both_halves(kernel_, ir.CreateFAdd(state.sums[j], state.sums[j + 2]));
      sums[j] = ir.CreateFAdd(one, other);
    }
    return ir.CreateFAdd(sums[0], sums[1]);
  }
  Value* half = ir.CreateFAdd(ir.CreateFAdd(state.sums[0], state.sums[2]), ir.CreateFAdd(state.sums[1], state.sums[3]));
  const auto [one, other] = both_halves(kernel_, half);
  return ir.CreateFAdd(one, other);
}

// Selected, not computed, for a part that holds the maximum: exactly 1, also where neither part saw a key, and
// −∞ − (−∞) would be NaN.
MergeWeights Softmax::merge_weights(Value* earlier_maximum, Value* later_maximum) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* maximum = ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, earlier_maximum, later_maximum);
  const auto weight = [&](Value* of) {
    Value* power = exp2(ir.CreateFMul(ir.CreateFSub(of, maximum), scale_));
    return ir.CreateSelect(ir.CreateFCmpOEQ(of, maximum), kernel_.constant(1.0F), power);
  };
  return {.maximum = maximum, .earlier = weight(earlier_maximum), .later = weight(later_maximum)};
}

Value* Softmax::merged(const MergeWeights& weights, Value* earlier, Value* later) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(earlier->getType());
  const auto as_wide = [&](Value* weight) {
    return vector ? ir.CreateVectorSplat(vector->getNumElements(), weight) : weight;
  };
  return ir.CreateIntrinsic(llvm::Intrinsic::fma, {earlier->getType()},
                            {earlier, as_wide(weights.earlier), ir.CreateFMul(later, as_wide(weights.later))});
}

Value* Softmax::inverse(Value* row_sum) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* reciprocal = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel_.f32()}, {row_sum});
  Value* zero = kernel_.constant(0.0F);
  return ir.CreateSelect(ir.CreateFCmpOEQ(row_sum, zero), zero, reciprocal);
}

Value* Softmax::log_sum_exp(const PartStatistics& row) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  // log2(0) is −inf and m of an empty row is −inf (N: finite) with c > 0: −inf comes out by itself.
  Value* log2_sum = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_log, {kernel_.f32()}, {row.sum});
  Value* log2 = weights_ == WeightType::wide
                    ? ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()}, {row.maximum, scale_, log2_sum})
                    : ir.CreateFSub(log2_sum, shift(row.maximum));
  return ir.CreateFMul(log2, kernel_.constant(std::numbers::ln2_v<float>));
}

Value* Softmax::scaled_maximum(Value* maximum) const {
  if (weights_ == WeightType::bytes) return kernel_.ir().CreateFNeg(shift(maximum));
  return kernel_.ir().CreateFMul(maximum, scale_);
}

RowEnd end_with_sink(Kernel& kernel, Value* scaled_maximum, Value* row_sum, Value* sink) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto intrinsic = [&](llvm::Intrinsic::ID which, Value* value) {
    return ir.CreateIntrinsic(which, {kernel.f32()}, {value});
  };
  const auto larger = [&](Value* a, Value* b) { return ir.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, a, b); };
  Value* zero = kernel.constant(0.0F);
  Value* sink_log2 = ir.CreateFMul(sink, kernel.constant(std::numbers::log2e_v<float>));
  // From 2.36e38 on the product leaves f32. Such a sink has all of the row's weight, and LSE is the sink itself.
  Value* is_beyond = ir.CreateFCmpOEQ(sink_log2, kernel.constant(std::numeric_limits<float>::infinity()));
  sink_log2 = ir.CreateSelect(is_beyond, kernel.constant(std::numeric_limits<float>::max()), sink_log2);
  // Finite, so that neither difference is −inf − −inf.
  Value* maximum = larger(larger(scaled_maximum, sink_log2), kernel.constant(std::numeric_limits<float>::lowest()));
  Value* share = intrinsic(llvm::Intrinsic::amdgcn_exp2, ir.CreateFSub(scaled_maximum, maximum));
  Value* sink_weight = intrinsic(llvm::Intrinsic::amdgcn_exp2, ir.CreateFSub(sink_log2, maximum));
  Value* sum = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {row_sum, share, sink_weight});
  Value* factor = ir.CreateFMul(share, intrinsic(llvm::Intrinsic::amdgcn_rcp, sum));
  Value* log2 = ir.CreateFAdd(maximum, intrinsic(llvm::Intrinsic::amdgcn_log, sum));
  Value* log_sum_exp = ir.CreateFMul(log2, kernel.constant(std::numbers::ln2_v<float>));
  // The sum is 1 then, or NaN as the row's scores are.
  log_sum_exp = ir.CreateSelect(is_beyond, ir.CreateFMul(sink, sum), log_sum_exp);
  // A row that saw no key: exactly the sink.
  return {.factor = ir.CreateSelect(ir.CreateFCmpOEQ(sum, zero), zero, factor),
          .log_sum_exp = ir.CreateSelect(ir.CreateFCmpOEQ(row_sum, zero), sink, log_sum_exp)};
}

}  // namespace wavejit::language
