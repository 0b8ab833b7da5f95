// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "corpus.h"

namespace wavejit::hip_kernels {
namespace {

using half = _Float16;
using Limits = std::numeric_limits<float>;

// Numbers that arithmetic treats in a way of its own, before random bit patterns.
std::vector<float> special_floats() {
  return {0.0F,
          -0.0F,
          1.0F,
          -1.0F,
          Limits::min(),
          Limits::denorm_min(),
          -Limits::denorm_min(),
          Limits::max(),
          -Limits::max(),
          Limits::infinity(),
          -Limits::infinity(),
          Limits::quiet_NaN(),
          0.5F,
          1.5F,
          2.5F,
          -2.5F,
          65504.0F,
          65520.0F,
          0x1p-14F,
          0x1p-24F,
          0x1p-25F,
          0x1.8p-25F,
          2147483520.0F,
          2147483648.0F,
          -2147483648.0F,
          4294967040.0F,
          4294967296.0F,
          448.0F,
          464.0F,
          240.0F,
          248.0F,
          57344.0F};
}

std::vector<float> mixed_floats(std::mt19937& random, std::size_t count) {
  std::vector<float> values = special_floats();
  while (values.size() < count) values.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(random())));
  return values;
}

TEST_P(Corpus, divide_i32) {
  constexpr std::uint32_t n = 700;
  auto a = random_ints(n, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
  auto b = random_ints(n, -100000, 100000);
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i % 3 == 0) b[i] >>= 8;
    if (b[i] == 0) b[i] = 1;
  }
  a[0] = std::numeric_limits<int>::min();
  b[0] = 3;
  Buffer<int> dividend(a);
  Buffer<int> divisor(b);
  Buffer<int> quotient(n);
  Buffer<int> remainder(n);
  launch("arithmetic", "divide_i32", {3}, {256}, 0, dividend.get(), divisor.get(), quotient.get(), remainder.get(), n);
  std::vector<int> quotients(n);
  std::vector<int> remainders(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    quotients[i] = a[i] / b[i];
    remainders[i] = a[i] % b[i];
  }
  expect_same(quotient.read(), quotients, "quotient");
  expect_same(remainder.read(), remainders, "remainder");
}

TEST_P(Corpus, divide_u32) {
  constexpr std::uint32_t n = 700;
  const auto a = random_words(n);
  auto b = random_words(n);
  for (std::uint32_t i = 0; i < n; ++i) b[i] = std::max(1U, b[i] >> i % 32);
  Buffer<std::uint32_t> dividend(a);
  Buffer<std::uint32_t> divisor(b);
  Buffer<std::uint32_t> quotient(n);
  Buffer<std::uint32_t> by_constant(n);
  launch("arithmetic", "divide_u32", {3}, {256}, 0, dividend.get(), divisor.get(), quotient.get(), by_constant.get(),
         n);
  std::vector<std::uint32_t> quotients(n);
  std::vector<std::uint32_t> constants(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    quotients[i] = a[i] / b[i] + a[i] % b[i];
    constants[i] = a[i] / 7 + a[i] % 1000003 * (a[i] / 641);
  }
  expect_same(quotient.read(), quotients, "quotient");
  expect_same(by_constant.read(), constants, "by constant");
}

TEST_P(Corpus, divide_i64) {
  constexpr std::uint32_t n = 500;
  std::vector<std::int64_t> a(n);
  std::vector<std::int64_t> b(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    a[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(random()) << 32 | random());
    b[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(random()) << 32 | random()) >> i % 60;
    if (b[i] == 0) b[i] = -1;
    if (i % 5 == 0) a[i] >>= 40;  // both halves of the compiler's two paths
  }
  Buffer<std::int64_t> dividend(a);
  Buffer<std::int64_t> divisor(b);
  Buffer<std::int64_t> quotient(n);
  Buffer<std::uint64_t> remainder(n);
  launch("arithmetic", "divide_i64", {2}, {256}, 0, dividend.get(), divisor.get(), quotient.get(), remainder.get(), n);
  std::vector<std::int64_t> quotients(n);
  std::vector<std::uint64_t> remainders(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    quotients[i] = a[i] / b[i];
    remainders[i] = static_cast<std::uint64_t>(a[i]) % static_cast<std::uint64_t>(b[i]);
  }
  expect_same(quotient.read(), quotients, "quotient");
  expect_same(remainder.read(), remainders, "remainder");
}

