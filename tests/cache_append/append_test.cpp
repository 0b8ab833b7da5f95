// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append on the simulated GPU: every element's bits, in its slot and nowhere else, whatever the batch, the pages
// and the strides; a base's angles against float64.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "cache_append/append_run.h"
#include "targets/targets.h"
#include "templates/cache_append/kernel/arguments.h"
#include "templates/cache_append/program/reference.h"

namespace wavejit::tests {
namespace {

using cache_append::DataType;
using ::testing::HasSubstr;
using Order = AppendCase::Order;

class CacheAppend : public ::testing::TestWithParam<const char*> {
 protected:
  // The dims of a head, which has lanes of one wave.
  static std::int64_t most_dims() {
    return std::int64_t{cache_append::dims_of_lane} * targets::find_target(GetParam())->wave_size;
  }
  AppendOutput run(const AppendCase& which) {
    AppendOutput output = run_append(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.rest_intact) << "something that no token names was written";
    return output;
  }

  AppendOutput matches(const AppendCase& which) {
    AppendOutput output = run(which);
    const AppendOutput wanted = expected_append(which);
    EXPECT_EQ(output.k, wanted.k);
    EXPECT_EQ(output.v, wanted.v);
    EXPECT_EQ(output.q, wanted.q);
    return output;
  }

  Engine engine_{GetParam()};
};

TEST_P(CacheAppend, EveryDimsAndHeads) {
  std::uint64_t seed = 1;
  for (const DataType type : {DataType::bf16, DataType::fp16})
    for (const auto& [dims, heads] : std::vector<std::pair<std::int64_t, std::int64_t>>{
             {8, 1}, {40, 3}, {64, 9}, {80, 2}, {128, 8}, {192, 3}, {256, 5}, {512, 2}}) {
      SCOPED_TRACE(dims);
      if (dims > most_dims()) {
        const AppendOutput refused =
            run_append(engine_.get(),
                       filled({.type = type, .tokens = 9, .heads = heads, .key_dims = dims, .value_dims = 64}, seed));
        EXPECT_EQ(refused.status, WAVEJIT_UNSUPPORTED);
        EXPECT_THAT(refused.detail, HasSubstr("of 512 dims has no kernel where waves have 32 lanes"));
        continue;
      }
      matches(filled({.type = type,
                      .batch = 2,
                      .tokens = 9,
                      .heads = heads,
                      .key_dims = dims,
                      .value_dims = dims == 128 ? 64 : dims,
                      .wide_slots = heads % 2 == 0},
                     seed++));
    }
}

TEST_P(CacheAppend, EveryOrderOfPages) {
  const AppendCase plain = {.tokens = 21, .heads = 3, .key_dims = 64, .value_dims = 32, .pages = 3, .page_size = 32};
  for (const Order order : {Order::nhd, Order::hnd, Order::dims_apart}) {
    AppendCase which = plain;
    which.keys = which.values = order;
    const AppendOutput output = matches(filled(which, 20));
    EXPECT_THAT(output.kernel_spec,
                HasSubstr(order == Order::dims_apart ? "keys=elements values=elements" : "keys=vectors"));
  }
  for (const auto& [layout, values] : {std::pair{WAVEJIT_PAGES_VECTORISED, Order::values_by_dims},
                                       {WAVEJIT_PAGES_VECTORISED_KEYS, Order::values_by_keys}}) {
    AppendCase which = plain;
    which.page_layout = layout;
    which.keys = Order::keys_in_units;
    which.values = values;
    matches(filled(which, 21));
  }
  // Pages of one key, of a number that divides nothing, and a dense cache, whose page is a sequence.
  for (const std::int64_t page : {1, 5, 96}) {
    AppendCase which = plain;
    which.pages = 96 / page;
    which.page_size = page;
    matches(filled(which, 22));
  }
}

TEST_P(CacheAppend, RowsOfAnyStrides) {
  AppendCase which = filled({.batch = 3, .tokens = 5, .heads = 2, .source = Order::hnd}, 30);
  EXPECT_THAT(matches(which).kernel_spec, HasSubstr("source=vectors"));
  which.source = Order::dims_apart;
  EXPECT_THAT(matches(which).kernel_spec, HasSubstr("source=elements"));
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

TEST_P(CacheAppend, RotaryToTheBit) {
  std::uint64_t seed = 50;
  for (const DataType type : {DataType::bf16, DataType::fp16})
    for (const std::int32_t rotary : {WAVEJIT_ROTARY_HALVES, WAVEJIT_ROTARY_INTERLEAVED})
      for (const std::int64_t dims : {16, 48, 64, 128}) {
        SCOPED_TRACE(std::to_string(rotary) + " " + std::to_string(dims));
        AppendCase which = filled({.type = type,
                                   .batch = 2,
                                   .tokens = 7,
                                   .heads = 3,
                                   .query_heads = 5,
                                   .key_dims = 128,
                                   .rotary = rotary,
                                   .rotary_dims = dims},
                                  seed++);
        which.positions[3] = which.table_rows;  // beyond the tables: cosines and sines of 0
        which.positions[4] = -1;
        matches(which);
        which.in_place = true;
        matches(which);
        which.source = Order::dims_apart;
        matches(which);
      }
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
