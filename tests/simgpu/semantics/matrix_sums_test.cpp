// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How matrix instructions add: CDNA3's published model, by its vectors and against the model written down once more,
// element by element, and seeded orders.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <fstream>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/machine/matrix/matrix.h"
#include "simgpu/machine/matrix/summation.h"
#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

using matrix::Element;

constexpr unsigned a_first = 0;
constexpr unsigned b_first = 16;
constexpr unsigned c_first = 32;
constexpr unsigned d_first = 96;

const matrix::Shape& shape_of(std::string_view name) {
  const auto found = std::ranges::find(matrix::shapes(), name, &matrix::Shape::name);
  EXPECT_NE(found, matrix::shapes().end()) << name;
  return *found;
}

std::string register_list(unsigned first, unsigned count) {
  return count == 1 ? "v" + std::to_string(first)
                    : "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

// The instruction's text with the registers above.
std::string text_of(const matrix::Shape& shape) {
  const unsigned operands = (shape.k_per_lane() * matrix::bits_of(shape.a) + 31) / 32;
  const unsigned results = shape.results_per_lane();
  return std::string(shape.name) + " " + register_list(d_first, results) + ", " + register_list(a_first, operands) +
         ", " + register_list(b_first, operands) + ", " + register_list(c_first, results);
}

// Element k of a row of A or a column of B, in every lane that holds one of its group (docs/isa.md: a lane has
// consecutive k).
void put(Machine& machine, unsigned first, unsigned lane, unsigned bits, unsigned i, std::uint32_t value) {
  std::uint32_t& word = machine.v(first + i * bits / 32)[lane];
  const unsigned shift = i * bits % 32;
  const std::uint32_t mask = bits == 32 ? ~0U : ((1U << bits) - 1) << shift;
  word = (word & ~mask) | (value << shift);
}

std::vector<std::string> split(const std::string& text, std::string_view separator) {
  std::vector<std::string> parts;
  std::size_t from = 0;
  while (true) {
    const std::size_t to = text.find(separator, from);
    parts.push_back(text.substr(from, to - from));
    if (to == std::string::npos) return parts;
    from = to + separator.size();
  }
}

std::uint32_t hexadecimal(const std::string& text) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  EXPECT_TRUE(error == std::errc{} && end == text.data() + text.size()) << text;
  return value;
}

std::string printed(std::uint32_t bits) {
  if (std::isnan(std::bit_cast<float>(bits))) return "nan";
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.begin(), digits.end(), bits, 16).ptr;
  std::string text(digits.begin(), end);
  return std::string(8 - text.size(), '0') + text;
}

// The whole result is one element: all rows of A are equal, and all columns of B.
std::string element_of(Machine& machine, const matrix::Shape& shape, const std::vector<std::string>& a,
                       const std::vector<std::string>& b, const std::string& c, std::size_t used) {
  const unsigned per_lane = shape.k_per_lane();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    for (unsigned i = 0; i < per_lane; ++i) {
      const std::size_t k = per_lane * (lane / shape.m) + i;
      put(machine, a_first, lane, matrix::bits_of(shape.a), i, k < used ? hexadecimal(a[k]) : 0);
      put(machine, b_first, lane, matrix::bits_of(shape.b), i, k < used ? hexadecimal(b[k]) : 0);
    }
  }
  for (unsigned r = 0; r < shape.results_per_lane(); ++r) machine.set(c_first + r, hexadecimal(c));
  EXPECT_TRUE(machine.run(text_of(shape)));
  const std::string element = printed(machine.at(d_first));
  for (unsigned r = 0; r < shape.results_per_lane(); ++r) {
    for (unsigned lane = 0; lane < lane_places; ++lane) EXPECT_EQ(printed(machine.at(d_first + r, lane)), element);
  }
  return element;
}