TEST_P(Corpus, divide_f32) {
  constexpr std::uint32_t n = 1500;
  const auto a = mixed_floats(random, n);
  auto b = mixed_floats(random, n);
  std::ranges::shuffle(b, random);
  Buffer<float> dividend(a);
  Buffer<float> divisor(b);
  Buffer<float> quotient(n);
  Buffer<float> root(n);
  launch("arithmetic", "divide_f32", {6}, {256}, 0, dividend.get(), divisor.get(), quotient.get(), root.get(), n);
  std::vector<float> quotients(n);
  std::vector<float> roots(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    quotients[i] = a[i] / b[i];
    roots[i] = std::sqrt(std::fabs(a[i]));
  }
  expect_same(quotient.read(), quotients, "quotient");
  expect_same(root.read(), roots, "root");
}

TEST_P(Corpus, double_arithmetic) {
  constexpr std::uint32_t n = 400;
  std::vector<double> a(n);
  std::vector<double> b(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    a[i] = std::ldexp(static_cast<double>(static_cast<std::int32_t>(random())) + random() * 0x1p-32,
                      static_cast<int>(i % 40) - 30);
    b[i] = std::ldexp(static_cast<double>(static_cast<std::int32_t>(random() | 1)), static_cast<int>(i % 7) - 6);
  }
  a[0] = 0.0;
  a[1] = -0.0;
  a[2] = 1e300;
  b[2] = -0.125;
  a[3] = 5e-324;
  Buffer<double> left(a);
  Buffer<double> right(b);
  Buffer<double> to(8 * n);
  launch("arithmetic", "double_arithmetic", {2}, {256}, 0, left.get(), right.get(), to.get(), n);
  std::vector<double> expected(8 * n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const double x = a[i];
    const double y = b[i];
    double* o = expected.data() + 8 * i;
    o[0] = x + y;
    o[1] = x * y - x;
    o[2] = x / y;
    o[3] = std::sqrt(std::fabs(x));
    o[4] = std::fma(x, y, -x * y);
    o[5] = x < y ? std::floor(x) : std::trunc(y);
    o[6] = static_cast<double>(static_cast<float>(x)) + static_cast<double>(static_cast<int>(y));
    o[7] = std::fmin(x, y) + std::rint(x) + static_cast<double>(i * 2654435761U);
  }
  expect_same(to.read(), expected, "double");
}

TEST_P(Corpus, bit_tricks) {
  constexpr std::uint32_t n = 400;
  auto in = random_words(n);
  in[0] = 0;
  in[1] = 0xffffffff;
  in[2] = 1;
  in[3] = 0x80000000;
  Buffer<std::uint32_t> from(in);
  Buffer<std::uint32_t> to(12 * n);
  launch("arithmetic", "bit_tricks", {2}, {256}, 0, from.get(), to.get(), n);
  std::vector<std::uint32_t> expected(12 * n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const std::uint32_t x = in[i];
    const std::uint64_t wide =
        (static_cast<std::uint64_t>(x) << 32 | static_cast<std::uint32_t>(~x)) * 0x9e3779b97f4a7c15ULL;
    std::uint32_t* o = expected.data() + 12 * i;
    o[0] = static_cast<std::uint32_t>(std::popcount(x));
    o[1] = static_cast<std::uint32_t>(std::countl_zero(x));
    o[2] = static_cast<std::uint32_t>(std::countr_zero(x));
    for (std::uint32_t bit = 0; bit < 32; ++bit) o[3] |= (x >> bit & 1) << (31 - bit);
    o[4] = __builtin_bswap32(x);
    o[5] = std::rotl(x, static_cast<int>(i % 32));
    o[6] = (x >> (i % 27) & 0x1f) + (static_cast<std::uint32_t>(static_cast<int>(x << 7) >> 20) & 0xffff);
    o[7] = static_cast<std::uint32_t>(std::popcount(wide)) + static_cast<std::uint32_t>(std::countl_zero(wide | 1));
    o[8] = static_cast<std::uint32_t>(wide >> (i % 64));
    o[9] = static_cast<std::uint32_t>((static_cast<std::uint64_t>(x) * (x ^ 0x5bd1e995U)) >> 32);
    o[10] = (x & 0xff00ff00U) >> 8 | (x & 0x00ff00ffU) << 8;
    o[11] = static_cast<std::uint32_t>(static_cast<std::int64_t>(wide) >> (i % 63)) ^
            static_cast<std::uint32_t>(wide << (i % 13) >> 17);
  }
  expect_same(to.read(), expected, "bits");
}

