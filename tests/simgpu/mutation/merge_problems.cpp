// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "merge_problems.h"

#include <bit>
#include <cstdint>
#include <utility>

#include "attention_merge/merge_run.h"

namespace wavejit::tests {
namespace {

// `nan`: which NaN a result is has no exact answer.
CallProblem merge(MergeCase which, std::size_t parts, std::uint64_t seed, bool empty, bool nan = false) {
  which.type = WAVEJIT_FP32;
  which = filled(std::move(which), parts, seed, empty);
  if (nan) {
    // With bits that a rounding in integers would carry over.
    for (std::size_t at = 0; at < which.parts[0].o.size(); at += 3)
      which.parts[0].o[at] = std::bit_cast<float>(at % 2 == 0 ? 0x7fffffffU : 0xffffffffU);
  }
  return {[which, nan](wavejit_engine* engine, bool judges) {
    const MergeOutput output = run_merge(engine, which);
    CallResult result;
    result.status = output.status;
    result.reports = output.status != WAVEJIT_OK && output.reports.empty() ? output.detail : output.reports;
    result.fence_intact = output.rest_intact;
    result.bits = output.o;
    for (const float lse : output.lse) result.bits.push_back(std::bit_cast<std::uint32_t>(lse));
    if (judges && !nan && output.status == WAVEJIT_OK) result.wrong = difference_from_exact(which, output);
    return result;
  }};
}

}  // namespace

std::vector<CallProblem> merges() {
  return {
      merge({.batch = 2, .tokens = 5, .heads = 3, .dims = 128}, 3, 1, true),
      merge({.tokens = 3, .heads = 5, .dims = 40, .stacks = {2, 1}, .heads_outside = true}, 3, 2, true),
      merge({.tokens = 70, .heads = 3, .dims = 64, .lse_by_token = true}, 2, 3, false),
      merge({.tokens = 7, .heads = 9, .dims = 8, .lse = false}, 8, 4, true),
      merge({.batch = 3, .tokens = 2, .heads = 1, .dims = 256}, 1, 5, true),
      merge({.tokens = 2, .heads = 2, .dims = 80, .stacks = {3, 4}}, 7, 6, false),
      merge({.tokens = 4, .heads = 3, .dims = 72}, 1, 7, false, true),
  };
}

}  // namespace wavejit::tests