TEST(Cdna3Sums, GiveThePublishedVectors) {
  const matrix::Summation cdna3 = matrix::cdna3_summation();
  Machine machine("gfx942");
  machine.wave().summation = &cdna3;
  std::ifstream file(WAVEJIT_CDNA3_MATRIX_VECTORS);
  int vectors = 0;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    SCOPED_TRACE(line);
    const std::vector<std::string> fields = split(line, " | ");
    ASSERT_EQ(fields.size(), 8U);
    const matrix::Shape& shape = shape_of(fields[1]);
    const std::vector<std::string> a = split(fields[2], " ");
    const std::vector<std::string> b = split(fields[3], " ");
    const std::vector<std::string> after = split(fields[5], " ");
    ASSERT_EQ(a.size(), shape.k);
    ASSERT_EQ(b.size(), shape.k);
    EXPECT_EQ(element_of(machine, shape, a, b, fields[4], shape.k), fields[6]);
    // Groups whose products are all 0 change nothing of these sums.
    const std::size_t group = shape.k / after.size();
    for (std::size_t i = 0; i < after.size(); ++i) {
      EXPECT_EQ(element_of(machine, shape, a, b, fields[4], (i + 1) * group), after[i]) << "after group " << i;
    }
    ++vectors;
  }
  EXPECT_EQ(vectors, 20);
}

// --- The model once more, in the words of its description, for one element.

struct Format {
  int lowest;  // exponent of normal numbers
  double (*decode)(std::uint32_t bits);
};

double decode_bf16(std::uint32_t bits) { return std::bit_cast<float>(bits << 16); }
double decode_f16(std::uint32_t bits) { return std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)); }
double decode_xf32(std::uint32_t bits) { return std::bit_cast<float>(bits & 0xffffe000U); }
template <int exponent_bits, int fraction_bits, int bias>
double decode_fnuz(std::uint32_t bits) {
  if (bits == 0x80) return std::nan("");
  const auto exponent = static_cast<int>(bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const double fraction = std::ldexp(bits & ((1U << fraction_bits) - 1), -fraction_bits);
  const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return (bits & 0x80) != 0 ? -value : value;
}

Format format_of(Element element) {
  switch (element) {
    case Element::f16:
      return {-14, &decode_f16};
    case Element::bf16:
      return {-126, &decode_bf16};
    case Element::xf32:
      return {-126, &decode_xf32};
    case Element::fp8_fnuz:
      return {-7, &decode_fnuz<4, 3, 8>};
    default:
      return {-15, &decode_fnuz<5, 2, 16>};
  }
}

int exponent_of(double value, int lowest) { return value == 0 ? -126 : std::max(std::ilogb(value), lowest); }

struct ExactSum {
  double units;
  int exponent;  // of 2^(exponent - 24)
};

ExactSum sum_of(const std::vector<double>& a, const std::vector<double>& b, int a_lowest, int b_lowest) {
  ExactSum sum{.units = 0, .exponent = -10000};
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum.exponent = std::max(sum.exponent, exponent_of(a[i], a_lowest) + exponent_of(b[i], b_lowest));
  }
  for (std::size_t i = 0; i < a.size(); ++i) sum.units += std::trunc(std::ldexp(a[i] * b[i], 24 - sum.exponent));
  return sum;
}