TEST_P(Corpus, small_integers) {
  constexpr std::uint32_t n = 600;
  std::vector<std::uint8_t> a(n);
  std::vector<std::int8_t> b(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    a[i] = static_cast<std::uint8_t>(random());
    b[i] = static_cast<std::int8_t>(random());
  }
  Buffer<std::uint8_t> left(a);
  Buffer<std::int8_t> right(b);
  Buffer<std::uint8_t> bytes(n);
  Buffer<std::int16_t> shorts(n);
  launch("arithmetic", "small_integers", {3}, {256}, 0, left.get(), right.get(), bytes.get(), shorts.get(), n);
  std::vector<std::uint8_t> expected_bytes(n);
  std::vector<std::int16_t> expected_shorts(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    expected_bytes[i] = static_cast<std::uint8_t>(std::clamp(a[i] + b[i], 0, 255));
    const auto product = static_cast<std::int16_t>(a[i] * b[i]);
    expected_shorts[i] = static_cast<std::int16_t>(product + static_cast<std::int16_t>(b[i] * 8) - (a[i] + 1) / 2);
  }
  expect_same(bytes.read(), expected_bytes, "byte");
  expect_same(shorts.read(), expected_shorts, "short");
}

std::vector<half> random_halves(std::mt19937& random, std::size_t count, float scale) {
  std::vector<half> values(count);
  for (half& value : values) {
    value = static_cast<half>(static_cast<float>(static_cast<std::int32_t>(random())) * (scale * 0x1p-31F));
  }
  return values;
}

TEST_P(Corpus, half_arithmetic) {
  constexpr std::uint32_t n = 800;
  const auto a = random_halves(random, n, 8);
  const auto b = random_halves(random, n, 8);
  Buffer<half> left(a);
  Buffer<half> right(b);
  Buffer<half> to(n);
  launch("arithmetic", "half_arithmetic", {2}, {256}, 0, left.get(), right.get(), to.get(), n);
  std::vector<float> got(n);
  std::vector<float> expected(n);
  const auto result = to.read();
  for (std::uint32_t i = 0; i < n; ++i) {
    const half x = a[i];
    const half y = b[i];
    half value = static_cast<half>(static_cast<half>(x * y) + x);
    if (value < static_cast<half>(-3)) value = -3;
    if (value > static_cast<half>(40)) value = 40;
    if (i % 2 == 0)
      value = static_cast<half>(value / static_cast<half>(static_cast<half>(y * y) + static_cast<half>(1)));
    got[i] = result[i];
    expected[i] = value;
  }
  expect_same(got, expected, "half");
}

TEST_P(Corpus, half_converts) {
  constexpr std::uint32_t n = 600;
  auto in = mixed_floats(random, n);
  for (std::uint32_t i = 64; i < n; ++i)
    in[i] = static_cast<float>(static_cast<std::int32_t>(random())) * std::ldexp(1.0F, -20 - static_cast<int>(i % 40));
  Buffer<float> from(in);
  Buffer<half> narrowed(n);
  Buffer<float> widened(n);
  Buffer<int> integers(n);
  launch("arithmetic", "half_converts", {3}, {256}, 0, from.get(), narrowed.get(), widened.get(), integers.get(), n);
  const auto halves = narrowed.read();
  std::vector<float> got(n);
  std::vector<float> expected(n);
  std::vector<float> expected_widened(n);
  std::vector<int> expected_integers(n);
  const auto got_integers = integers.read();
  for (std::uint32_t i = 0; i < n; ++i) {
    const half h = static_cast<half>(in[i]);
    got[i] = halves[i];
    expected[i] = h;
    expected_widened[i] = static_cast<float>(h) * 2.0F;
    // What a NaN becomes as an integer is not defined.
    if (std::isnan(in[i]))
      expected_integers[i] = got_integers[i];
    else
      expected_integers[i] = static_cast<short>(static_cast<half>(in[i] > 100    ? 100.0F
                                                                  : in[i] < -100 ? -100.0F
                                                                                 : in[i]));
  }
  expect_same(got, expected, "half");
  expect_same(widened.read(), expected_widened, "widened");
  expect_same(got_integers, expected_integers, "integer");
}

