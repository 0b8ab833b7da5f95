// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run cache_append`: keys, values and queries from files, the caches and turned queries to files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tool_test_support.h"
#include "tools/npy.h"

namespace wavejit::tools {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<std::string>;

class RunAppendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    write_text(scratch_ / "k.npy", npy_file({1, 4, 2, 32}, k_, {}));
    write_text(scratch_ / "v.npy", npy_file({1, 4, 2, 16}, v_, {}));
    write_text(scratch_ / "q.npy", npy_file({1, 4, 3, 32}, q_, {}));
    numbers("slots.npy", {9, 2, -1, 11});
  }

  void numbers(const char* name, const std::vector<float>& values) {
    const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(values.size())};
    write_text(scratch_ / name, npy_bytes(values, shape));
  }
  Outcome run(Words more) {
    Words words = {"run",      "cache_append",
                   "--k",      scratch_ / "k.npy",
                   "--v",      scratch_ / "v.npy",
                   "--slots",  scratch_ / "slots.npy",
                   "--page",   "4",
                   "--device", "sim:gfx950"};
    words.insert(words.end(), more.begin(), more.end());
    return run_program(scratch_, words);
  }

  ScratchDirectory scratch_;
  std::vector<float> k_ = normal_values({1, 4, 2, 32}, 1);
  std::vector<float> v_ = normal_values({1, 4, 2, 16}, 2);
  std::vector<float> q_ = normal_values({1, 4, 3, 32}, 3);
};

TEST_F(RunAppendTest, WritesTheSlotsThatAreNamed) {
  const Outcome outcome =
      run({"--k-cache", scratch_ / "keys.npy", "--v-cache", scratch_ / "values.npy", "--check", "--repeat", "1"});
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  EXPECT_THAT(outcome.out, HasSubstr("cache_append fp16"));
  EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
  const std::vector<float> keys = floats_of(scratch_ / "keys.npy", "(3, 4, 2, 32)");
  const std::vector<float> values = floats_of(scratch_ / "values.npy", "(3, 4, 2, 16)");
  const auto half = [](float value) { return decode(HalfType::fp16, encode(HalfType::fp16, value)); };
  for (std::size_t slot = 0; slot < 12; ++slot) {
    const int token = slot == 9 ? 0 : slot == 2 ? 1 : slot == 11 ? 3 : -1;
    const auto at = static_cast<std::size_t>(token);
    for (std::size_t i = 0; i < 64; ++i)
      ASSERT_EQ(keys[(slot * 64) + i], token < 0 ? 0.0F : half(k_[(at * 64) + i])) << slot;
    for (std::size_t i = 0; i < 32; ++i)
      ASSERT_EQ(values[(slot * 32) + i], token < 0 ? 0.0F : half(v_[(at * 32) + i])) << slot;
  }
}

TEST_F(RunAppendTest, TurnsKeysAndQueriesByTheirPositions) {
  numbers("positions.npy", {7, 0, 3, 900});
  for (const char* rotary : {"halves", "interleaved"}) {
    const Outcome outcome =
        run({"--q", scratch_ / "q.npy", "--q-out", scratch_ / "turned.npy", "--k-cache", scratch_ / "keys.npy",
             "--rotary", rotary, "--rotary-dim", "16", "--rotary-base", "500", "--positions",
             scratch_ / "positions.npy", "--dtype", "bf16", "--pages", "5", "--check"});
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    EXPECT_EQ(floats_of(scratch_ / "keys.npy", "(5, 4, 2, 32)").size(), 1280U);
    const std::vector<float> turned = floats_of(scratch_ / "turned.npy", "(1, 4, 3, 32)");
    // Pair 1 of head 0 of token 3.
    const bool halves = std::string(rotary) == "halves";
    const std::size_t x = 3 * 96 + (halves ? 1 : 2);
    const std::size_t y = 3 * 96 + (halves ? 9 : 3);
    const double angle = 900 * std::pow(500.0, -2.0 / 16);
    const double wanted = static_cast<double>(q_[x]) * std::cos(angle) - static_cast<double>(q_[y]) * std::sin(angle);
    EXPECT_NEAR(turned[x], wanted, 0.02) << rotary;
  }
}

TEST_F(RunAppendTest, WhatIsWrongIsOneLine) {
  const Outcome nothing = run({});
  expect_one_line_error(nothing, 2);
  EXPECT_THAT(nothing.err, HasSubstr("--k-cache FILE.npy, --v-cache FILE.npy and --q-out FILE.npy are accepted"));
  const Outcome queries = run({"--q-out", scratch_ / "turned.npy"});
  expect_one_line_error(queries, 2);
  EXPECT_THAT(queries.err, HasSubstr("--q-out needs --q FILE.npy"));
  numbers("slots.npy", {1, 2, 1, 3});
  const Outcome twice = run({"--k-cache", scratch_ / "keys.npy"});
  expect_one_line_error(twice, 3);
  EXPECT_THAT(twice.err, HasSubstr("tokens 0 and 2 both have slot 1"));
  numbers("slots.npy", {1, 2.5F, 0, 3});
  EXPECT_THAT(run({"--k-cache", scratch_ / "keys.npy"}).err, HasSubstr("it has 2.5; whole numbers"));
}

}  // namespace
}  // namespace wavejit::tools
