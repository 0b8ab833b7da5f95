// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every conversion to and from 8-bit floats against tables made from the formats' definitions: OCP 8-bit Floating Point
// Specification 1.0 (e4m3, e5m2) for gfx950, and the forms without infinity and negative zero (FNUZ: bias one higher,
// 0x80 the only NaN) for gfx942. All 256 bytes are widened; what is narrowed are all values of a format, the middle
// between any two neighbours, the numbers just beside it, and what lies beyond the largest.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <format>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/machine/wave/wave.h"
#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

struct Format {
  const char* processor;
  const char* name;  // as instructions call it
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool fnuz;

  bool has_infinity() const { return !fnuz && mantissa_bits == 2; }
  bool is_nan(unsigned byte) const {
    if (fnuz) return byte == 0x80;
    return has_infinity() ? (byte & 0x7f) > 0x7c : (byte & 0x7f) == 0x7f;
  }
  bool is_infinite(unsigned byte) const { return has_infinity() && (byte & 0x7f) == 0x7c; }
  // As if every encoding were a number; so the one above the largest says where overflow begins.
  double number(unsigned byte) const {
    const auto exponent = static_cast<int>((byte & 0x7f) >> mantissa_bits);
    const auto mantissa = static_cast<int>(byte & ((1u << mantissa_bits) - 1));
    const double size = exponent == 0 ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                                      : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
    return (byte & 0x80) != 0 ? -size : size;
  }
  double value(unsigned byte) const {
    if (is_nan(byte)) return std::numeric_limits<double>::quiet_NaN();
    if (is_infinite(byte)) return std::copysign(std::numeric_limits<double>::infinity(), number(byte));
    return number(byte);
  }
  unsigned largest() const {
    unsigned byte = 0x7f;
    while (is_nan(byte) || is_infinite(byte)) --byte;
    return byte;
  }
  // One step beyond the largest, in the format's own grid.
  double beyond() const { return number(largest()) + (number(largest()) - number(largest() - 1)); }

  // Nearest, ties to the even encoding, found by looking through the table. `clamps`: MODE.FP16_OVFL.
  unsigned nearest(double x, bool clamps) const {
    const unsigned sign = std::signbit(x) ? 0x80 : 0;
    const unsigned not_a_number = fnuz ? 0x80 : sign | 0x7f;
    if (std::isnan(x)) return not_a_number;
    const unsigned overflow = has_infinity() ? sign | 0x7c : not_a_number;
    if (std::isinf(x)) return overflow;
    // Beyond the step beyond, distances of a float64 may no longer differ.
    const double size = std::min(std::abs(x), 2 * beyond());
    unsigned best = 0;
    double distance = size;
    for (unsigned byte = 1; byte <= largest() + 1; ++byte) {
      const double here = byte == largest() + 1 ? beyond() : number(byte);
      const double off = std::abs(here - size);
      if (off < distance || (off == distance && byte % 2 == 0)) {
        best = byte;
        distance = off;
      }
    }
    if (best > largest()) return clamps ? sign | largest() : overflow;
    return fnuz && best == 0 ? 0 : sign | best;
  }
};

constexpr Format formats[] = {
    {"gfx942", "fp8", 4, 3, 8, true},
    {"gfx942", "bf8", 5, 2, 16, true},
    {"gfx950", "fp8", 4, 3, 7, false},
    {"gfx950", "bf8", 5, 2, 15, false},
};

// What the wide side of a scaled conversion is.
struct Wide {
  const char* name;
  int digits;        // of the significand, the leading one included
  int least;         // exponent of the smallest subnormal
  double too_large;  // from here on it is infinite
};
constexpr Wide wides[] = {{"f32", 24, -149, 0x1p128}, {"f16", 11, -24, 65520.0}, {"bf16", 8, -133, 0x1p128}};

double rounded_to(const Wide& wide, double x) {
  if (x == 0 || !std::isfinite(x)) return x;
  if (std::abs(x) >= wide.too_large) return std::copysign(std::numeric_limits<double>::infinity(), x);
  int exponent = 0;
  std::frexp(x, &exponent);
  const int unit = std::max(exponent - wide.digits, wide.least);
  return std::ldexp(std::nearbyint(std::ldexp(x, -unit)), unit);
}

double decoded(const Wide& wide, std::uint32_t bits) {
  if (std::string_view(wide.name) == "f32") return std::bit_cast<float>(bits);
  if (std::string_view(wide.name) == "bf16") return std::bit_cast<float>(bits << 16);
  return static_cast<double>(std::bit_cast<_Float16>(static_cast<std::uint16_t>(bits)));
}
std::uint32_t encoded(const Wide& wide, double x) {
  if (std::string_view(wide.name) == "f32") return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  if (std::string_view(wide.name) == "bf16") return std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16;
  return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x));
}

