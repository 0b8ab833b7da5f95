// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Index queries and keys of 8 bits: every byte, and what is refused. Against float64 and bf16 they are rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

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

  Engine engine_ = engine_of(GetParam());
};

// Every byte, of which some are subnormal and some NaN: what a key holds shows in its own score alone.
TEST_P(ByteScores, OfEveryByte) {
  IndexerCase which = byte_case(format(), 1, 1, 256, 8, 0, 360);
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
