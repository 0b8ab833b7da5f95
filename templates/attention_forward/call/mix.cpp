// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/call/mix.h"

#include <algorithm>

namespace wavejit::attention_forward {
namespace {

// A guess: two more launches pay off if there are at least this many short sequences for each long one. Prompts and
// sequences of a training batch differ by less, so they have one kernel.
constexpr std::uint64_t others_of_a_long_one = 4;

std::uint32_t packed_group(const AttentionProblem& problem) { return problem.close_heads ? problem.group() : 1; }

}  // namespace

std::uint32_t few_rows_of(const AttentionProblem& problem) {
  // Over the keys of one chunk no kernel takes long enough for launches of its own.
  if (!problem.may_share_call() || problem.batch < 2 || problem.query_length <= longest_packed_query ||
      problem.key_length <= static_cast<std::uint32_t>(chunk_keys))
    return 0;
  const std::uint64_t longest = problem.query_length;
  const std::uint64_t most_others = problem.batch - 1;
  // The rows of all sequences except one of the longest, which need not exist.
  const std::uint64_t others = problem.query_rows - std::min(longest, problem.query_rows);
  const bool others_are_few = others <= most_others * longest_packed_query;
  // The fewest sequences that can hold those rows: the others may be short then.
  const std::uint64_t long_others = (others + longest - 1) / longest;
  const bool most_are_short = others_of_a_long_one * long_others <= most_others;
  if (!most_are_short && !others_are_few) return 0;
  std::uint64_t few = std::max<std::uint64_t>(1, longest_packed_query / packed_group(problem));
  // Where they are many, long ones are among them, and the mean says nothing of the short ones.
  const bool several_rows = others_are_few && others > most_others;
  while (several_rows && few * most_others < 2 * others && 2 * few <= longest_packed_query) few *= 2;
  return static_cast<std::uint32_t>(few);
}

AttentionProblem of_few_rows(const AttentionProblem& problem, std::uint32_t few_rows) {
  AttentionProblem few = problem;
  few.query_length = few_rows;
  few.query_rows = std::uint64_t{problem.batch} * few_rows;
  const std::uint32_t group = packed_group(problem);
  const std::uint32_t rows_of_tile = std::min<std::uint32_t>(few_rows * group, std::max<std::uint32_t>(group, 32));
  few.shape.set_rows({.rows = query_rows(rows_of_tile), .packed_heads = group > 1});
  return few;
}

}  // namespace wavejit::attention_forward
