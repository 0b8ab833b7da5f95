// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run cache_append`: keys, values and queries from files, the caches and turned queries to files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <type_traits>

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
  // As NumPy saves integers: `dtype` "<i8", "<i4", ">i4".
  template <typename Integer>
  void integers(const char* name, const std::string& dtype, const std::vector<Integer>& values) {
    std::string data;
    for (Integer value : values) {
      if (dtype[0] == '>')
        value = static_cast<Integer>(std::byteswap(static_cast<std::make_unsigned_t<Integer>>(value)));
      data.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
    write_text(scratch_ / name, npy_with_header("{'descr': '" + dtype + "', 'fortran_order': False, 'shape': (" +
                                                    std::to_string(values.size()) + ",), }",
                                                data));
  }
  Outcome run(const Words& more) { return run("sim:gfx950", more); }
  Outcome run(const char* device, const Words& more) {
    Words words = {"run",      "cache_append",
                   "--k",      scratch_ / "k.npy",
                   "--v",      scratch_ / "v.npy",
                   "--slots",  scratch_ / "slots.npy",
                   "--page",   "4",
                   "--device", device};
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

// Numbers of 8 bits stand in the files as they do in the cache: they count in their scales.
TEST_F(RunAppendTest, ACacheOfIntegersCountsInGivenScales) {
  numbers("k_scale.npy", {0.03F, 0.05F});
  numbers("v_scale.npy", {0.04F});
  for (const char* device : {"sim:gfx942", "sim:gfx950"}) {
    const Outcome outcome = run(
        device, {"--cache-dtype", "i8", "--k-scale", scratch_ / "k_scale.npy", "--v-scale", scratch_ / "v_scale.npy",
                 "--k-cache", scratch_ / "keys.npy", "--v-cache", scratch_ / "values.npy", "--check", "--repeat", "1"});
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("cache=i8"));
    EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
    const std::vector<float> keys = floats_of(scratch_ / "keys.npy", "(3, 4, 2, 32)");
    const std::vector<float> values = floats_of(scratch_ / "values.npy", "(3, 4, 2, 16)");
    for (std::size_t i = 0; i < 64; ++i)  // token 0
      ASSERT_NEAR(keys[(9 * 64) + i], std::clamp(k_[i] / (i < 32 ? 0.03F : 0.05F), -128.0F, 127.0F), 0.55) << i;
    for (std::size_t i = 0; i < 32; ++i)
      ASSERT_NEAR(values[(9 * 32) + i], std::clamp(v_[i] / 0.04F, -128.0F, 127.0F), 0.55) << i;
    for (std::size_t i = 0; i < 64; ++i) ASSERT_EQ(keys[(10 * 64) + i], 0.0F);
    const Outcome turned = run(device, {"--cache-dtype", "i8", "--q", scratch_ / "q.npy", "--q-out",
                                        scratch_ / "turned.npy", "--rotary", "halves", "--check"});
    ASSERT_EQ(turned.code, 0) << turned.err << turned.out;
    EXPECT_EQ(floats_of(scratch_ / "turned.npy", "(1, 4, 3, 32)").size(), q_.size());
  }
}

TEST_F(RunAppendTest, ScalesOfTokensAreFoundAndWritten) {
  for (const auto& [device, format] : {std::pair("sim:gfx942", "e4m3_fnuz"), {"sim:gfx950", "e5m2"}}) {
    const Outcome outcome =
        run(device, {"--cache-dtype", format, "--token-scales", "--k-cache", scratch_ / "keys.npy", "--k-scale-out",
                     scratch_ / "ks.npy", "--v-scale-out", scratch_ / "vs.npy", "--check"});
    ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
    EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
    const std::vector<float> keys = floats_of(scratch_ / "keys.npy", "(3, 4, 2, 32)");
    const std::vector<float> scales = floats_of(scratch_ / "ks.npy", "(3, 4, 2)");
    EXPECT_EQ(floats_of(scratch_ / "vs.npy", "(3, 4, 2)").size(), scales.size());
    for (std::size_t head = 0; head < 2; ++head) {  // of token 1, in slot 2
      EXPECT_GT(scales[4 + head], 0.0F);
      for (std::size_t dim = 0; dim < 32; ++dim) {
        const float wanted = k_[64 + (head * 32) + dim];
        ASSERT_NEAR(keys[(2 * 64) + (head * 32) + dim] * scales[4 + head], wanted, std::fabs(wanted) / 7 + 1e-3);
      }
    }
    EXPECT_EQ(scales[0], 0.0F) << "slot 0 is nobody's";
  }
}

TEST_F(RunAppendTest, RowsOfLatentAttentionHaveTheirScales) {
  const std::vector<float> rope = normal_values({1, 4, 1, 64}, 4);
  write_text(scratch_ / "k.npy", npy_file({1, 4, 1, 64}, rope, {}));
  for (const auto& [tile, dims, tiles] : {std::tuple(128, 512, 4), {64, 448, 7}}) {
    const std::vector<float> latent = normal_values({1, 4, 1, dims}, 5);
    write_text(scratch_ / "v.npy", npy_file({1, 4, 1, dims}, latent, {}));
    for (const auto& [device, format] : {std::pair("sim:gfx942", "e4m3_fnuz"), {"sim:gfx950", "e4m3"}}) {
      const Outcome outcome = run(device, {"--cache-dtype", format, "--row-scales", std::to_string(tile), "--k-cache",
                                           scratch_ / "rope.npy", "--v-cache", scratch_ / "latent.npy", "--v-scale-out",
                                           scratch_ / "scales.npy", "--dtype", "bf16", "--check"});
      ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
      EXPECT_THAT(outcome.out, HasSubstr("check    passed"));
      const std::vector<float> ropes = floats_of(scratch_ / "rope.npy", "(3, 4, 1, 64)");
      const std::vector<float> latents = floats_of(scratch_ / "latent.npy", "(3, 4, 1, " + std::to_string(dims) + ")");
      const std::vector<float> scales = floats_of(scratch_ / "scales.npy", "(3, 4, " + std::to_string(tiles) + ")");
      for (std::size_t dim = 0; dim < 64; ++dim)  // of token 3, in slot 11
        ASSERT_EQ(ropes[(11 * 64) + dim], decode(HalfType::bf16, encode(HalfType::bf16, rope[(3 * 64) + dim])));
      const auto count = static_cast<std::size_t>(dims);
      for (std::size_t dim = 0; dim < count; ++dim) {
        const float wanted = latent[(3 * count) + dim];
        const float scale = scales[(11 * static_cast<std::size_t>(tiles)) + (dim / static_cast<std::size_t>(tile))];
        ASSERT_NEAR(latents[(11 * count) + dim] * scale, wanted, std::fabs(wanted) / 14 + 2e-3) << dim;
      }
    }
  }
}

TEST_F(RunAppendTest, WordsOf8BitsThatDoNotFitAreNamed) {
  numbers("scale.npy", {0.5F, 0.25F, 1});
  const std::string keys = scratch_ / "keys.npy";
  const auto wrong = [&](Words words, int code, const char* named) {
    words.insert(words.end(), {"--k-cache", keys});
    const Outcome outcome = run(words);
    expect_one_line_error(outcome, code);
    EXPECT_THAT(outcome.err, HasSubstr(named));
  };
  wrong({"--token-scales"}, 2, "--token-scales needs --cache-dtype e4m3, e5m2, e4m3_fnuz, e5m2_fnuz or i8");
  wrong({"--row-scales", "128"}, 2, "--row-scales needs --cache-dtype");
  wrong({"--k-scale", scratch_ / "scale.npy"}, 2, "--k-scale needs --cache-dtype");
  wrong({"--cache-dtype", "i8", "--k-scale", scratch_ / "scale.npy"}, 3,
        "it has 3 numbers; 1 and 2, one for each head");
  wrong({"--cache-dtype", "i8", "--k-scale", scratch_ / "scale.npy", "--token-scales"}, 2, "scales are found");
  wrong({"--cache-dtype", "e4m3", "--k-scale-out", scratch_ / "s.npy"}, 2,
        "--k-scale-out needs --token-scales or --row-scales");
  wrong({"--cache-dtype", "e4m3", "--row-scales", "128"}, 2, "k has 2 heads of 32 dims, v 16; 1 head of 64 and 512");
  wrong({"--cache-dtype", "e4m3_fnuz"}, 4, "e4m3_fnuz");  // the library's: gfx950 reads other formats
  numbers("scale.npy", {0.5F, -1});
  wrong({"--cache-dtype", "i8", "--k-scale", scratch_ / "scale.npy"}, 3, "it has -1; finite numbers above 0");
  numbers("positions.npy", {7, 0, -3, 100});
  wrong({"--rotary", "halves", "--positions", scratch_ / "positions.npy"}, 3,
        "positions.npy: it has -3; whole numbers from 0 are accepted");
}

// As torch and NumPy have them, whose slots and positions are integers.
TEST_F(RunAppendTest, SlotsAndPositionsAreIntegers) {
  const Words asked = {
      "--k-cache", scratch_ / "keys.npy", "--positions", scratch_ / "positions.npy", "--rotary", "halves", "--repeat",
      "1"};
  const auto keys = [&] {
    const Outcome outcome = run(asked);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return read_text(scratch_ / "keys.npy");
  };
  numbers("positions.npy", {7, 0, 3, 100});
  const std::string floats = keys();
  integers<std::int64_t>("slots.npy", "<i8", {9, 2, -1, 11});
  integers<std::int32_t>("positions.npy", "<i4", {7, 0, 3, 100});
  EXPECT_EQ(keys(), floats);
  integers<std::int32_t>("slots.npy", ">i4", {9, 2, -1, 11});
  integers<std::uint8_t>("positions.npy", "|u1", {7, 0, 3, 100});
  EXPECT_EQ(keys(), floats);
  integers<std::int64_t>("slots.npy", "<i8", {9, 2, std::int64_t{1} << 40, 11});
  EXPECT_THAT(run(asked).err, HasSubstr("slots.npy: it has 1099511627776; whole numbers to 16777216 are accepted"));
  integers<std::int16_t>("slots.npy", "<i2", {9, 2, -1, 11});
  EXPECT_THAT(run(asked).err, HasSubstr("its dtype is '<i2'; int32, int64, bool and float32 are accepted"));
}

TEST_F(RunAppendTest, WhatIsWrongIsOneLine) {
  const Outcome nothing = run({});
  expect_one_line_error(nothing, 2);
  EXPECT_THAT(nothing.err,
              HasSubstr("--k-cache, --v-cache, --q-out, --k-scale-out and --v-scale-out FILE.npy are accepted"));
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
