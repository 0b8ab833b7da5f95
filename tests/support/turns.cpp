// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program of tests of which ./dev test takes a part, another one each commit: of four turns, four commits take all of
// it. By hand, in ./dev check <word> and in ./dev soak it is a program like any other.
//
// What takes turns is a test with one of its parameters; where tests are named (TURNS_OF in tests/CMakeLists.txt) those
// and no others, also without parameters. The turns of a test with two targets lie far apart, and those of neighbouring
// tests side by side: every turn has a half, a quarter … of the tests, some of them on either target. A test of
// EVERY_TURN has half of its parameters in every turn. A suite whose name begins with "Whole" keeps all of them: what
// it promises is a number.
#include "support/turns.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>

#include "support/part.h"

namespace {

std::string said(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// Patterns as GoogleTest's filters have them, between colons.
bool is_one_of(const std::string& name, std::string_view patterns) {
  while (!patterns.empty()) {
    const std::string pattern(patterns.substr(0, patterns.find(':')));
    if (fnmatch(pattern.c_str(), name.c_str(), 0) == 0) return true;
    patterns.remove_prefix(std::min(patterns.size(), pattern.size() + 1));
  }
  return false;
}

// Where the parameter at `place` of a test stands among `turns`, a power of two. Combinations of values that are two
// each keep both of every list, in halves and in quarters: neighbours in Gray's code differ in one value.
unsigned step_of(unsigned place, unsigned turns) {
  if (turns == 2) return static_cast<unsigned>(std::popcount(place)) % 2;
  const unsigned gray = place ^ (place >> 1);
  unsigned step = 0;
  for (unsigned bit = 1, worth = turns / 2; worth > 0; bit *= 2, worth /= 2) step += (gray & bit) != 0 ? worth : 0;
  return step;
}

struct Turns {
  unsigned all = 1;
  unsigned now = 0;
  std::string of;          // what takes turns; where empty, tests with parameters
  std::string every_turn;  // tests of which every turn has half
};

// The tests that this turn leaves out: each as ":<suite>.<test>".
std::string left_out(const Turns& turns) {
  std::string names;
  unsigned tests = 0;  // seen, without their parameters
  for (int i = 0; i < ::testing::UnitTest::GetInstance()->total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *::testing::UnitTest::GetInstance()->GetTestSuite(i);
    if (std::string_view(suite.name()).starts_with("Whole")) continue;
    struct Test {
      unsigned place = 0;
      unsigned parameters = 0;
    };
    std::map<std::string_view, Test> of_suite;
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const ::testing::TestInfo& info = *suite.GetTestInfo(k);
      const std::string_view name = info.name();
      const std::string whole_name = std::string(suite.name()) + "." + std::string(name);
      const bool takes_turns = turns.of.empty() ? info.value_param() != nullptr : is_one_of(whole_name, turns.of);
      if (!takes_turns) continue;
      const auto [at, is_new] = of_suite.try_emplace(name.substr(0, name.find('/')), Test{tests, 0});
      if (is_new) ++tests;
      Test& test = at->second;
      const unsigned all = is_one_of(whole_name, turns.every_turn) ? 2 : turns.all;
      if ((test.place + step_of(test.parameters++, all)) % all != turns.now % all) names += ":" + whole_name;
    }
  }
  return names;
}

}  // namespace

namespace wavejit::tests {

int run_in_turn() {
  const std::string all = said("WAVEJIT_TEST_TURNS");
  if (!sampled() || all.empty()) return RUN_ALL_TESTS();
  const Turns turns{static_cast<unsigned>(std::stoul(all)), turn(), said("WAVEJIT_TEST_TURNS_OF"),
                    said("WAVEJIT_TEST_EVERY_TURN")};
  const std::string names = left_out(turns);
  const std::string chosen = GTEST_FLAG_GET(filter);
  if (!names.empty()) GTEST_FLAG_SET(filter, chosen + (chosen.contains('-') ? "" : "-") + names);
  const int result = RUN_ALL_TESTS();
  if (result != 0)
    std::printf(
        "This was turn %u of %u. One of its tests again: ./dev run <program> --gtest_filter=<name>; all of them:\n"
        "WAVEJIT_TEST_TURN=%u in front of ./dev test (tests/support/part.h).\n",
        turns.now % turns.all, turns.all, turns.now);
  return result;
}

}  // namespace wavejit::tests