void expect_number(double got, double expected, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what << ": " << got;
    return;
  }
  EXPECT_EQ(got, expected) << what;
  EXPECT_EQ(std::signbit(got), std::signbit(expected)) << what;
}

// Numbers at which a mistake in rounding shows. All are exact in float32.
std::vector<double> telling_numbers(const Format& format) {
  std::vector<double> numbers{0.0,
                              -0.0,
                              std::numeric_limits<double>::infinity(),
                              -std::numeric_limits<double>::infinity(),
                              std::numeric_limits<double>::quiet_NaN(),
                              0x1p-149,
                              -0x1p-126,
                              0x1p127,
                              65504.0};
  const auto add = [&](double x) {
    for (const double sign : {1.0, -1.0}) {
      numbers.push_back(sign * x);
      numbers.push_back(sign * std::nextafter(static_cast<float>(x), 0.0F));
      numbers.push_back(sign * std::nextafter(static_cast<float>(x), std::numeric_limits<float>::infinity()));
    }
  };
  for (unsigned byte = 0; byte <= format.largest(); ++byte) {
    const double here = format.number(byte);
    const double above = byte == format.largest() ? format.beyond() : format.number(byte + 1);
    if (here != 0) add(here);
    add((here + above) / 2);
  }
  add(format.beyond());
  add(2 * format.beyond());
  return numbers;
}

class SmallFloats : public testing::TestWithParam<Format> {
 protected:
  const Format& format() const { return GetParam(); }
  // Runs it for any number of inputs, a wave at a time.
  template <typename Set, typename Look>
  static void in_waves(std::size_t count, const Set& set, const std::string& text, Machine& machine, const Look& look) {
    for (std::size_t first = 0; first < count; first += lane_places) {
      for (unsigned lane = 0; lane < lane_places; ++lane) set(lane, std::min<std::size_t>(first + lane, count - 1));
      ASSERT_TRUE(machine.run(text)) << text;
      for (unsigned lane = 0; lane < lane_places; ++lane) look(lane, std::min<std::size_t>(first + lane, count - 1));
    }
  }
};

TEST_P(SmallFloats, EveryByteWidensToItsNumber) {
  Machine machine(format().processor);
  const bool by_op_sel = std::string_view(format().processor) != "gfx942";
  for (unsigned place = 0; place < 4; ++place) {
    // The older target names the byte by SDWA, the newer one by op_sel, whose lower bit is the byte's upper.
    const std::string one = !by_op_sel ? std::format("v_cvt_f32_{}_sdwa v4, v1 src0_sel:BYTE_{}", format().name, place)
                                       : std::format("v_cvt_f32_{}_e64 v4, v1 byte_sel:{}", format().name, place);
    const auto set = [&](unsigned lane, std::size_t byte) {
      machine.v(1)[lane] = ~(0xffu << (8 * place)) | (static_cast<std::uint32_t>(byte) << (8 * place));
    };
    if (!by_op_sel || place == 0) {
      const std::string text = by_op_sel ? std::format("v_cvt_f32_{} v4, v1", format().name) : one;
      in_waves(256, set, text, machine, [&](unsigned lane, std::size_t byte) {
        expect_number(machine.float_at(4, lane), format().value(static_cast<unsigned>(byte)),
                      std::format("{} of {:#x}", text, byte));
      });
    }
    const std::string pair = place < 2 ? std::format("v_cvt_pk_f32_{} v[4:5], v1", format().name)
                                       : std::format("v_cvt_pk_f32_{}_sdwa v[4:5], v1 src0_sel:WORD_1", format().name);
    in_waves(256, set, pair, machine, [&](unsigned lane, std::size_t byte) {
      expect_number(machine.float_at(4 + place % 2, lane), format().value(static_cast<unsigned>(byte)),
                    std::format("{} of {:#x} in byte {}", pair, byte, place));
    });
  }
}

