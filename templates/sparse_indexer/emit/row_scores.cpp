// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/emit/row_scores.h"

#include <algorithm>
#include <cstddef>

#include "codegen/language/control.h"
#include "templates/sparse_indexer/emit/row_keys.h"

namespace wavejit::sparse_indexer {
namespace {

using language::Value;
using language::Values;

constexpr int magnitude_bits = 31;
constexpr std::uint32_t nan_number = 0xFFFFFFFF;
// The bits of llvm.is.fpclass: both kinds of NaN, and −∞.
constexpr int nan_or_minus_infinity = 7;

}  // namespace

RowScores::RowScores(language::Kernel& kernel, const language::Buffer& scores, Value* count)
    : kernel_(kernel),
      ir_(kernel.ir()),
      scores_(scores),
      count_(count),
      wave_first_(ir_.CreateMul(kernel.wave(), kernel.constant(wave_keys))),
      lane_first_(ir_.CreateAdd(wave_first_, ir_.CreateShl(kernel.lane(), 2))) {}

Value* RowScores::first_of(Value* first, int load) const {
  return ir_.CreateAdd(lane_first_, ir_.CreateAdd(first, kernel_.constant(load * load_keys)));
}

Values RowScores::read(Value* first) const {
  Values quads;
  for (int load = 0; load < loads; ++load)
    quads.push_back(scores_.load(quad_bytes, ir_.CreateShl(first_of(first, load), 2), kernel_.constant(0)));
  return quads;
}

RowScores::Four RowScores::ordered(Value* quad, Value* first, int load) const {
  Four four{};
  four.first = first_of(first, load);
  Values numbers;
  Value* rare = ir_.getFalse();
  for (std::size_t each = 0; each < quad_keys; ++each) {
    Value* bits = ir_.CreateExtractElement(quad, each);
    Value* score = ir_.CreateBitCast(bits, kernel_.f32());
    // −0 is +0.
    Value* same = ir_.CreateBitCast(ir_.CreateFAdd(score, kernel_.constant(0.0F)), kernel_.i32());
    numbers.push_back(
        ir_.CreateXor(same, ir_.CreateOr(ir_.CreateAShr(same, magnitude_bits), ir_.getInt32(0x80000000))));
    Value* is_special = ir_.CreateIntrinsic(llvm::Intrinsic::is_fpclass, {kernel_.f32()},
                                            {score, kernel_.constant(nan_or_minus_infinity)});
    rare = ir_.CreateOr(rare, is_special);
    four.bits[each] = bits;
  }
  // The row's end, and scores that have a place of their own: everybody else does without these compares.
  Value* cut = ir_.CreateICmpSGT(ir_.CreateAdd(first, kernel_.constant(walk_keys)), count_);
  const Values fixed = language::if_uniform(
      kernel_, ir_.CreateOr(language::any_lane(kernel_, rare), cut), language::Likelihood::even, numbers,
      [&](const Values& flipped) {
        Values all;
        for (std::size_t each = 0; each < quad_keys; ++each) {
          Value* score = ir_.CreateBitCast(four.bits[each], kernel_.f32());
          Value* number = ir_.CreateSelect(ir_.CreateFCmpUNO(score, score), ir_.getInt32(nan_number), flipped[each]);
          Value* key = ir_.CreateAdd(four.first, kernel_.constant(static_cast<int>(each)));
          Value* exists = ir_.CreateAnd(ir_.CreateICmpSLT(key, count_),
                                        ir_.CreateICmpNE(four.bits[each], ir_.getInt32(minus_infinity_bits)));
          all.push_back(ir_.CreateSelect(exists, number, kernel_.constant(0)));
        }
        return all;
      });
  std::ranges::copy(fixed, four.numbers.begin());
  return four;
}

Values RowScores::walk(const Values& initial, const Step& body) const {
  Values state = {kernel_.constant(0)};
  state.insert(state.end(), initial.begin(), initial.end());
  const auto behind = static_cast<std::ptrdiff_t>(state.size());
  const auto step = [&](int, const Values& at) {
    Value* following = ir_.CreateAdd(at[0], kernel_.constant(walk_keys));
    const Values next_quads = read(following);
    Values next = body(at[0], Values(at.begin() + behind, at.end()), Values(at.begin() + 1, at.begin() + behind));
    next.insert(next.begin(), following);
    next.insert(next.end(), next_quads.begin(), next_quads.end());
    return next;
  };
  const Values end = language::if_uniform(kernel_, ir_.CreateICmpSGT(count_, kernel_.constant(0)),
                                          language::Likelihood::even, state, [&](const Values& start) {
                                            Values at_start = start;
                                            const Values quads = read(start[0]);
                                            at_start.insert(at_start.end(), quads.begin(), quads.end());
                                            Values all = language::loop_in_phases(
                                                kernel_, 1, at_start, step,
                                                [&](const Values& at) { return ir_.CreateICmpSLT(at[0], count_); });
                                            all.resize(static_cast<std::size_t>(behind));
                                            return all;
                                          });
  return {end.begin() + 1, end.end()};
}

}  // namespace wavejit::sparse_indexer
