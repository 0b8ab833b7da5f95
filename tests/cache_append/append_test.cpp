// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append on the simulated GPU: what is no slot, NaN and infinities, a base's angles against float64, and bits of a token
// that are its own. Every element's bits are rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cache_append/matching.h"
#include "templates/cache_append/program/reference.h"

namespace wavejit::tests {
namespace {

using cache_append::DataType;
using ::testing::HasSubstr;

class CacheAppend : public ::testing::TestWithParam<const char*> {
 protected:
  AppendOutput run(const AppendCase& which) { return run_well(engine_.get(), which); }
  AppendOutput matches(const AppendCase& which) { return run_matching(engine_.get(), which); }

  Engine engine_{GetParam()};
};

// A head has lanes of one wave.
TEST(CacheAppendRefusals, OfHeadsBeyondAWave) {
  const Engine engine("gfx1201");
  const AppendOutput refused = run_append(engine.get(), filled({.tokens = 9, .heads = 2, .key_dims = 512}, 8));
  EXPECT_EQ(refused.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(refused.detail, HasSubstr("of 512 dims has no kernel where waves have 32 lanes"));
}

// Numbers that are no slots of the cache, of either width: also those whose lower half would be one.
TEST_P(CacheAppend, WhatIsNoSlotIsNotWritten) {
  AppendCase which = {.tokens = 8, .pages = 4, .page_size = 16};
  which.slots = {-1, 64, 63, -64, (std::int64_t{1} << 32) + 5, INT64_MIN, INT64_MAX, 0};
  matches(filled(which, 40));
  which.wide_slots = false;
  which.slots = {-1, 64, 63, -64, INT32_MAX, INT32_MIN, 1, 0};
  matches(filled(which, 41));
}

// Infinities and NaN stay what arithmetic makes of them, and dims that are not turned keep their bits.
TEST_P(CacheAppend, NanAndInfinity) {
  for (const DataType type : {DataType::bf16, DataType::fp16}) {
    AppendCase which = filled({.type = type,
                               .tokens = 2,
                               .key_dims = 64,
                               .slots = {5, 9},
                               .rotary = WAVEJIT_ROTARY_HALVES,
                               .rotary_dims = 32},
                              60);
    const std::uint16_t infinity = type == DataType::bf16 ? 0x7F80 : 0x7C00;
    which.k[0] = infinity;
    which.k[1] = infinity | 1;        // a signalling NaN
    which.k[40] = infinity | 0x8001;  // behind those that are turned
    which.k[41] = 0x8000;
    which.k[42] = 1;
    const AppendOutput output = run(which);
    EXPECT_EQ(output.k[40], which.k[40]);
    EXPECT_EQ(output.k[41], which.k[41]);
    EXPECT_EQ(output.k[42], which.k[42]);
    EXPECT_EQ(output.k[0] & infinity, infinity);
    EXPECT_EQ(output.k[1] & infinity, infinity);
    EXPECT_NE(output.k[1] & (infinity ^ 0x7FFF), 0);
    EXPECT_NE(output.k[17] & (infinity ^ 0x7FFF), 0) << "turned with a NaN";
    EXPECT_EQ(output.k[2], turned_bits(which, which.k, 1, 64)[2]);
  }
}

// From a base at positions of every size: the angle is exact to a part of 2^32 of a revolution, whatever the position.
TEST_P(CacheAppend, AnglesOfABase) {
  AppendCase which = {.type = DataType::fp16,
                      .tokens = 7,
                      .heads = 1,
                      .key_dims = 128,
                      .slots = {0, 1, 2, 3, 4, 5, 6},
                      .rotary = WAVEJIT_ROTARY_HALVES,
                      .rotary_dims = 128,
                      .base = true,
                      .positions = {0, 1, 2, 1000, 131071, 10000000, 2147483647}};
  for (const std::int32_t rotary : {WAVEJIT_ROTARY_HALVES, WAVEJIT_ROTARY_INTERLEAVED}) {
    which.rotary = rotary;
    which = filled(which, 70);
    const AppendOutput output = run(which);
    for (std::size_t token = 0; token < 7; ++token) {
      std::vector<float> head;
      for (std::size_t dim = 0; dim < 128; ++dim)
        head.push_back(from_storage(Storage::fp16, which.k[(token * 128) + dim]));
      for (std::int64_t dim = 0; dim < 128; ++dim) {
        const auto exact =
            cache_append::program::turned(head, dim, 128, rotary == WAVEJIT_ROTARY_INTERLEAVED, [&](std::int64_t pair) {
              return cache_append::program::angle_of_base(which.positions[token], 10000, pair, 128);
            });
        const float found = from_storage(Storage::fp16, output.k[(token * 128) + static_cast<std::size_t>(dim)]);
        // Half a unit of fp16. Of the angle: float64 rounds a product of 31 bits of position by 2^-22 of it at most.
        const double bound = (std::fabs(exact.value) * 0x1p-11) + 0x1p-25 + (exact.magnitude * 0x1p-19);
        ASSERT_NEAR(found, exact.value, bound) << "position " << which.positions[token] << ", dim " << dim;
      }
    }
  }
}

// A token's bits are its own: alone, in a batch, in another place, under every order of waves.
TEST_P(CacheAppend, BitsOfATokenAreItsOwn) {
  AppendCase which = filled({.batch = 3,
                             .tokens = 11,
                             .heads = 5,
                             .query_heads = 3,
                             .key_dims = 96,
                             .value_dims = 96,
                             .rotary = WAVEJIT_ROTARY_HALVES,
                             .rotary_dims = 64,
                             .base = true},
                            80);
  std::vector<AppendOutput> outputs;
  for (const auto& [order, seed] :
       {std::pair{WAVEJIT_SIMGPU_IN_ORDER, 1}, {WAVEJIT_SIMGPU_REVERSE, 2}, {WAVEJIT_SIMGPU_RANDOM, 3}}) {
    set_schedule(order, static_cast<std::uint64_t>(seed));
    outputs.push_back(run(which));
    EXPECT_EQ(outputs.back().k, outputs.front().k);
    EXPECT_EQ(outputs.back().q, outputs.front().q);
  }
  set_schedule(WAVEJIT_SIMGPU_REVERSE, 2);
  const std::size_t keys = 5 * 96;
  const std::size_t queries = 3 * 96;
  for (const std::size_t token : {0, 10, 11, 32}) {
    SCOPED_TRACE(token);
    const auto of_token = [&](const std::vector<std::uint16_t>& rows, std::size_t row) {
      return std::vector(rows.begin() + static_cast<std::ptrdiff_t>(token * row),
                         rows.begin() + static_cast<std::ptrdiff_t>((token + 1) * row));
    };
    AppendCase one = which;
    one.batch = one.tokens = 1;
    one.k = of_token(which.k, keys);
    one.v = of_token(which.v, keys);
    one.q = of_token(which.q, queries);
    one.slots = {17};
    one.positions = {which.positions[token]};
    const AppendOutput alone = run(one);
    if (which.slots[token] >= 0) {
      EXPECT_EQ(alone.k, of_token(outputs[0].k, keys));
    }
    EXPECT_EQ(alone.q, of_token(outputs[0].q, queries));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, CacheAppend, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
