// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index queries and keys of 8 bits: float64 element by element, and the bits of the same numbers in bf16.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "attention/schedules.h"
#include "sparse_indexer/indexer_run.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

struct ByteReaders {
  const char* target;
  wavejit_dtype dtype;
  const char* rows;  // that read a tile of keys together
};
Engine engine_of(const ByteReaders& readers) {
  const std::string pin = std::string("auto tile_queries=") + readers.rows;
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.pipeline = pin.c_str();
  return Engine(readers.target, options);
}

class ByteScores : public ::testing::TestWithParam<ByteReaders> {
 protected:
  IndexerOutput run(const IndexerCase& which) {
    IndexerOutput output = run_indexer(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact) << "something outside the outputs was written";
    return output;
  }
  const ByteFormat& format() const { return byte_format(GetParam().dtype); }
  IndexerCase drawn(std::int64_t batch, std::int64_t rows, std::int64_t keys, std::int64_t heads, std::int64_t top,
                    std::uint64_t seed) const {
    return byte_case(format(), batch, rows, keys, heads, top, seed);
  }
  // Float64, and under three orders of waves the bits of bf16, scores and lists.
  void matches(const IndexerCase& which) {
    IndexerCase wide = which;
    wide.bytes = nullptr;
    const IndexerOutput of_wide = run(wide);
    EXPECT_THAT(of_wide.kernel_spec, HasSubstr("sparse_scores bf16 "));
    for (const Schedule& schedule : schedules) {
      set_schedule(schedule.order, schedule.seed);
      const IndexerOutput output = run(which);
      EXPECT_THAT(output.kernel_spec, HasSubstr(std::string("sparse_scores ") + format().name + " "));
      EXPECT_EQ(output.kernel_spec.contains(" shared "), std::string(GetParam().rows) == "4") << output.kernel_spec;
      EXPECT_EQ(wrong_scores(which, output), "");
      EXPECT_EQ(score_bits(output.scores), score_bits(of_wide.scores));
      EXPECT_EQ(output.indices, of_wide.indices);
    }
  }
  static std::vector<float> some_scales(std::int64_t count) {
    std::vector<float> scales;
    for (std::int64_t i = 0; i < count; ++i) scales.push_back(0.003F + (0.0007F * static_cast<float>(i % 77)));
    return scales;
  }

  Engine engine_ = engine_of(GetParam());
};

TEST_P(ByteScores, MatchFloat64AndBf16AtEveryNumberOfHeads) {
  std::uint64_t seed = 300;
  for (const std::int64_t heads : {1, 31, 32, 64, 90, 128}) {
    SCOPED_TRACE(heads);
    IndexerCase which = drawn(2, 3, 70, heads, 9, seed++);
    which.causal = true;
    which.key_scales = some_scales(140);
    matches(which);
  }
}

// Scales stand behind the keys of each page, as DeepSeek's caches have them: 128 bytes and 4 a key.
TEST_P(ByteScores, MatchInPages) {
  for (const int page : {1, 16, 64}) {
    SCOPED_TRACE(page);
    IndexerCase which = drawn(2, 1, 200, 64, 20, 320);
    which.page = page;
    which.key_lengths = {200, 131};
    which.key_scales = some_scales(400);
    matches(which);
  }
}

TEST_P(ByteScores, MatchAtEveryLength) {
  std::uint64_t seed = 340;
  for (const std::int64_t keys : {1, 33, 64, 500}) {
    SCOPED_TRACE(keys);
    matches(drawn(1, 2, keys, 32, 0, seed++));
  }
}

// Every byte, of which some are subnormal and some NaN: what a key holds shows in its own score alone.
TEST_P(ByteScores, OfEveryByte) {
  IndexerCase which = drawn(1, 1, 256, 8, 0, 360);
  for (std::size_t key = 0; key < 256; ++key)
    for (std::size_t d = 0; d < 128; ++d)
      which.key_vectors[(key * 128) + d] = d == key % 128 ? value_of_byte(format(), static_cast<std::uint8_t>(key)) : 0;
  const IndexerOutput output = run(which);
  IndexerCase wide = which;
  wide.bytes = nullptr;
  const IndexerOutput of_wide = run(wide);
  for (std::size_t key = 0; key < 256; ++key) {
    const bool is_nan = std::isnan(value_of_byte(format(), static_cast<std::uint8_t>(key)));
    EXPECT_EQ(std::isnan(output.scores[key]), is_nan) << key;
    if (!is_nan) EXPECT_EQ(output.scores[key], of_wide.scores[key]) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Targets, ByteScores,
    ::testing::Values(ByteReaders{"gfx942", WAVEJIT_E4M3_FNUZ, "1"}, ByteReaders{"gfx942", WAVEJIT_E4M3_FNUZ, "4"},
                      ByteReaders{"gfx950", WAVEJIT_E4M3, "1"}, ByteReaders{"gfx950", WAVEJIT_E4M3, "4"}),
    [](const auto& parameter) { return std::string(parameter.param.target) + "_of_" + parameter.param.rows; });

TEST(ByteScoresRefusals, OfTheOtherTargetByName) {
  for (const auto& [target, dtype, accepted] :
       {std::tuple{"gfx942", WAVEJIT_E4M3, "use queries and keys in e4m3_fnuz, bf16 or fp16"},
        {"gfx950", WAVEJIT_E4M3_FNUZ, "use queries and keys in e4m3, bf16 or fp16"}}) {
    const Engine engine(target);
    const IndexerOutput output = run_indexer(engine.get(), byte_case(byte_format(dtype), 1, 1, 40, 32, 0, 1));
    EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
    EXPECT_THAT(output.detail, HasSubstr(accepted));
  }
}

}  // namespace
}  // namespace wavejit::tests