float group_of(const std::vector<double>& a, const std::vector<double>& b, const matrix::Shape& shape, float d) {
  double all = d;
  bool up = false;
  bool down = false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    all += a[i] * b[i];
    up = up || a[i] * b[i] >= 0x1p128;
    down = down || a[i] * b[i] <= -0x1p128;
  }
  if (!std::isfinite(all)) return static_cast<float>(all);
  if (up && down) return std::nanf("");
  if (up || down) return up ? HUGE_VALF : -HUGE_VALF;
  const int a_lowest = format_of(shape.a).lowest;
  const int b_lowest = format_of(shape.b).lowest;
  const bool apart = matrix::bits_of(shape.a) == 8;
  ExactSum sum{};
  if (apart) {
    std::array<std::vector<double>, 4> halves;
    for (std::size_t i = 0; i < a.size(); ++i) {
      halves[i % 2].push_back(a[i]);
      halves[2 + i % 2].push_back(b[i]);
    }
    const ExactSum even = sum_of(halves[0], halves[2], a_lowest, b_lowest);
    const ExactSum odd = sum_of(halves[1], halves[3], a_lowest, b_lowest);
    sum.exponent = std::max(even.exponent, odd.exponent);
    sum.units = std::floor(std::ldexp(even.units, even.exponent - sum.exponent)) +
                std::floor(std::ldexp(odd.units, odd.exponent - sum.exponent));
  } else {
    sum = sum_of(a, b, a_lowest, b_lowest);
  }
  const int d_exponent = exponent_of(d, -126);
  const int most = std::max(sum.exponent, d_exponent);
  const double kept = std::floor(std::ldexp(sum.units, sum.exponent - 24 + 31 - most));
  const double old = apart && d_exponent < most - 25 ? 0 : std::floor(std::ldexp(static_cast<double>(d), 24 - most));
  return static_cast<float>(std::ldexp(kept + std::ldexp(old, 7), most - 31));
}

// Encodings of all sizes: zeros, denormals, the ends of the range and, seldom, what is no number.
std::uint32_t hard_encoding(std::mt19937_64& random, Element element, int kind) {
  const unsigned bits = matrix::bits_of(element);
  const auto any = static_cast<std::uint32_t>(random()) & (bits == 32 ? ~0U : (1U << bits) - 1);
  if (random() % 8 == 0) return any & (1U << (bits - 1));  // a zero
  if (kind == 0) return any;
  const unsigned fraction = element == Element::f16 ? 10
                            : bits == 8             ? (element == Element::fp8_fnuz ? 3 : 2)
                                                    : bits - 9;
  const unsigned exponents = bits - 1 - fraction;
  const std::uint32_t middle = 1U << (exponents - 1);
  // Around 1, so that sums cancel, or far apart.
  const std::uint32_t spread = kind == 1 ? 3 : (1U << exponents) / 4;
  const std::uint32_t exponent = middle - spread / 2 + static_cast<std::uint32_t>(random() % spread);
  return (any & ((1U << (bits - 1)) | ((1U << fraction) - 1))) | (exponent << fraction);
}

void compare_with_the_model(const matrix::Shape& shape, std::mt19937_64& random, int kind) {
  const matrix::Summation cdna3 = matrix::cdna3_summation();
  Machine machine("gfx942");
  machine.wave().summation = &cdna3;
  const unsigned per_lane = shape.k_per_lane();
  const unsigned group = matrix::bits_of(shape.a) == 8 ? 16 : matrix::bits_of(shape.a) == 32 ? 4 : 8;
  using Rows = std::vector<std::vector<double>>;  // [block * m + row][k]
  Rows a(std::size_t{shape.blocks} * shape.m, std::vector<double>(shape.k));
  Rows b = a;
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const std::size_t row = std::size_t{lane / shape.m % shape.blocks} * shape.m + lane % shape.m;
    for (unsigned i = 0; i < per_lane; ++i) {
      const std::size_t k = per_lane * (lane / shape.m / shape.blocks) + i;
      const std::uint32_t x = hard_encoding(random, shape.a, kind);
      const std::uint32_t y = hard_encoding(random, shape.b, kind);
      put(machine, a_first, lane, matrix::bits_of(shape.a), i, x);
      put(machine, b_first, lane, matrix::bits_of(shape.b), i, y);
      a[row][k] = format_of(shape.a).decode(x);
      b[row][k] = format_of(shape.b).decode(y);
    }
  }
  for (unsigned r = 0; r < shape.results_per_lane(); ++r) {
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      machine.v(c_first + r)[lane] = hard_encoding(random, Element::f32, kind);
    }
  }
  ASSERT_TRUE(machine.run(text_of(shape)));
  for (unsigned r = 0; r < shape.results_per_lane(); ++r) {
    for (unsigned lane = 0; lane < lane_places; ++lane) {
      // docs/isa.md, where results lie.
      const unsigned row = shape.m == 32   ? 8 * (r / 4 % 4) + 4 * (lane / 32) + r % 4
                           : shape.m == 16 ? 4 * (lane / 16) + r % 4
                                           : r;
      const unsigned block = shape.m == 32 ? r / 16 : shape.m == 16 ? r / 4 : lane / 4;
      const std::vector<double>& x = a[std::size_t{block} * shape.m + row];
      const std::vector<double>& y = b[std::size_t{block} * shape.m + lane % shape.m];
      float d = machine.float_at(c_first + r, lane);
      for (unsigned from = 0; from < shape.k; from += group) {
        const unsigned end = std::min<unsigned>(from + group, shape.k);
        d = group_of({x.begin() + from, x.begin() + end}, {y.begin() + from, y.begin() + end}, shape, d);
      }
      ASSERT_EQ(printed(machine.at(d_first + r, lane)), printed(std::bit_cast<std::uint32_t>(d)))
          << shape.name << " register " << r << " lane " << lane;
    }
  }
}