// Round to nearest even; NaN stays a quiet NaN.
float rounded_to_bf16(float value) {
  if (std::isnan(value)) return value;
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000U);
}

TEST_P(Corpus, bf16_converts) {
  constexpr std::uint32_t n = 700;
  const auto in = mixed_floats(random, n);
  Buffer<float> from(in);
  Buffer<std::uint16_t> narrowed(n);
  Buffer<float> sums(n);
  launch("arithmetic", "bf16_converts", {3}, {256}, 0, from.get(), narrowed.get(), sums.get(), n);
  std::vector<float> got(n);
  std::vector<float> expected(n);
  std::vector<float> expected_sums(n);
  const auto bits = narrowed.read();
  for (std::uint32_t i = 0; i < n; ++i) {
    got[i] = std::bit_cast<float>(static_cast<std::uint32_t>(bits[i]) << 16);
    expected[i] = rounded_to_bf16(in[i]);
    expected_sums[i] = expected[i] + rounded_to_bf16(in[i] * 3.0F);
  }
  expect_same(got, expected, "bf16");
  expect_same(sums.read(), expected_sums, "sum");
}

// An 8-bit float format: what each of its 256 codes means, and how a float becomes the nearest one (even code on ties).
struct SmallFloat {
  int mantissa_bits;
  int bias;
  bool ocp;  // otherwise FNUZ: one NaN (0x80), no infinities, no −0

  double value(std::uint32_t code) const {
    const double sign = (code & 0x80) != 0 ? -1 : 1;
    const std::uint32_t magnitude = code & 0x7f;
    if (!ocp && code == 0x80) return NAN;
    if (ocp && mantissa_bits == 3 && magnitude == 0x7f) return NAN;
    if (ocp && mantissa_bits == 2 && magnitude == 0x7c) return sign * INFINITY;
    if (ocp && mantissa_bits == 2 && magnitude > 0x7c) return NAN;
    const int exponent = static_cast<int>(magnitude >> mantissa_bits);
    const double fraction = magnitude & ((1U << mantissa_bits) - 1);
    const double scale = std::ldexp(1.0, (exponent == 0 ? 1 : exponent) - bias - mantissa_bits);
    return sign * (fraction + (exponent == 0 ? 0 : 1 << mantissa_bits)) * scale;
  }
  double largest() const {
    double most = 0;
    for (std::uint32_t code = 0; code < 0x80; ++code) {
      if (std::isfinite(value(code))) most = std::max(most, value(code));
    }
    return most;
  }
  double nearest(float x) const {
    double best = NAN;
    std::uint32_t best_code = 0;
    for (std::uint32_t code = 0; code < 0x80; ++code) {
      const double candidate = value(code);
      if (!std::isfinite(candidate)) continue;
      const double distance = std::fabs(std::fabs(x) - candidate);
      const double best_distance = std::fabs(std::fabs(x) - best);
      if (std::isnan(best) || distance < best_distance || (distance == best_distance && (best_code & 1) != 0)) {
        best = candidate;
        best_code = code;
      }
    }
    return x < 0 ? -best : best;
  }
};

