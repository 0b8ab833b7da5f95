// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/parts_in_lanes.h"

#include "codegen/language/control.h"
#include "codegen/language/cross_lane.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention/emit/parts_chain.h"

namespace wavejit::attention {

using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

PartsInLanes::PartsInLanes(Kernel& kernel, const language::Softmax& softmax, int loads, Value* lane,
                           const Source& source)
    : kernel_(kernel),
      ir_(kernel.ir()),
      softmax_(softmax),
      loads_(loads),
      part_of_lane_(ir_.CreateAnd(lane, kernel.constant(group - 1))),
      source_(source) {}

Values PartsInLanes::merged(Value* first, Value* last) {
  first_ = first;
  last_ = last;
  Values nothing = {softmax_.initial().maximum, kernel_.constant(0.0F)};
  nothing.resize(row_values(), llvm::Constant::getNullValue(kernel_.vector(kernel_.f32(), PartsChain::load_dims)));
  return language::if_uniform(kernel_, ir_.CreateICmpSGE(last, first), Likelihood::even, nothing,
                              [&](const Values& start) { return merge(start); });
}

Value* PartsInLanes::slot_of_lane(Value* first) { return ir_.CreateAdd(first, part_of_lane_); }

// A group is on its way: each part is absorbed, and the one a group behind it takes its registers.
Values PartsInLanes::merge(const Values& start) {
  Values state = start;
  state.push_back(source_.statistics(minimum(kernel_, slot_of_lane(first_), last_)));
  for (int each = 0; each < group; ++each)
    for (Value* value : source_.dims(ir_.CreateAdd(first_, kernel_.constant(each)))) state.push_back(value);
  state.push_back(first_);
  const auto has_more = [&](const Values& at) {
    return ir_.CreateICmpSLE(ir_.CreateAdd(at.back(), kernel_.constant(group)), last_);
  };
  state = language::if_uniform(kernel_, has_more(state), Likelihood::even, state, [&](const Values& several) {
    return language::loop_in_phases(
        kernel_, 1, several, [&](int, const Values& before) { return absorb_group(before, true); }, has_more);
  });
  return absorb_group(state, false);
}

Values PartsInLanes::absorb_group(const Values& state, bool fetches) {
  Value* first = kernel_.uniform(state.back());
  Value* next = ir_.CreateAdd(first, kernel_.constant(group));
  Values row(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(row_values()));
  const Weights weights = weigh(first, row[0], state[row_values()]);
  row[0] = language::of_lane_in_row(kernel_, weights.of_part.maximum, group - 1);
  if (!fetches) {
    absorb(row, weights, state, 0);
    return absorb_rest(row, weights, state, 0);
  }
  Values behind = {source_.statistics(minimum(kernel_, slot_of_lane(next), last_))};
  for (int each = 0; each < group; ++each) {
    absorb(row, weights, state, each);
    for (Value* value : source_.dims(ir_.CreateAdd(next, kernel_.constant(each)))) behind.push_back(value);
  }
  row.insert(row.end(), behind.begin(), behind.end());
  row.push_back(next);
  return row;
}

// m grows part by part: of a lane it is the largest of those up to its own, whatever the order in which they are
// compared.
PartsInLanes::Weights PartsInLanes::weigh(Value* first, Value* maximum, Value* statistics) {
  const auto number = [&](std::uint64_t at) {
    return ir_.CreateBitCast(ir_.CreateExtractElement(statistics, at), kernel_.f32());
  };
  const auto larger = [&](Value* one, Value* other) {
    return ir_.CreateBinaryIntrinsic(llvm::Intrinsic::maxnum, one, other);
  };
  Value* slot = slot_of_lane(first);
  Value* exists = ir_.CreateICmpSLE(slot, last_);
  if (!source_.all_see_all) exists = ir_.CreateAnd(exists, source_.sees(slot));
  Value* none = softmax_.initial().maximum;
  Value* own = ir_.CreateSelect(exists, number(0), none);
  Value* largest = own;
  for (int distance = 1; distance < group; distance *= 2)
    largest = larger(largest, language::of_lane_before(kernel_, largest, distance, none));
  Value* before = language::of_lane_before(kernel_, larger(largest, maximum), 1, maximum);
  return {.of_part = softmax_.merge_weights(before, own),
          .sum = ir_.CreateSelect(exists, number(1), kernel_.constant(0.0F))};
}

void PartsInLanes::absorb(Values& row, const Weights& weights, const Values& state, int each) {
  const auto of_part = [&](Value* value) { return language::of_lane_in_row(kernel_, value, each); };
  const language::MergeWeights own = {
      .maximum = nullptr, .earlier = of_part(weights.of_part.earlier), .later = of_part(weights.of_part.later)};
  row[1] = softmax_.merged(own, row[1], of_part(weights.sum));
  const std::size_t dims = row_values() + 1 + static_cast<std::size_t>(each * loads_);
  for (std::size_t load = 0; load < static_cast<std::size_t>(loads_); ++load)
    row[2 + load] =
        softmax_.merged(own, row[2 + load],
                        ir_.CreateBitCast(state[dims + load], kernel_.vector(kernel_.f32(), PartsChain::load_dims)));
}

Values PartsInLanes::absorb_rest(const Values& row, const Weights& weights, const Values& state, int each) {
  if (each + 1 == group) return row;
  Value* first = kernel_.uniform(state.back());
  Value* has_next = ir_.CreateICmpSLE(ir_.CreateAdd(first, kernel_.constant(each + 1)), last_);
  return language::if_uniform(kernel_, has_next, Likelihood::even, row, [&](const Values& so_far) {
    Values next = so_far;
    absorb(next, weights, state, each + 1);
    return absorb_rest(next, weights, state, each + 1);
  });
}

}  // namespace wavejit::attention
