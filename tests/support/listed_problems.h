// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The rows that a family's driver of value tests runs: problems of a list, a descriptor a line, each on several targets.
//
// tests/chosen/<name>.txt says which file has the lines and on which targets they run (its directives `lines` and `on`),
// and has the rows of ./dev test. ./dev check <word> and ./dev soak run every line on every target.
//
//   class GradientRows : public ::testing::TestWithParam<ListedProblem> {};
//   TEST_P(GradientRows, MatchFloat64) { … GetParam().words … }
//   INSTANTIATE_TEST_SUITE_P(Listed, GradientRows, ::testing::ValuesIn(listed_problems("gradients_list")), name_of_row);
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <vector>

namespace wavejit::tests {

struct ListedProblem {
  std::string target;
  std::string words;  // of the descriptor, without the family's name
};
inline void PrintTo(const ListedProblem& problem, std::ostream* out) { *out << problem.target << ' ' << problem.words; }

// Throws std::runtime_error for a list that names no lines or no target.
std::vector<ListedProblem> listed_problems(const std::string& name);

// "gfx942_b2_q70_k90_h2_1_d64_causal"
std::string name_of_row(const ::testing::TestParamInfo<ListedProblem>& info);

}  // namespace wavejit::tests
