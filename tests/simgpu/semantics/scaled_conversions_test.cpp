// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// gfx950's scaled conversions of 4, 6 and 8 bits in every form that small_floats_test.cpp leaves: one value, 32 values,
// halves and bytes of a register that keep the rest, and stochastic rounding. Against the tables of narrow_formats.h.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
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

constexpr Format byte_formats[] = {{"gfx950", "fp8", 4, 3, 7}, {"gfx950", "bf8", 5, 2, 15}};
constexpr Format fnuz_formats[] = {{"gfx942", "fp8", 4, 3, 8, true}, {"gfx942", "bf8", 5, 2, 16, true}};
constexpr Format six_bits[] = {{"gfx950", "fp6", 2, 3, 1, false, true}, {"gfx950", "bf6", 3, 2, 3, false, true}};
constexpr Format four_bits = {"gfx950", "fp4", 2, 1, 1, false, true};

// Only the exponent of a scale counts.
constexpr struct {
  std::uint32_t bits;
  int exponent;
} scales[] = {{0x3f800000, 0}, {0xc2123456, 5}, {0x3e000001, -3}};

// Noises of stochastic rounding: nothing, less than half, half, all but nothing.
constexpr std::uint32_t noises[] = {0, 0x7fffffff, 0x80000000, 0xffffffff};

constexpr std::uint32_t before = 0xa5c3b4d2;  // what a register holds that is overwritten in part

bool is_single(const Wide& wide) { return std::string_view(wide.name) == "f32"; }
std::string vector_registers(unsigned first, unsigned count) {
  return count == 1 ? std::format("v{}", first) : std::format("v[{}:{}]", first, first + count - 1);
}

// Element i of a lane: of 32 bits a register each, of 16 two in one.
std::uint32_t element_at(const Machine& machine, const Wide& wide, unsigned first, unsigned lane, unsigned i) {
  if (is_single(wide)) return machine.at(first + i, lane);
  return (machine.at(first + (i / 2), lane) >> (16 * (i % 2))) & 0xffffU;
}
void set_element(Machine& machine, const Wide& wide, unsigned first, unsigned lane, unsigned i, double x) {
  const std::uint32_t bits = encoded(wide, x);
  if (is_single(wide)) {
    machine.v(first + i)[lane] = bits;
    return;
  }
  std::uint32_t& word = machine.v(first + (i / 2))[lane];
  word = (word & ~(0xffffU << (16 * (i % 2)))) | (bits << (16 * (i % 2)));
}
unsigned six_bits_at(const Machine& machine, unsigned first, unsigned lane, unsigned i) {
  unsigned value = 0;
  for (unsigned bit = 0; bit < 6; ++bit) {
    const unsigned at = (6 * i) + bit;
    value |= ((machine.at(first + (at / 32), lane) >> (at % 32)) & 1U) << bit;
  }
  return value;
}

// Rounded with `noise` added below the last bit, as a fraction of 2^32 of it. Numbers beyond the format are left to
// the tests of rounding to nearest.
unsigned with_noise(const Format& format, double x, std::uint32_t noise) {
  const unsigned sign = std::signbit(x) ? format.sign_bit() : 0;
  unsigned below = 0;
  while (below < format.largest() && format.number(below + 1) <= std::abs(x)) ++below;
  if (below == format.largest()) return sign | below;
  const double step = format.number(below + 1) - format.number(below);
  const double part = (std::abs(x) - format.number(below)) / step * 0x1p32;
  const unsigned chosen = part + noise >= 0x1p32 ? below + 1 : below;
  return format.fnuz && chosen == 0 ? 0 : sign | chosen;
}
// What v_prng_b32 makes of a number: a shift register with feedback (CDNA4 ISA).
std::uint32_t next_noise(std::uint32_t noise) { return (noise << 1) ^ ((noise >> 31) != 0 ? 197U : 0U); }

// Numbers within a format, multiplied by the scale and rounded to the wide type.
std::vector<double> inner_numbers(const Format& format, const Wide& wide, int exponent) {
  std::vector<double> numbers;
  for (const double x : telling_numbers(format)) {
    const double rounded = rounded_to(wide, std::ldexp(x, exponent));
    if (std::abs(rounded) <= std::ldexp(format.number(format.largest()), exponent)) numbers.push_back(rounded);
  }
  return numbers;
}

// Runs for any number of inputs, a wave at a time.
template <typename Set, typename Look>
void in_waves(std::size_t count, const Set& set, const std::string& text, Machine& machine, const Look& look) {
  for (std::size_t first = 0; first < count; first += lane_places) {
    for (unsigned lane = 0; lane < lane_places; ++lane) set(lane, std::min<std::size_t>(first + lane, count - 1));
    ASSERT_TRUE(machine.run(text)) << text;
    for (unsigned lane = 0; lane < lane_places; ++lane) look(lane, std::min<std::size_t>(first + lane, count - 1));
  }
}

