// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "kernels/hot_loops.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

namespace wavejit::tests {
namespace {

class HotLoops : public ::testing::TestWithParam<HotLoop> {};

TEST_P(HotLoops, AreTheTextOfTheTree) {
  const auto text = text_of(GetParam());
  ASSERT_TRUE(text) << text.error();
  std::ifstream file(std::string(WAVEJIT_HOT_LOOPS "/") + std::string(GetParam().name) + ".txt");
  const std::string known{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(*text, known) << "./dev bench hot-loops writes it; the commit says why the code is other";
}

INSTANTIATE_TEST_SUITE_P(WholeList, HotLoops, ::testing::ValuesIn(hot_loops()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(HotLoopFiles, HaveALoopEach) {
  std::set<std::string> named;
  for (const HotLoop& loop : hot_loops()) named.insert(std::string(loop.name) + ".txt");
  for (const auto& entry : std::filesystem::directory_iterator(WAVEJIT_HOT_LOOPS))
    EXPECT_THAT(named, ::testing::Contains(entry.path().filename().string()));
}

}  // namespace
}  // namespace wavejit::tests
