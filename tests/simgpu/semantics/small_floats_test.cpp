// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every conversion to and from 8-bit floats against tables made from the formats' definitions (narrow_formats.h): OCP's
// for gfx950, FNUZ for gfx942. All 256 bytes are widened; what is narrowed are all values of a format, the middle
// between any two neighbours, the numbers just beside it, and what lies beyond the largest.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <format>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/machine/wave/wave.h"
#include "tests/simgpu/semantics/machine.h"
#include "tests/simgpu/semantics/narrow_formats.h"

namespace wavejit::simgpu::test {
namespace {

constexpr Format formats[] = {
    {"gfx942", "fp8", 4, 3, 8, true},
    {"gfx942", "bf8", 5, 2, 16, true},
    {"gfx950", "fp8", 4, 3, 7, false},
    {"gfx950", "bf8", 5, 2, 15, false},
};

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