TEST(ScaledConversions, OneByteWidens) {
  Machine machine("gfx950");
  for (const Format& format : byte_formats) {
    for (const auto& scale : scales) {
      for (unsigned place = 0; place < 4; ++place) {
        const auto set = [&](unsigned lane, std::size_t byte) {
          machine.v(1)[lane] = ~(0xffU << (8 * place)) | (static_cast<std::uint32_t>(byte) << (8 * place));
          machine.v(2)[lane] = scale.bits;
          machine.v(4)[lane] = before;
        };
        const auto exact = [&](std::size_t byte) {
          return std::ldexp(format.value(static_cast<unsigned>(byte)), scale.exponent);
        };
        const std::string single =
            std::format("v_cvt_scalef32_f32_{} v4, v1, v2 op_sel:[{},{},0]", format.name, place % 2, place / 2);
        in_waves(256, set, single, machine, [&](unsigned lane, std::size_t byte) {
          expect_number(machine.float_at(4, lane), exact(byte), std::format("{} of {:#x}", single, byte));
        });
        for (unsigned half = 0; half < 2; ++half) {
          const std::string text = std::format("v_cvt_scalef32_f16_{} v4, v1, v2 op_sel:[{},{},{}]", format.name,
                                               place % 2, place / 2, half);
          in_waves(256, set, text, machine, [&](unsigned lane, std::size_t byte) {
            const std::string what = std::format("{} of {:#x}", text, byte);
            expect_number(decoded(wides[1], (machine.at(4, lane) >> (16 * half)) & 0xffffU),
                          rounded_to(wides[1], exact(byte)), what);
            EXPECT_EQ((machine.at(4, lane) ^ before) & (0xffffU << (16 * (1 - half))), 0U) << what;
          });
        }
      }
    }
  }
}

TEST(ScaledConversions, TwoOfFourBitsWiden) {
  Machine machine("gfx950");
  for (const Wide& wide : wides) {
    for (const auto& scale : scales) {
      for (unsigned place = 0; place < 4; ++place) {
        const std::string text = std::format("v_cvt_scalef32_pk_{}_fp4 {}, v1, v2 op_sel:[{},{},0]", wide.name,
                                             is_single(wide) ? "v[4:5]" : "v4", place % 2, place / 2);
        const auto set = [&](unsigned lane, std::size_t byte) {
          machine.v(1)[lane] = ~(0xffU << (8 * place)) | (static_cast<std::uint32_t>(byte) << (8 * place));
          machine.v(2)[lane] = scale.bits;
        };
        in_waves(256, set, text, machine, [&](unsigned lane, std::size_t byte) {
          for (unsigned i = 0; i < 2; ++i) {
            const unsigned four = (static_cast<unsigned>(byte) >> (4 * i)) & 15U;
            expect_number(decoded(wide, element_at(machine, wide, 4, lane, i)),
                          rounded_to(wide, std::ldexp(four_bits.value(four), scale.exponent)),
                          std::format("{} of {:#x}", text, byte));
          }
        });
      }
    }
  }
}

TEST(ScaledConversions, ThirtyTwoOfSixBitsWiden) {
  Machine machine("gfx950");
  for (const Format& format : six_bits) {
    for (const Wide& wide : wides) {
      for (const auto& scale : scales) {
        machine.fill_random(10, 6, 3);
        // Every encoding stands in each place in some lane.
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          std::array<std::uint32_t, 6> words{};
          for (unsigned i = 0; i < 32; ++i) {
            for (unsigned bit = 0; bit < 6; ++bit) {
              const unsigned at = (6 * i) + bit;
              words[at / 32] |= ((((5 * i) + lane) >> bit) & 1U) << (at % 32);
            }
          }
          for (unsigned i = 0; i < 6; ++i) machine.v(10 + i)[lane] = words[i];
        }
        machine.set(2, scale.bits);
        const std::string text = std::format("v_cvt_scalef32_pk32_{}_{} {}, v[10:15], v2", wide.name, format.name,
                                             vector_registers(32, is_single(wide) ? 32 : 16));
        ASSERT_TRUE(machine.run(text)) << text;
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          for (unsigned i = 0; i < 32; ++i) {
            const unsigned six = ((5 * i) + lane) & 63U;
            expect_number(decoded(wide, element_at(machine, wide, 32, lane, i)),
                          rounded_to(wide, std::ldexp(format.value(six), scale.exponent)),
                          std::format("{} of {:#x}", text, six));
          }
        }
      }
    }
  }
}