TEST(Cdna3Sums, AgreeWithTheModelWrittenOnceMore) {
  std::mt19937_64 random = random_from(11);
  int shapes = 0;
  for (const matrix::Shape& shape : matrix::shapes()) {
    switch (shape.a) {
      case Element::f16:
      case Element::bf16:
      case Element::xf32:
      case Element::fp8_fnuz:
      case Element::bf8_fnuz:
        break;
      default:
        continue;
    }
    const std::string_view name = shape.name;
    if (name.contains("32x32x16_f16") || name.contains("32x32x16_bf16") || name.contains("16x16x32_f16") ||
        name.contains("16x16x32_bf16")) {
      continue;  // gfx950's own
    }
    ++shapes;
    for (int kind = 0; kind < 3; ++kind) {
      compare_with_the_model(shape, random, kind);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_EQ(shapes, 20);
}

// docs/canonical-arithmetic.md says what is not exact on silicon: the sums of -a and a are not each other's negative.
TEST(Cdna3Sums, AreNotOdd) {
  const matrix::Summation cdna3 = matrix::cdna3_summation();
  Machine machine("gfx942");
  machine.wave().summation = &cdna3;
  const matrix::Shape& shape = shape_of("v_mfma_f32_32x32x8_bf16");
  const std::vector<std::string> ones(8, "3f80");
  std::vector<std::string> a(8, "0000");
  a[0] = "3f80";
  const std::string up = element_of(machine, shape, a, ones, "33000000", 8);  // 1 + 2^-25
  a[0] = "bf80";
  const std::string down = element_of(machine, shape, a, ones, "b3000000", 8);  // -(1 + 2^-25)
  EXPECT_EQ(up, "3f800000");
  EXPECT_EQ(down, "bf800000");
  a[0] = "3f80";
  EXPECT_EQ(element_of(machine, shape, a, ones, "b3000000", 8), "3f7fffff");  // 1 - 2^-25
  a[0] = "bf80";
  EXPECT_EQ(element_of(machine, shape, a, ones, "33000000", 8), "bf800000");  // -(1 - 2^-25), and not -3f7fffff
}

// What a tile of keys that a row does not see does to its O (docs/canonical-arithmetic.md, "Why a masked tile changes
// nothing"): nothing, unless a masked value is 2^127 times as large.
TEST(Cdna3Sums, ProductsWithZeroCutOnlyWhatIsFarBelowTheOtherFactor) {
  const matrix::Summation cdna3 = matrix::cdna3_summation();
  Machine machine("gfx942");
  machine.wave().summation = &cdna3;
  const matrix::Shape& shape = shape_of("v_mfma_f32_32x32x8_bf16");
  const std::vector<std::string> weights(8, "0000");
  const std::string o = "30ffffff";  // all 24 bits, exponent -30
  const std::string minus_o = "b0ffffff";
  for (const char* value : {"0000", "3f80", "bf80", "7000"}) {  // 0, 1, -1, 2^97
    const std::vector<std::string> values(8, value);
    EXPECT_EQ(element_of(machine, shape, values, weights, o, 8), o) << value;
    EXPECT_EQ(element_of(machine, shape, values, weights, minus_o, 8), minus_o) << value;
  }
  const std::vector<std::string> huge(8, "7180");  // 2^100
  EXPECT_EQ(element_of(machine, shape, huge, weights, o, 8), "30fffff8");
  EXPECT_EQ(element_of(machine, shape, huge, weights, minus_o, 8), "b1000000");
}

// Factors of +0 are looked for beforehand, those of −0 are multiplied: but for the sign of a zero in C they come to the
// same, NaN and infinity of the other factor among it.
TEST(MatrixSums, OfZerosAreWhatMultiplyingThemGives) {
  std::mt19937_64 random = random_from(9);
  const matrix::Summation seeded = matrix::seeded_summation(3);
  Machine machine("gfx950");
  for (const matrix::Summation* summation : {static_cast<const matrix::Summation*>(nullptr), &seeded})
    for (const char* name : {"v_mfma_f32_32x32x8_f16", "v_mfma_f32_32x32x16_bf16", "v_mfma_f32_16x16x32_f16",
                             "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_4x4x4_16b_f16"})
      for (const bool zero_is_a : {true, false})
        for (const bool has_infinity : {false, true})
          for (const bool has_minus_zero : {false, true}) {
            SCOPED_TRACE(name);
            const matrix::Shape& shape = shape_of(name);
            machine.wave().summation = summation;
            const unsigned zeros = zero_is_a ? a_first : b_first;
            const unsigned others = zero_is_a ? b_first : a_first;
            for (unsigned lane = 0; lane < lane_places; ++lane)
              for (unsigned i = 0; i < shape.k_per_lane(); ++i)
                put(machine, others, lane, 16, i,
                    has_infinity && lane == 9 && i == 1 ? (shape.a == Element::bf16 ? 0xff80 : 0x7c00)
                                                        : static_cast<std::uint32_t>(random() & 0xbbff));
            const unsigned results = shape.results_per_lane();
            for (unsigned r = 0; r < results; ++r)
              for (unsigned lane = 0; lane < lane_places; ++lane)
                machine.v(c_first + r)[lane] = static_cast<std::uint32_t>(random());
            machine.v(c_first)[3] = 0;
            machine.v(c_first)[4] = 0x7f800000;
            machine.v(c_first)[5] = 0xffc12345;
            machine.v(c_first)[6] = 0x00000001;
            if (has_minus_zero) machine.v(c_first)[7] = 0x80000000;
            std::vector<std::uint32_t> got;
            for (const std::uint32_t zero : {0U, 0x8000U}) {
              for (unsigned lane = 0; lane < lane_places; ++lane)
                for (unsigned i = 0; i < shape.k_per_lane(); ++i) put(machine, zeros, lane, 16, i, zero);
              ASSERT_TRUE(machine.run(text_of(shape)));
              int infinities = 0;
              for (unsigned r = 0; r < results; ++r)
                for (unsigned lane = 0; lane < lane_places; ++lane) {
                  const std::uint32_t c = machine.v(c_first + r)[lane];
                  const std::uint32_t d = machine.v(d_first + r)[lane];
                  if (zero == 0) {
                    got.push_back(d);
                    if (c != d && !std::isnan(std::bit_cast<float>(c)) && std::isnan(std::bit_cast<float>(d)))
                      ++infinities;
                  } else if (c != 0x80000000) {
                    ASSERT_EQ(got[(r * lane_places) + lane], d) << "register " << r << " lane " << lane;
                  }
                }
              if (zero == 0) EXPECT_EQ(infinities > 0, has_infinity);
            }
          }
}

TEST(MatrixSums, OfZerosKeepASignBehindNegativeOnesAlone) {
  Machine machine("gfx950");
  const matrix::Shape& shape = shape_of("v_mfma_f32_32x32x16_bf16");
  const std::vector<std::string> zeros(16, "0000");
  EXPECT_EQ(element_of(machine, shape, zeros, std::vector<std::string>(16, "bf80"), "80000000", 16), "80000000");
  EXPECT_EQ(element_of(machine, shape, zeros, std::vector<std::string>(16, "3f80"), "80000000", 16), "00000000");
  EXPECT_EQ(element_of(machine, shape, zeros, std::vector<std::string>(16, "bf80"), "00000000", 16), "00000000");
}

TEST(SeededSums, ArePermutationsOfTheSeedAlone) {
  for (const std::uint64_t seed : {0ULL, 1ULL, 7ULL}) {
    const matrix::Summation one = matrix::seeded_summation(seed);
    const matrix::Summation again = matrix::seeded_summation(seed);
    EXPECT_FALSE(one.in_groups);
    for (unsigned log = 0; log < one.orders.size(); ++log) {
      const matrix::Order& order = one.orders[log];
      EXPECT_EQ(order.products, again.orders[log].products);
      EXPECT_EQ(order.before_c, again.orders[log].before_c);
      std::vector<std::uint8_t> sorted(order.products.begin(), order.products.begin() + (1U << log));
      EXPECT_FALSE(log > 3 && std::ranges::is_sorted(sorted)) << "seed " << seed << " k " << (1U << log);
      std::ranges::sort(sorted);
      for (unsigned k = 0; k < sorted.size(); ++k) EXPECT_EQ(sorted[k], k);
      EXPECT_LE(order.before_c, 1U << log);
    }
  }
  EXPECT_NE(matrix::seeded_summation(1).orders[4].products, matrix::seeded_summation(2).orders[4].products);
}

// Each element by the order that the seed says, C where it says: a chain of fused multiply-adds.
TEST(SeededSums, AddInTheirOrderAndTheSameForAllElements) {
  std::mt19937_64 random = random_from(5);
  int different = 0;
  for (const std::uint64_t seed : {3ULL, 4ULL, 5ULL, 6ULL}) {
    const matrix::Summation seeded = matrix::seeded_summation(seed);
    const matrix::Order& order = seeded.orders[4];
    Machine machine("gfx950");
    machine.wave().summation = &seeded;
    // One row and one column for the whole result, so that all elements must be equal.
    std::array<std::uint32_t, 16> a{};
    std::array<std::uint32_t, 16> b{};
    for (unsigned k = 0; k < 16; ++k) {
      a[k] = hard_encoding(random, Element::f16, 1);
      b[k] = hard_encoding(random, Element::f16, 1);
      for (unsigned lane = k / 8 * 32; lane < k / 8 * 32 + 32; ++lane) {
        put(machine, a_first, lane, 16, k % 8, a[k]);
        put(machine, b_first, lane, 16, k % 8, b[k]);
      }
    }
    const float c = 0.3F;
    for (unsigned r = 0; r < 16; ++r) machine.set(c_first + r, c);
    ASSERT_TRUE(machine.run("v_mfma_f32_32x32x16_f16 v[96:111], v[0:3], v[16:19], v[32:47]"));
    float expected = -0.0F;
    float ascending = c;
    for (unsigned position = 0; position < 16; ++position) {
      if (position == order.before_c) expected += c;
      const unsigned k = order.products[position];
      expected = std::fma(static_cast<float>(decode_f16(a[k])), static_cast<float>(decode_f16(b[k])), expected);
      ascending =
          std::fma(static_cast<float>(decode_f16(a[position])), static_cast<float>(decode_f16(b[position])), ascending);
    }
    if (order.before_c == 16) expected += c;
    different += expected != ascending ? 1 : 0;
    for (unsigned r = 0; r < 16; ++r) {
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        ASSERT_EQ(machine.float_at(d_first + r, lane), expected) << "seed " << seed << " register " << r;
      }
    }
  }
  EXPECT_GT(different, 0) << "every seed rounds as k ascending does";
}

}  // namespace
}  // namespace wavejit::simgpu::test
