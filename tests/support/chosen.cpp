// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program of tests of which ./dev test runs the ones that a file of tests/chosen names: those with parameters, and
// those that the file's directives `of` match. By hand, in ./dev check <word> and in ./dev soak it is a program like
// any other. A suite that the file does not name runs whole: a new test is never left out by chance.
#include "support/chosen.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/part.h"

namespace {

struct Chosen {
  std::set<std::string> tests;     // <suite>.<test>
  std::set<std::string> fixtures;  // of these tests
  std::vector<std::string> of;     // what tests without parameters are chosen of
};

// All/Integers.Match/gfx942 and Integers.Match are tests of the fixture Integers.
std::string fixture_of(std::string_view suite) { return std::string(suite.substr(suite.rfind('/') + 1)); }

Chosen read(const std::string& path) {
  Chosen chosen;
  std::ifstream file(path);
  if (!file) std::printf("%s: cannot be read; every test runs\n", path.c_str());
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    std::string name;
    words >> first >> name;
    if (first == "of") chosen.of.push_back(name);
    if (first.empty() || first.find_first_not_of("0123456789") != std::string::npos) continue;
    chosen.tests.insert(name);
    chosen.fixtures.insert(fixture_of(name.substr(0, name.find('.'))));
  }
  return chosen;
}

// The tests to leave out: each as ":<suite>.<test>".
std::string left_out(const Chosen& chosen) {
  std::string names;
  const ::testing::UnitTest& program = *::testing::UnitTest::GetInstance();
  for (int i = 0; i < program.total_test_suite_count(); ++i) {
    const ::testing::TestSuite& suite = *program.GetTestSuite(i);
    const bool known = chosen.fixtures.contains(fixture_of(suite.name()));
    for (int k = 0; k < suite.total_test_count(); ++k) {
      const ::testing::TestInfo& info = *suite.GetTestInfo(k);
      const std::string name = std::string(suite.name()) + "." + info.name();
      const auto matches = [&](const std::string& pattern) { return fnmatch(pattern.c_str(), name.c_str(), 0) == 0; };
      const bool is_choice =
          info.value_param() != nullptr && chosen.of.empty() ? known : std::ranges::any_of(chosen.of, matches);
      if (is_choice && !chosen.tests.contains(name)) names += ":" + name;
    }
  }
  return names;
}

}  // namespace

namespace wavejit::tests {

int run_chosen() {
  const char* const path = std::getenv("WAVEJIT_TEST_CHOSEN");
  if (!sampled() || path == nullptr) return RUN_ALL_TESTS();
  const std::string names = left_out(read(path));
  const std::string filter = GTEST_FLAG_GET(filter);
  if (!names.empty()) GTEST_FLAG_SET(filter, filter + (filter.contains('-') ? "" : "-") + names);
  return RUN_ALL_TESTS();
}

}  // namespace wavejit::tests