TEST_P(Corpus, fp8_converts) {
  const SmallFloat fp8{3, ocp_fp8() ? 7 : 8, ocp_fp8()};
  const SmallFloat bf8{2, ocp_fp8() ? 15 : 16, ocp_fp8()};
  constexpr std::uint32_t n = 800;
  // Inside both formats' range: what happens beyond it depends on a mode bit.
  auto in = random_floats(n, -static_cast<float>(fp8.largest()), static_cast<float>(fp8.largest()));
  for (std::uint32_t i = 0; i < n; i += 3) in[i] *= std::ldexp(1.0F, -static_cast<int>(i % 21));
  in[0] = 0;
  Buffer<float> from(in);
  Buffer<std::uint32_t> packed(n / 2);
  Buffer<float> unpacked(2 * n);
  launch("arithmetic", "fp8_converts", {2}, {256}, 0, from.get(), packed.get(), unpacked.get(), n);
  const auto words = packed.read();
  std::vector<float> got_codes;
  std::vector<float> expected;
  std::vector<float> got_unpacked = unpacked.read();
  for (std::uint32_t i = 0; i < n / 2; ++i) {
    for (std::uint32_t byte = 0; byte < 4; ++byte) {
      const SmallFloat& format = byte < 2 ? fp8 : bf8;
      // Signed zeros of results that round to zero differ between the formats; compare magnitudes of zero.
      got_codes.push_back(static_cast<float>(format.value(words[i] >> (8 * byte) & 0xff)) + 0.0F);
      expected.push_back(static_cast<float>(format.nearest(in[2 * i + byte % 2])) + 0.0F);
      got_unpacked[4 * i + byte] += 0.0F;
    }
  }
  expect_same(got_codes, expected, "code");
  expect_same(got_unpacked, expected, "unpacked");
}

TEST_P(Corpus, saturating_converts) {
  constexpr std::uint32_t n = 700;
  const auto in = mixed_floats(random, n);
  Buffer<float> from(in);
  Buffer<int> to_int(n);
  Buffer<std::uint32_t> to_uint(n);
  Buffer<std::int64_t> to_long(n);
  launch("arithmetic", "saturating_converts", {3}, {256}, 0, from.get(), to_int.get(), to_uint.get(), to_long.get(), n);
  std::vector<int> ints(n);
  std::vector<std::uint32_t> uints(n);
  std::vector<std::int64_t> longs(n);
  for (std::uint32_t i = 0; i < n; ++i) {
    const double x = in[i];
    if (std::isnan(x)) continue;
    ints[i] = static_cast<int>(std::clamp(x, -2147483648.0, 2147483647.0));
    uints[i] = static_cast<std::uint32_t>(std::clamp(x, 0.0, 4294967295.0));
    longs[i] = static_cast<std::int64_t>(std::clamp(x, -0x1p62, 0x1p62));
  }
  expect_same(to_int.read(), ints, "int");
  expect_same(to_uint.read(), uints, "unsigned");
  expect_same(to_long.read(), longs, "long");
}

TEST_P(Corpus, integer_to_float) {
  constexpr std::uint32_t n = 500;
  std::vector<std::int64_t> in(n);
  for (std::uint32_t i = 0; i < n; ++i)
    in[i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(random()) << 32 | random()) >> i % 64;
  Buffer<std::int64_t> from(in);
  Buffer<float> from_i64(n);
  Buffer<float> from_u32(n);
  Buffer<double> wide(n);
  Buffer<half> narrow(n);
  launch("arithmetic", "integer_to_float", {2}, {256}, 0, from.get(), from_i64.get(), from_u32.get(), wide.get(),
         narrow.get(), n);
  std::vector<float> i64s(n);
  std::vector<float> u32s(n);
  std::vector<double> wides(n);
  std::vector<float> narrows(n);
  const auto got_narrow = narrow.read();
  for (std::uint32_t i = 0; i < n; ++i) {
    i64s[i] = static_cast<float>(in[i]);
    u32s[i] = static_cast<float>(static_cast<std::uint32_t>(in[i]));
    wides[i] = static_cast<double>(in[i]) + static_cast<double>(static_cast<std::uint64_t>(in[i]));
    narrows[i] = static_cast<float>(static_cast<half>(static_cast<float>(in[i] % 60000)));
  }
  expect_same(from_i64.read(), i64s, "from i64");
  expect_same(from_u32.read(), u32s, "from u32");
  expect_same(wide.read(), wides, "double");
  expect_same(std::vector<float>(got_narrow.begin(), got_narrow.end()), narrows, "half");
}

