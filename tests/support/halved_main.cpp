// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program of tests for which half of every test's parameters are enough in ./dev test. By hand, in ./dev check <word>
// and in ./dev soak it is a program like any other.
//
// The halves go by turns: of a suite for gfx942 and gfx950, the first test takes one, the second the other. A kernel of
// either is in every second test, and a test that breaks on both is seen wherever it is. A suite whose name begins with
// "Whole" keeps all of them: what it promises is a number.
#include <gtest/gtest.h>

#include <bit>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "support/part.h"

namespace {

// The tests of `suite` that are left out: each as ":<suite>.<test>/<parameter>".
std::string other_half(const ::testing::TestSuite& suite) {
  // Of each test without its parameter: its turn, and how many parameters have come by.
  std::map<std::string_view, std::pair<unsigned, unsigned>> tests;
  std::string left_out;
  for (int i = 0; i < suite.total_test_count(); ++i) {
    const ::testing::TestInfo& info = *suite.GetTestInfo(i);
    if (info.value_param() == nullptr) continue;
    const std::string_view name = info.name();
    const auto turn = static_cast<unsigned>(tests.size());
    auto& [its_turn, seen] = tests.try_emplace(name.substr(0, name.find('/')), turn, 0U).first->second;
    // By the bits of the place: combinations of values that are two each keep both of every list.
    const unsigned half = static_cast<unsigned>(std::popcount(seen++)) + its_turn;
    if (half % 2 == 1) left_out += ":" + std::string(suite.name()) + "." + std::string(name);
  }
  return left_out;
}

}  // namespace

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  if (wavejit::tests::sampled()) {
    std::string left_out;
    for (int i = 0; i < ::testing::UnitTest::GetInstance()->total_test_suite_count(); ++i) {
      const ::testing::TestSuite& suite = *::testing::UnitTest::GetInstance()->GetTestSuite(i);
      if (!std::string_view(suite.name()).starts_with("Whole")) left_out += other_half(suite);
    }
    const std::string chosen = GTEST_FLAG_GET(filter);
    if (!left_out.empty()) GTEST_FLAG_SET(filter, chosen + (chosen.contains('-') ? "" : "-") + left_out);
  }
  return RUN_ALL_TESTS();
}
