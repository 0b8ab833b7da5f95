// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append into 8 bits: every number of the source, quotients beside the middle of two bytes, and bytes of a token that are
// its own. Formats, scales, orders and strides are rows of value_rows.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cache_append/matching.h"
#include "support/byte_floats.h"
#include "targets/targets.h"
#include "templates/cache_append/kernel/arguments.h"

namespace wavejit::tests {
namespace {

using cache_append::DataType;
using ::testing::HasSubstr;

class CacheAppendNarrow : public ::testing::TestWithParam<const char*> {
 protected:
  static const targets::Target& row() { return *targets::find_target(GetParam()); }
  // The dims of a head, which has lanes of one wave.
  static std::int64_t most_dims() { return std::int64_t{cache_append::dims_of_lane} * row().wave_size; }
  // What the target reads.
  static std::vector<wavejit_dtype> formats() {
    if (row().fp8 == targets::Fp8::ocp) return {WAVEJIT_E4M3, WAVEJIT_E5M2, WAVEJIT_INT8};
    return {WAVEJIT_E4M3_FNUZ, WAVEJIT_E5M2_FNUZ, WAVEJIT_INT8};
  }

  AppendOutput matches(const AppendCase& which) { return run_matching(engine_.get(), which); }

  Engine engine_{GetParam()};
};

// Every 16-bit number there is, NaN and infinities included, by scales whose reciprocals are not exact.
TEST_P(CacheAppendNarrow, EveryNumberOfTheSource) {
  for (const DataType type : {DataType::bf16, DataType::fp16})
    for (const wavejit_dtype format : formats()) {
      AppendCase which = {.type = type,
                          .tokens = 16,
                          .heads = 8 * 512 / most_dims(),
                          .key_dims = most_dims(),
                          .value_dims = most_dims(),
                          .pages = 1,
                          .narrow = format,
                          .k_scales = {0.7F},
                          .v_scales = {0x1.fffffep-3F}};
      for (std::int64_t slot = 0; slot < 16; ++slot) which.slots.push_back(slot);
      which = filled(which, 0);
      for (std::size_t at = 0; at < which.k.size(); ++at) {
        which.k[at] = static_cast<std::uint16_t>(at);
        which.v[at] = static_cast<std::uint16_t>(at);
      }
      const AppendOutput output = run_append(engine_.get(), which);
      ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail;
      const AppendOutput wanted = expected_append(which);
      const ByteFormat& bytes = byte_format(format);
      for (std::size_t at = 0; at < wanted.k.size(); ++at) {
        // Which NaN it is, no one promises.
        const auto alike = [&](std::uint16_t found, std::uint16_t byte) {
          const auto value = [&](std::uint16_t of) { return value_of_byte(bytes, static_cast<std::uint8_t>(of)); };
          return found == byte || (std::isnan(value(found)) && std::isnan(value(byte)));
        };
        ASSERT_TRUE(alike(output.k[at], wanted.k[at])) << bytes.name << " of " << at << ": " << output.k[at];
        ASSERT_TRUE(alike(output.v[at], wanted.v[at])) << bytes.name << " of " << at << ": " << output.v[at];
      }
    }
}

// Quotients that are as near to the middle of two bytes as a 16-bit number and a scale can be: what a division of one
// unit's error would get wrong.
TEST_P(CacheAppendNarrow, QuotientsBesideTheMiddle) {
  for (const wavejit_dtype format : formats()) {
    const ByteFormat& bytes = byte_format(format);
    std::vector<float> middles;
    for (int byte = 1; byte < 0x7B; byte += 3) {
      const float low = value_of_byte(bytes, static_cast<std::uint8_t>(byte));
      const float high = value_of_byte(bytes, static_cast<std::uint8_t>(byte + 1));
      if (std::isfinite(low) && std::isfinite(high)) middles.push_back((low + high) / 2);
    }
    // A head a scale, and in it every number for which that scale, or one beside it, makes the quotient a middle.
    AppendCase which = {
        .type = DataType::fp16, .tokens = 8, .heads = 8, .key_dims = 128, .value_dims = 128, .narrow = format};
    for (std::int64_t slot = 0; slot < 8; ++slot) which.slots.push_back(slot);
    which = filled(which, 0);
    for (std::size_t head = 0; head < 8; ++head) {
      const float number = 1.0F + (static_cast<float>((head * 131) + 77) / 1024);
      float scale = number / middles[head * 3 % middles.size()];
      if (head % 3 == 1) scale = std::nextafter(scale, 0.0F);
      if (head % 3 == 2) scale = std::nextafter(scale, std::numeric_limits<float>::infinity());
      which.k_scales.push_back(scale);
      which.v_scales.push_back(scale * 3);
      for (std::size_t token = 0; token < 8; ++token)
        for (std::size_t dim = 0; dim < 128; ++dim) {
          const std::size_t at = (((token * 8) + head) * 128) + dim;
          const float middle = middles[((token * 128) + dim) % middles.size()];
          which.k[at] = to_storage(Storage::fp16, middle * scale);
          which.v[at] = to_storage(Storage::fp16, -middle * scale * 3);
        }
    }
    matches(which);
  }
}

TEST_P(CacheAppendNarrow, BytesOfATokenAreItsOwn) {
  AppendCase which = filled({.batch = 3,
                             .tokens = 11,
                             .heads = 5,
                             .key_dims = 96,
                             .value_dims = 96,
                             .rotary = WAVEJIT_ROTARY_HALVES,
                             .rotary_dims = 64,
                             .base = true,
                             .narrow = formats().front(),
                             .token_scales = true},
                            500);
  std::vector<AppendOutput> outputs;
  for (const auto& [order, seed] :
       {std::pair{WAVEJIT_SIMGPU_IN_ORDER, 1}, {WAVEJIT_SIMGPU_REVERSE, 2}, {WAVEJIT_SIMGPU_RANDOM, 3}}) {
    set_schedule(order, static_cast<std::uint64_t>(seed));
    outputs.push_back(run_append(engine_.get(), which));
    EXPECT_EQ(outputs.back().k, outputs.front().k);
    EXPECT_EQ(outputs.back().k_scales, outputs.front().k_scales);
    EXPECT_TRUE(outputs.back().rest_intact);
  }
  constexpr std::size_t keys = 5 * 96;
  for (const std::size_t token : {0, 10, 11, 32}) {
    AppendCase one = which;
    one.batch = one.tokens = 1;
    one.slots = {17};
    one.positions = {which.positions[token]};
    const auto of_token = [&](const auto& rows, std::size_t row) {
      return std::vector(rows.begin() + static_cast<std::ptrdiff_t>(token * row),
                         rows.begin() + static_cast<std::ptrdiff_t>((token + 1) * row));
    };
    one.k = of_token(which.k, keys);
    one.v = of_token(which.v, keys);
    if (which.slots[token] < 0) continue;
    const AppendOutput alone = run_append(engine_.get(), one);
    EXPECT_EQ(alone.k, of_token(outputs[0].k, keys));
    EXPECT_EQ(alone.k_scales, of_token(outputs[0].k_scales, 5));
  }
}

// The other target's format is none of this one's, which the refusal says.
TEST_P(CacheAppendNarrow, FormatsOfOthersAreRefused) {
  AppendCase which = {.narrow = row().fp8 == targets::Fp8::ocp ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3};
  const AppendOutput output = run_append(engine_.get(), filled(which, 600));
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(output.detail, HasSubstr("; use a cache in e4m3"));
}

INSTANTIATE_TEST_SUITE_P(Targets, CacheAppendNarrow, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
