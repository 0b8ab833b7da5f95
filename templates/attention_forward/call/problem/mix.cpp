// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/problem/mix.h"

#include <algorithm>

namespace wavejit::attention_forward {
namespace {

std::uint32_t packed_group(const AttentionProblem& problem) { return problem.close_heads ? problem.group() : 1; }

}  // namespace

std::uint32_t few_rows_of(const AttentionProblem& problem) {
  // Over the keys of one chunk no kernel takes long enough for launches of its own.
  if (!problem.packed_queries || problem.batch < 2 || problem.query_length <= longest_packed_query ||
      problem.key_length <= static_cast<std::uint32_t>(chunk_keys))
    return 0;
  const std::uint64_t longest = problem.query_length;
  const std::uint64_t grid_rows = longest * problem.batch;
  const bool half_is_missing = 2 * problem.query_rows <= grid_rows;
  // Beside one of the longest, which has not even to be there.
  const std::uint64_t others = problem.query_rows - std::min(longest, problem.query_rows);
  if (!half_is_missing && others > (problem.batch - 1) * longest_packed_query) return 0;
  return std::max<std::uint32_t>(1, longest_packed_query / packed_group(problem));
}

AttentionProblem of_few_rows(const AttentionProblem& problem, std::uint32_t few_rows) {
  AttentionProblem few = problem;
  few.query_length = few_rows;
  few.query_rows = std::uint64_t{problem.batch} * few_rows;
  few.shape.set_rows(plan_rows(few_rows, packed_group(problem)));
  return few;
}

}  // namespace wavejit::attention_forward
