// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "vocabulary/nearest_word.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace wavejit::vocabulary {
namespace {

TEST(NearestWordTest, CountsLetters) {
  EXPECT_EQ(mistakes_between("causal", "causal"), 0U);
  EXPECT_EQ(mistakes_between("causl", "causal"), 1U);
  EXPECT_EQ(mistakes_between("casual", "causal"), 1U) << "neighbours in turn are one mistake";
  EXPECT_EQ(mistakes_between("causes", "causal"), 2U);
  EXPECT_EQ(mistakes_between("", "causal"), 6U);
  EXPECT_EQ(mistakes_between("causal", ""), 6U);
}

TEST(NearestWordTest, IsTheWordWithTheFewestMistakes) {
  constexpr std::array<std::string_view, 4> words = {"races", "barriers", "attention_forward", "attention_merge"};
  EXPECT_EQ(nearest_word("race", words), "races");
  EXPECT_EQ(nearest_word("bariers", words), "barriers");
  EXPECT_EQ(nearest_word("attention", words), "attention_merge") << "begins two, and lacks fewer letters of this one";
  EXPECT_EQ(nearest_word("bar", words), "barriers");
  EXPECT_EQ(nearest_word("ba", words), "") << "two letters begin too many words";
  EXPECT_EQ(nearest_word("riers", words), "") << "more than a third is missing";
  EXPECT_EQ(nearest_word("", words), "");
  EXPECT_EQ(nearest_word(std::string(65, 'a'), words), "");
}

TEST(NearestWordTest, IsAskedFor) {
  EXPECT_EQ(did_you_mean("explian", std::array<std::string_view, 2>{"run", "explain"}), " (did you mean 'explain'?)");
  EXPECT_EQ(did_you_mean("explian", std::array<std::string, 2>{"run", "explain"}), " (did you mean 'explain'?)");
  EXPECT_EQ(did_you_mean("frobnicate", std::array<std::string_view, 2>{"run", "explain"}), "");
}

TEST(NearestWordTest, StandsInPlaceOfTheList) {
  const std::vector<std::string> few = {"run", "explain"};
  EXPECT_EQ(meant_or_list("explian", few, "`x`"), " (did you mean 'explain'?); `x` lists all");
  EXPECT_EQ(meant_or_list("frobnicate", few, "`x`"), "; run, explain are");
  EXPECT_EQ(meant_or_list("frobnicate", std::vector<std::string>{"run"}, "`x`"), "; run is");
  const std::vector<std::string> many(100, "explain");
  EXPECT_EQ(meant_or_list("frobnicate", many, "`x`"), "; `x` lists all");
  EXPECT_EQ(meant_or_list("frobnicate", many, {}), "");
}

}  // namespace
}  // namespace wavejit::vocabulary
