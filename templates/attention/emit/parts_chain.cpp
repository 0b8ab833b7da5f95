// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/parts_chain.h"

#include <algorithm>

#include "codegen/language/control.h"

namespace wavejit::attention {

using language::Kernel;
using language::Likelihood;
using language::Value;
using language::Values;

namespace {

// Records that are on their way together, and what a lane loads of them: two such groups take registers.
constexpr int most_group = 4;
constexpr int most_group_bytes = 512;

}  // namespace

PartsChain::PartsChain(Kernel& kernel, const language::Softmax& softmax, int loads, const Source& source)
    : kernel_(kernel),
      ir_(kernel.ir()),
      softmax_(softmax),
      loads_(loads),
      group_(std::min(most_group, most_group_bytes / (loads * load_bytes))),
      source_(source) {}

Value* PartsChain::zero_dims() const { return llvm::Constant::getNullValue(kernel_.vector(kernel_.f32(), load_dims)); }

Values PartsChain::merged(Value* first, Value* last) {
  Values nothing = {softmax_.initial().maximum, kernel_.constant(0.0F)};
  nothing.resize(nothing.size() + static_cast<std::size_t>(loads_), zero_dims());
  return language::if_uniform(kernel_, ir_.CreateICmpSGE(last, first), Likelihood::even, nothing,
                              [&](const Values& start) { return merge(first, last, start); });
}

// A group of records is on its way: each is absorbed, and the one a group behind it takes its registers. Nothing is
// behind the last group.
Values PartsChain::merge(Value* first, Value* last, const Values& start) {
  Values state = start;
  for (int each = 0; each < group_; ++each)
    for (Value* value : source_.load(ir_.CreateAdd(first, kernel_.constant(each)))) state.push_back(value);
  state.push_back(first);  // of them
  const auto has_more = [&](const Values& at) {
    return ir_.CreateICmpSLE(ir_.CreateAdd(at.back(), kernel_.constant(group_)), last);
  };
  state = language::if_uniform(kernel_, has_more(state), Likelihood::even, state, [&](const Values& several) {
    return language::loop_in_phases(
        kernel_, 1, several, [&](int, const Values& before) { return absorb_group(before, true); }, has_more);
  });
  state = absorb_group(state, false);
  state.resize(start.size());
  return state;
}

// `fetches`: a next group comes.
Values PartsChain::absorb_group(const Values& before, bool fetches) {
  const std::size_t row_values = 2 + static_cast<std::size_t>(loads_);
  const std::size_t record_values = 1 + static_cast<std::size_t>(loads_);
  Value* first = kernel_.uniform(before.back());
  Values row(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(row_values));
  Values next;
  for (int each = 0; each < group_; ++each) {
    const auto record =
        before.begin() + static_cast<std::ptrdiff_t>(row_values + (static_cast<std::size_t>(each) * record_values));
    Value* slot = ir_.CreateAdd(first, kernel_.constant(each));
    absorb(row, {record, record + static_cast<std::ptrdiff_t>(record_values)}, source_.sees(slot));
    if (!fetches) continue;
    for (Value* value : source_.load(ir_.CreateAdd(slot, kernel_.constant(group_)))) next.push_back(value);
  }
  row.insert(row.end(), next.begin(), next.end());
  row.push_back(ir_.CreateAdd(first, kernel_.constant(group_)));
  return row;
}

void PartsChain::absorb(Values& row, const Values& record, Value* sees) {
  const auto number = [&](std::uint64_t at) {
    return ir_.CreateBitCast(ir_.CreateExtractElement(record.front(), at), kernel_.f32());
  };
  Value* maximum = ir_.CreateSelect(sees, number(0), softmax_.initial().maximum);
  const language::MergeWeights weights = softmax_.merge_weights(row[0], maximum);
  row[0] = weights.maximum;
  row[1] = softmax_.merged(weights, row[1], number(1));
  for (std::size_t each = 1; each < record.size(); ++each)
    row[1 + each] = softmax_.merged(weights, row[1 + each],
                                    ir_.CreateBitCast(record[each], kernel_.vector(kernel_.f32(), load_dims)));
}

}  // namespace wavejit::attention
