// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace wavejit::tools {
namespace {

// Every code of both types comes back, NaNs as some NaN.
TEST(HalfTest, EveryCodeRoundTrips) {
  for (const HalfType type : {HalfType::fp16, HalfType::bf16}) {
    for (std::uint32_t code = 0; code < 65536; ++code) {
      const auto bits = static_cast<std::uint16_t>(code);
      const float value = decode(type, bits);
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(decode(type, encode(type, value))));
      } else {
        ASSERT_EQ(encode(type, value), bits) << to_text(type) << " " << code;
      }
    }
  }
}

// The compiler's own binary16, on values of every size.
TEST(HalfTest, Fp16AgreesWithTheCompiler) {
  std::uint32_t state = 1;
  for (int i = 0; i < 500'000; ++i) {
    state = state * 1664525U + 1013904223U;
    const float value = std::bit_cast<float>(state);
    if (std::isnan(value)) continue;
    const auto expected = static_cast<float>(static_cast<_Float16>(value));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(decode(HalfType::fp16, encode(HalfType::fp16, value))),
              std::bit_cast<std::uint32_t>(expected))
        << value;
  }
}

// bfloat16 is the upper half of a float, so rounding is an addition on its bits.
TEST(HalfTest, Bf16AgreesWithIntegerRounding) {
  std::uint32_t state = 2;
  for (int i = 0; i < 500'000; ++i) {
    state = state * 1664525U + 1013904223U;
    const float value = std::bit_cast<float>(state);
    if (std::isnan(value)) continue;
    const auto expected = static_cast<std::uint16_t>((state + 0x7fff + (state >> 16 & 1)) >> 16);
    ASSERT_EQ(encode(HalfType::bf16, value), expected) << value;
  }
}

TEST(HalfTest, TiesGoToEvenAndTheEdgeOverflows) {
  EXPECT_EQ(rounded(HalfType::fp16, 2049.0), 2048.0);
  EXPECT_EQ(rounded(HalfType::fp16, 2051.0), 2052.0);
  EXPECT_EQ(rounded(HalfType::fp16, 65519.99), 65504.0);
  EXPECT_EQ(rounded(HalfType::fp16, 65520.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(rounded(HalfType::fp16, std::ldexp(1.0, -25)), 0.0);
  EXPECT_EQ(rounded(HalfType::fp16, std::ldexp(1.5, -25)), std::ldexp(1.0, -24));
  EXPECT_EQ(encode(HalfType::fp16, -0.0), 0x8000);
  // Not by way of float: 1 + 2^-11 + 2^-40 is above the tie that float would make of it.
  EXPECT_EQ(rounded(HalfType::fp16, 1 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40)), 1 + std::ldexp(1.0, -10));
}

TEST(HalfTest, HalfUlp) {
  EXPECT_EQ(half_ulp(HalfType::fp16, 1.0), std::ldexp(1.0, -11));
  EXPECT_EQ(half_ulp(HalfType::fp16, 1.999), std::ldexp(1.0, -11));
  EXPECT_EQ(half_ulp(HalfType::bf16, 1.0), std::ldexp(1.0, -8));
  EXPECT_EQ(half_ulp(HalfType::fp16, 0.0), std::ldexp(1.0, -25));
}

TEST(HalfTest, Names) {
  for (const HalfType type : {HalfType::fp16, HalfType::bf16}) EXPECT_EQ(parse_half_type(to_text(type)), type);
  EXPECT_FALSE(parse_half_type("fp32"));
}

}  // namespace
}  // namespace wavejit::tools