// Two values into the half, of 4 bits into the byte, that op_sel names; the rest is kept.
TEST(ScaledConversions, TwoNarrowIntoTheirPlace) {
  Machine machine("gfx950");
  for (const Format& format : {byte_formats[0], byte_formats[1], four_bits}) {
    const bool four = format.finite;
    for (const Wide& wide : wides) {
      for (unsigned place = 0; place < (four ? 4U : 2U); ++place) {
        const auto& scale = scales[(place + (four ? 1 : 0)) % std::size(scales)];
        std::vector<double> numbers;
        for (const double x : telling_numbers(format)) {
          // The ISA leaves open what NaN becomes where there is none.
          if (!four || !std::isnan(x)) numbers.push_back(rounded_to(wide, std::ldexp(x, scale.exponent)));
        }
        const std::string sources = is_single(wide) ? "v1, v2, v3" : "v1, v3";
        const std::string places = four              ? std::format("0,0,{},{}", place % 2, place / 2)
                                   : is_single(wide) ? std::format("0,0,0,{}", place)
                                                     : std::format("0,0,{}", place);
        const std::string text =
            std::format("v_cvt_scalef32_pk_{}_{} v4, {} op_sel:[{}]", format.name, wide.name, sources, places);
        const auto set = [&](unsigned lane, std::size_t index) {
          const std::uint32_t low = encoded(wide, numbers[index]);
          const std::uint32_t high = encoded(wide, numbers[numbers.size() - 1 - index]);
          machine.v(1)[lane] = is_single(wide) ? low : low | (high << 16);
          machine.v(2)[lane] = high;
          machine.v(3)[lane] = scale.bits;
          machine.v(4)[lane] = before;
        };
        in_waves(numbers.size(), set, text, machine, [&](unsigned lane, std::size_t index) {
          const unsigned bits = four ? 4 : 8;
          const std::uint32_t low = format.nearest(std::ldexp(numbers[index], -scale.exponent), false);
          const std::uint32_t high =
              format.nearest(std::ldexp(numbers[numbers.size() - 1 - index], -scale.exponent), false);
          const std::uint32_t mask = ((1U << (2 * bits)) - 1) << (2 * bits * place);
          EXPECT_EQ(machine.at(4, lane), (before & ~mask) | ((low | (high << bits)) << (2 * bits * place)))
              << text << " of " << numbers[index];
        });
      }
    }
  }
}

TEST(ScaledConversions, ThirtyTwoNarrowToSixBits) {
  Machine machine("gfx950");
  for (const Format& format : six_bits) {
    for (const Wide& wide : wides) {
      for (const auto& scale : scales) {
        std::vector<double> numbers;
        for (const double x : telling_numbers(format)) {
          if (!std::isnan(x)) numbers.push_back(rounded_to(wide, std::ldexp(x, scale.exponent)));
        }
        const auto number = [&](unsigned lane, unsigned i) { return numbers[((17 * i) + lane) % numbers.size()]; };
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          for (unsigned i = 0; i < 32; ++i) set_element(machine, wide, 32, lane, i, number(lane, i));
        }
        machine.set(2, scale.bits);
        // Values of float32 come in two halves, which interleave.
        const std::string text =
            is_single(wide) ? std::format("v_cvt_scalef32_2xpk16_{}_f32 v[10:15], v[32:47], v[48:63], v2", format.name)
                            : std::format("v_cvt_scalef32_pk32_{}_{} v[10:15], v[32:47], v2", format.name, wide.name);
        ASSERT_TRUE(machine.run(text)) << text;
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          for (unsigned i = 0; i < 32; ++i) {
            const unsigned from = is_single(wide) ? (16 * (i % 2)) + (i / 2) : i;
            EXPECT_EQ(six_bits_at(machine, 10, lane, i),
                      format.nearest(std::ldexp(number(lane, from), -scale.exponent), false))
                << text << " of " << number(lane, from);
          }
        }
      }
    }
  }
}

// With another noise, and another scale, in each place.
TEST(ScaledConversions, NoiseRoundsOneByteIntoItsPlace) {
  Machine machine("gfx950");
  for (const Format& format : byte_formats) {
    for (const Wide& wide : wides) {
      for (unsigned place = 0; place < 4; ++place) {
        const auto& scale = scales[place % std::size(scales)];
        const std::uint32_t noise = noises[place];
        const std::vector<double> numbers = inner_numbers(format, wide, scale.exponent);
        const std::string text = std::format("v_cvt_scalef32_sr_{}_{} v4, v1, v2, v3 op_sel:[0,0,{},{}]", format.name,
                                             wide.name, place % 2, place / 2);
        const auto set = [&](unsigned lane, std::size_t index) {
          machine.v(1)[lane] = encoded(wide, numbers[index]);
          machine.v(2)[lane] = noise;
          machine.v(3)[lane] = scale.bits;
          machine.v(4)[lane] = before;
        };
        in_waves(numbers.size(), set, text, machine, [&](unsigned lane, std::size_t index) {
          const std::uint32_t byte = with_noise(format, std::ldexp(numbers[index], -scale.exponent), noise);
          EXPECT_EQ(machine.at(4, lane), (before & ~(0xffU << (8 * place))) | (byte << (8 * place)))
              << text << " of " << numbers[index] << " with " << noise;
        });
      }
    }
  }
}