TEST_P(Corpus, float_modulo) {
  constexpr std::uint32_t n = 500;
  const auto a = random_floats(n, -1e6, 1e6);
  auto b = random_floats(n, 0.01F, 30);
  for (std::uint32_t i = 0; i < n; i += 4) b[i] = -b[i];
  Buffer<float> dividend(a);
  Buffer<float> divisor(b);
  Buffer<float> to(n);
  launch("arithmetic", "float_modulo", {2}, {256}, 0, dividend.get(), divisor.get(), to.get(), n);
  std::vector<float> expected(n);
  for (std::uint32_t i = 0; i < n; ++i) expected[i] = std::fmod(a[i], b[i]);
  expect_same(to.read(), expected, "remainder");
}

TEST_P(Corpus, math_f32) {
  constexpr std::uint32_t n = 400;
  auto in = random_floats(n, -200, 200);
  in[0] = 1e5F;  // sin and cos reduce large arguments in another way
  in[1] = -3e7F;
  in[2] = 1e-20F;
  Buffer<float> from(in);
  Buffer<float> to(6 * n);
  launch("arithmetic", "math_f32", {2}, {256}, 0, from.get(), to.get(), n);
  // Errors that OpenCL allows these functions: sin, cos 4 ulp, exp, log 3, pow 16, atan2 6.
  constexpr double allowed[6] = {4, 4, 3, 3, 16, 6};
  const char* names[6] = {"sin", "cos", "exp", "log", "pow", "atan2"};
  const auto got = to.read();
  for (std::uint32_t function = 0; function < 6; ++function) {
    std::vector<float> results(n);
    std::vector<double> expected(n);
    for (std::uint32_t i = 0; i < n; ++i) {
      const double x = in[i];
      results[i] = got[6 * i + function];
      const double values[6] = {std::sin(x),
                                std::cos(x),
                                std::exp(static_cast<double>(in[i] / 16)),
                                std::log(std::fabs(x)),
                                std::pow(std::fabs(x), static_cast<double>(0.3F)),
                                std::atan2(x, 3.0)};
      expected[i] = values[function];
    }
    expect_close(results, expected, allowed[function], 0, names[function]);
  }
}

TEST_P(Corpus, math_f64) {
  constexpr std::uint32_t n = 300;
  std::vector<double> in(n);
  for (double& value : in) value = static_cast<double>(static_cast<std::int32_t>(random())) * 0x1p-24;
  in[0] = 1e9;
  in[1] = 1e-200;
  Buffer<double> from(in);
  Buffer<double> to(3 * n);
  launch("arithmetic", "math_f64", {2}, {256}, 0, from.get(), to.get(), n);
  const auto got = to.read();
  for (std::uint32_t i = 0; i < n; ++i) {
    const double x = in[i];
    const double expected[3] = {std::sin(x), std::exp(x / 8), std::log(std::fabs(x))};
    for (std::uint32_t function = 0; function < 3; ++function) {
      if (std::isinf(expected[function])) {
        EXPECT_EQ(got[3 * i + function], expected[function]) << x;
        continue;
      }
      // 4 ulp, as for f32; the host's own functions are within 1.
      const double unit = std::nextafter(std::fabs(expected[function]), INFINITY) - std::fabs(expected[function]);
      EXPECT_NEAR(got[3 * i + function], expected[function], 5 * unit) << "function " << function << " of " << x;
    }
  }
}

TEST_P(Corpus, mandelbrot) {
  constexpr std::uint32_t width = 50;
  constexpr std::uint32_t height = 30;
  constexpr std::uint32_t most = 60;
  Buffer<std::uint32_t> to(width * height);
  launch("arithmetic", "mandelbrot", {4, 8}, {16, 4}, 0, to.get(), width, height, most);
  std::vector<std::uint32_t> expected(width * height);
  for (std::uint32_t y = 0; y < height; ++y) {
    for (std::uint32_t x = 0; x < width; ++x) {
      const float cr = -2.0F + 3.0F * static_cast<float>(x) / static_cast<float>(width);
      const float ci = -1.0F + 2.0F * static_cast<float>(y) / static_cast<float>(height);
      float re = 0;
      float im = 0;
      std::uint32_t i = 0;
      while (i < most && re * re + im * im <= 4.0F) {
        const float next = re * re - im * im + cr;
        im = 2.0F * re * im + ci;
        re = next;
        ++i;
      }
      expected[y * width + x] = i;
    }
  }
  expect_same(to.read(), expected, "iterations");
}

}  // namespace
}  // namespace wavejit::hip_kernels
