// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit invariance` on a target that some families have no kernels for: it asks what there is, and says what is not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/part.h"
#include "tool_test_support.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using tests::sampled;

class InvarianceOfATargetInPart : public ::testing::Test {
 protected:
  ScratchDirectory scratch_;

  Outcome invariance(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"invariance", "--device", "sim:gfx1201"});
    return run_program(scratch_, arguments, {{"WAVEJIT_CACHE_DIR", ::getenv("WAVEJIT_KEPT_KERNELS")}});
  }
};

// 720 pairs in the dimensions of which waves of 32 lanes have kernels.
TEST_F(InvarianceOfATargetInPart, NoBitDiffers) {
  std::vector<std::string> words = {"--family", "attention_forward", "--pairs", "60", "--sequences", "60", "--seed",
                                    "5"};
  for (const char* dimension : {"alone", "permuted", "padded", "left-padding", "rechunked", "token-by-token", "splits",
                                "pipeline", "query-tile", "page-size", "page-layout", "hidden"})
    words.insert(words.end(), {"--dimension", dimension});
  const auto outcome = invariance(words);
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("(simulated gfx1201), seed 5: of 720 pairs no bit differs"));
}

// Gradients, in every dimension that the family has; but in ./dev test not in pieces of whole runs, whose one pair
// takes as long as twice the others.
TEST_F(InvarianceOfATargetInPart, NoBitOfAGradientDiffers) {
  std::vector<std::string> words = {"--family", "attention_backward", "--pairs", "3", "--sequences",
                                    "3",        "--longest",          "100"};
  std::vector<std::string> dimensions = {"dq-dk-dv-alone",    "dq-dk-dv-permuted", "dq-dk-dv-padded",
                                         "dq-dk-dv-pipeline", "dq-dk-dv-repeated", "dk-dv-sums",
                                         "dq-rechunked",      "dq-dk-dv-ring"};
  const std::string pairs = sampled() ? "24" : "25";
  if (sampled())
    for (const std::string& dimension : dimensions) words.insert(words.end(), {"--dimension", dimension});
  const auto outcome = invariance(words);
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("(simulated gfx1201), seed 1: of " + pairs + " pairs no bit differs"));
  for (const std::string& dimension : dimensions)
    EXPECT_THAT(outcome.out, ::testing::ContainsRegex("(^|\n)" + dimension + " +3 +0  "));
  EXPECT_EQ(outcome.out.contains("\ndq-dk-dv-runs "), !sampled());
}

TEST_F(InvarianceOfATargetInPart, AControlIsSeen) {
  const auto outcome = invariance({"--dimension", "shifted-chunks", "--pairs", "6"});
  ASSERT_EQ(outcome.code, 1) << outcome.out << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(": 6 of 6 pairs differ"));
}

TEST_F(InvarianceOfATargetInPart, WhatHasNoKernelIsLeftOutUnlessItIsNamed) {
  const auto outcome =
      invariance({"--family", "attention_forward", "--pairs", "2", "--sequences", "2", "--longest", "64"});
  ASSERT_EQ(outcome.code, 0) << outcome.out << outcome.err;
  for (const char* dimension : {"blocks-alone", "queries-alone", "integer-alone", "key-list-walk"})
    EXPECT_THAT(outcome.out,
                ::testing::ContainsRegex("(^|\n)" + std::string(dimension) + " +- +-  no such kernel on this device"));
  EXPECT_THAT(outcome.out, ::testing::ContainsRegex("(^|\n)left-padding +2 +0  "));
  const auto named = invariance({"--dimension", "key-list-walk", "--pairs", "1", "--sequences", "2"});
  EXPECT_EQ(named.code, 4) << named.out;
  EXPECT_THAT(named.err, HasSubstr("a list of keys has no kernel"));
  const auto none = invariance({"--family", "sparse_indexer", "--pairs", "1", "--sequences", "2"});
  EXPECT_EQ(none.code, 4) << none.out;
  EXPECT_THAT(none.err, HasSubstr("sparse_indexer: no pair; 50 batches on this device have nothing to compare"));
}

}  // namespace
}  // namespace wavejit::tools