TEST(ScaledConversions, NoiseRoundsWithoutAScale) {
  for (const Format& format : {byte_formats[0], byte_formats[1], fnuz_formats[0], fnuz_formats[1]}) {
    Machine machine(format.processor);
    const std::vector<double> numbers = inner_numbers(format, wides[0], 0);
    for (unsigned place = 0; place < 4; ++place) {
      const std::uint32_t noise = noises[place];
      const std::string text =
          std::format("v_cvt_sr_{}_f32 v4, v1, v2 op_sel:[0,0,{},{}]", format.name, place % 2, place / 2);
      const auto set = [&](unsigned lane, std::size_t index) {
        machine.v(1)[lane] = encoded(wides[0], numbers[index]);
        machine.v(2)[lane] = noise;
        machine.v(4)[lane] = before;
      };
      in_waves(numbers.size(), set, text, machine, [&](unsigned lane, std::size_t index) {
        const std::uint32_t byte = with_noise(format, numbers[index], noise);
        EXPECT_EQ(machine.at(4, lane), (before & ~(0xffU << (8 * place))) | (byte << (8 * place)))
            << format.processor << ": " << text << " of " << numbers[index] << " with " << noise;
      });
    }
  }
}

// Each further value takes the next of the shift register's numbers.
TEST(ScaledConversions, NoiseRoundsPairsOfFourAndRowsOfSixBits) {
  Machine machine("gfx950");
  constexpr std::uint32_t noise = 0x9e3779b9;
  for (const Wide& wide : wides) {
    for (const auto& scale : scales) {
      const std::vector<double> fours = inner_numbers(four_bits, wide, scale.exponent);
      for (unsigned place = 0; place < 4; ++place) {
        const std::string text = std::format("v_cvt_scalef32_sr_pk_fp4_{} v4, {}, v6, v3 op_sel:[0,0,{},{}]", wide.name,
                                             is_single(wide) ? "v[8:9]" : "v8", place % 2, place / 2);
        const auto set = [&](unsigned lane, std::size_t index) {
          set_element(machine, wide, 8, lane, 0, fours[index]);
          set_element(machine, wide, 8, lane, 1, fours[fours.size() - 1 - index]);
          machine.v(6)[lane] = noise;
          machine.v(3)[lane] = scale.bits;
          machine.v(4)[lane] = before;
        };
        in_waves(fours.size(), set, text, machine, [&](unsigned lane, std::size_t index) {
          const std::uint32_t low = with_noise(four_bits, std::ldexp(fours[index], -scale.exponent), noise);
          const std::uint32_t high =
              with_noise(four_bits, std::ldexp(fours[fours.size() - 1 - index], -scale.exponent), next_noise(noise));
          EXPECT_EQ(machine.at(4, lane), (before & ~(0xffU << (8 * place))) | ((low | (high << 4)) << (8 * place)))
              << text << " of " << fours[index];
        });
      }
      for (const Format& format : six_bits) {
        const std::vector<double> numbers = inner_numbers(format, wide, scale.exponent);
        const auto number = [&](unsigned lane, unsigned i) { return numbers[((17 * i) + lane) % numbers.size()]; };
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          for (unsigned i = 0; i < 32; ++i) set_element(machine, wide, 32, lane, i, number(lane, i));
        }
        machine.set(6, noise);
        machine.set(3, scale.bits);
        const std::string text = std::format("v_cvt_scalef32_sr_pk32_{}_{} v[10:15], {}, v6, v3", format.name,
                                             wide.name, vector_registers(32, is_single(wide) ? 32 : 16));
        ASSERT_TRUE(machine.run(text)) << text;
        for (unsigned lane = 0; lane < lane_places; ++lane) {
          std::uint32_t here = noise;
          for (unsigned i = 0; i < 32; ++i) {
            EXPECT_EQ(six_bits_at(machine, 10, lane, i),
                      with_noise(format, std::ldexp(number(lane, i), -scale.exponent), here))
                << text << " of " << number(lane, i);
            here = next_noise(here);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::test