TEST_P(SmallFloats, EveryNumberNarrowsToTheNearest) {
  const std::vector<double> numbers = telling_numbers(format());
  for (const bool clamps : {false, true}) {
    Machine machine(format().processor);
    if (clamps) machine.wave().mode |= 1u << 23;  // FP16_OVFL
    for (const bool high : {false, true}) {
      const std::string text =
          std::format("v_cvt_pk_{}_f32 v4, v1, v2{}", format().name, high ? " op_sel:[0,0,1]" : "");
      const auto set = [&](unsigned lane, std::size_t index) {
        machine.v(1)[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(numbers[index]));
        machine.v(2)[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(numbers[numbers.size() - 1 - index]));
        machine.v(4)[lane] = 0x5a5a5a5a;
      };
      in_waves(numbers.size(), set, text, machine, [&](unsigned lane, std::size_t index) {
        const std::uint32_t word = machine.at(4, lane);
        const unsigned pair = high ? word >> 16 : word & 0xffff;
        EXPECT_EQ(high ? word & 0xffff : word >> 16, 0x5a5aU) << text;
        EXPECT_EQ(pair & 0xff, format().nearest(numbers[index], clamps))
            << text << " of " << numbers[index] << (clamps ? ", clamped" : "");
        EXPECT_EQ(pair >> 8, format().nearest(numbers[numbers.size() - 1 - index], clamps))
            << text << " of " << numbers[numbers.size() - 1 - index] << (clamps ? ", clamped" : "");
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, SmallFloats, testing::ValuesIn(formats),
                         [](const auto& info) { return std::format("{}_{}", info.param.processor, info.param.name); });

// gfx950's scaled conversions take the exponent of the scale and nothing else of it.
class ScaledSmallFloats : public SmallFloats {
 protected:
  static constexpr struct {
    std::uint32_t bits;
    int exponent;
  } scales[] = {{0x3f800000, 0}, {0x3fffffff, 0}, {0xc2123456, 5}, {0x3e000001, -3}, {0x38000000, -15}};
};

TEST_P(ScaledSmallFloats, EveryByteWidensTimesThePowerOfTwo) {
  Machine machine(format().processor);
  for (const auto& wide : wides) {
    const bool narrow = std::string_view(wide.name) != "f32";
    for (const auto& scale : scales) {
      for (unsigned word = 0; word < 2; ++word) {
        const std::string text = std::format("v_cvt_scalef32_pk_{}_{} {}, v1, v2{}", wide.name, format().name,
                                             narrow ? "v4" : "v[4:5]", word == 0 ? "" : " op_sel:[1,0,0]");
        const auto set = [&](unsigned lane, std::size_t byte) {
          const auto pair = static_cast<std::uint32_t>(byte | ((255 - byte) << 8));
          machine.v(1)[lane] = word == 0 ? 0xffff0000U | pair : 0xffffU | (pair << 16);
          machine.v(2)[lane] = scale.bits;
        };
        in_waves(256, set, text, machine, [&](unsigned lane, std::size_t byte) {
          for (unsigned element = 0; element < 2; ++element) {
            const unsigned source = element == 0 ? static_cast<unsigned>(byte) : 255 - static_cast<unsigned>(byte);
            const std::uint32_t bits =
                narrow ? (machine.at(4, lane) >> (16 * element)) & 0xffffU : machine.at(4 + element, lane);
            expect_number(decoded(wide, bits), rounded_to(wide, std::ldexp(format().value(source), scale.exponent)),
                          std::format("{} of {:#x} by {:#x}", text, source, scale.bits));
          }
        });
      }
    }
  }
}

TEST_P(ScaledSmallFloats, EveryNumberNarrowsOverThePowerOfTwo) {
  Machine machine(format().processor);
  for (const auto& wide : wides) {
    const bool narrow = std::string_view(wide.name) != "f32";
    for (const auto& scale : scales) {
      // Numbers as the wide format holds them, so that their quotients fall on the telling ones where they can.
      std::vector<double> numbers;
      for (const double x : telling_numbers(format())) {
        numbers.push_back(rounded_to(wide, std::ldexp(x, scale.exponent)));
      }
      const std::string text = narrow ? std::format("v_cvt_scalef32_pk_{}_{} v4, v1, v3", format().name, wide.name)
                                      : std::format("v_cvt_scalef32_pk_{}_{} v4, v1, v2, v3", format().name, wide.name);
      const auto set = [&](unsigned lane, std::size_t index) {
        const std::uint32_t low = encoded(wide, numbers[index]);
        const std::uint32_t high = encoded(wide, numbers[numbers.size() - 1 - index]);
        machine.v(1)[lane] = narrow ? low | (high << 16) : low;
        machine.v(2)[lane] = high;
        machine.v(3)[lane] = scale.bits;
      };
      in_waves(numbers.size(), set, text, machine, [&](unsigned lane, std::size_t index) {
        const double low = std::ldexp(numbers[index], -scale.exponent);
        const double high = std::ldexp(numbers[numbers.size() - 1 - index], -scale.exponent);
        EXPECT_EQ(machine.at(4, lane) & 0xff, format().nearest(low, false)) << text << " of " << low;
        EXPECT_EQ((machine.at(4, lane) >> 8) & 0xff, format().nearest(high, false)) << text << " of " << high;
      });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, ScaledSmallFloats, testing::Values(formats[2], formats[3]),
                         [](const auto& info) { return std::format("{}_{}", info.param.processor, info.param.name); });

}  // namespace
}  // namespace wavejit::simgpu::test
