// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Transcendental results other than the nearest ones: within what the ISA promises (1 ulp of float32, 0.51 of float16),
// a function of instruction, operand and key, and what is exact stays exact.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

struct Tested {
  const char* name;
  long double (*exact)(long double);
  float low, high;
};

const std::array<Tested, 5> functions = {{
    {"v_exp", [](long double x) { return std::exp2(x); }, -125.9F, 127.9F},
    {"v_log", [](long double x) { return std::log2(x); }, 0x1p-126F, 0x1p127F},
    {"v_rcp", [](long double x) { return 1 / x; }, 0x1p-125F, 0x1p125F},
    {"v_rsq", [](long double x) { return 1 / std::sqrt(x); }, 0x1p-126F, 0x1p127F},
    {"v_sqrt", [](long double x) { return std::sqrt(x); }, 0x1p-126F, 0x1p127F},
}};

const Instruction* decoded(Machine& machine, const Tested& function, const char* type) {
  return machine.decode(std::string(function.name) + type + " v0, v1");
}

std::array<std::uint32_t, lane_places> results(Machine& machine, const Instruction& instruction, std::uint32_t key) {
  machine.wave().transcendentals_key = key;
  instruction.execute(machine.wave(), instruction);
  std::array<std::uint32_t, lane_places> lanes{};
  std::copy_n(machine.v(0), lane_places, lanes.begin());
  return lanes;
}

double ulps(double got, long double exact, int lowest_exponent, int digits) {
  const int exponent = std::max(std::ilogb(exact), lowest_exponent);
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / std::ldexp(1.0L, exponent - digits + 1));
}

void fill(Machine& machine, std::mt19937_64& random, const Tested& function) {
  std::uniform_real_distribution<float> even(function.low, function.high);
  std::uniform_real_distribution<float> exponent(-20.0F, 20.0F);
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    // Evenly, around 1, and near 0 for the one that takes negative numbers.
    float x = even(random);
    if (lane % 2 == 0) x = function.low < 0 ? exponent(random) * 0x1p-10F : std::exp2(exponent(random) * 0.1F);
    machine.v(1)[lane] = std::bit_cast<std::uint32_t>(x);
  }
}

TEST(Permitted, Float32StaysWithinOneUlpAndMoves) {
  Machine machine("gfx942");
  std::mt19937_64 random = random_from(21);
  for (const Tested& function : functions) {
    const Instruction* instruction = decoded(machine, function, "_f32");
    ASSERT_NE(instruction, nullptr);
    double worst = 0;
    int other = 0;
    int keys_differ = 0;
    constexpr int rounds = 1000;
    for (int round = 0; round < rounds; ++round) {
      fill(machine, random, function);
      const auto nearest = results(machine, *instruction, 0);
      const auto one = results(machine, *instruction, 0x1234567);
      const auto two = results(machine, *instruction, 0x7654321);
      ASSERT_EQ(results(machine, *instruction, 0x1234567), one) << "not a function of operand and key";
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        const long double exact = function.exact(static_cast<long double>(machine.float_at(1, lane)));
        if (exact == 0) continue;
        worst = std::max(worst, ulps(std::bit_cast<float>(one[lane]), exact, -126, 24));
        other += one[lane] != nearest[lane] ? 1 : 0;
        keys_differ += one[lane] != two[lane] ? 1 : 0;
      }
    }
    EXPECT_LE(worst, 1.0) << function.name;
    EXPECT_GT(worst, 0.9) << function.name;
    EXPECT_NEAR(other, rounds * 32, rounds * 4) << function.name;
    EXPECT_NEAR(keys_differ, rounds * 32, rounds * 4) << function.name;
  }
}

// Wherever they stand: in another lane, under another EXEC, through SDWA.
TEST(Permitted, OperandAndKeyAloneDecide) {
  Machine machine("gfx942");
  std::mt19937_64 random = random_from(22);
  const Tested& exp = functions[0];
  const Instruction* instruction = decoded(machine, exp, "_f32");
  const Instruction* selected = machine.decode("v_exp_f32_sdwa v0, v1 dst_sel:DWORD src0_sel:DWORD");
  ASSERT_TRUE(instruction != nullptr && selected != nullptr);
  fill(machine, random, exp);
  const auto there = results(machine, *instruction, 99);
  EXPECT_EQ(results(machine, *selected, 99), there);
  std::reverse(machine.v(1), machine.v(1) + lane_places);
  machine.wave().set_exec(0x0ff00ff00ff00ff0);
  const auto reversed = results(machine, *instruction, 99);
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const bool active = ((machine.wave().exec() >> lane) & 1) != 0;
    EXPECT_EQ(reversed[lane], there[active ? lane_places - 1 - lane : lane]);
  }
}

// Results that are floats themselves, and the ISA's examples.
TEST(Permitted, WhatIsExactStays) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> operands = {0.0F,       -0.0F,  1.0F,    -1.0F,  infinity, -infinity, std::nanf(""), 0x1p-130F,
                                 -0x1p-130F, 129.0F, -127.5F, -1e30F, 3e38F,    -3e38F,    9.0F,          6.25F};
  for (int power = -126; power < 128; ++power) {
    operands.push_back(std::ldexp(1.0F, power));
    operands.push_back(static_cast<float>(power));
  }
  operands.resize((operands.size() + lane_places - 1) / lane_places * lane_places, 1.0F);
  Machine machine("gfx950");
  for (const Tested& function : functions) {
    const Instruction* instruction = decoded(machine, function, "_f32");
    ASSERT_NE(instruction, nullptr);
    for (std::size_t first = 0; first < operands.size(); first += lane_places) {
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        machine.v(1)[lane] = std::bit_cast<std::uint32_t>(operands[first + lane]);
      }
      const auto nearest = results(machine, *instruction, 0);
      std::array<int, lane_places> moved{};
      for (std::uint32_t key = 1; key < 64; ++key) {
        const auto other = results(machine, *instruction, key * 0x9e3779b9U);
        for (unsigned lane = 0; lane < lane_places; ++lane) moved[lane] += other[lane] != nearest[lane] ? 1 : 0;
      }
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        const float x = operands[first + lane];
        const float result = std::bit_cast<float>(nearest[lane]);
        const long double exact = function.exact(static_cast<long double>(x));
        const bool is_exact = !std::isnormal(result) || exact == static_cast<long double>(result);
        if (is_exact) {
          EXPECT_EQ(moved[lane], 0) << function.name << " of " << x;
        } else if (ulps(result, exact, -126, 24) > 0.01) {
          // Otherwise the other neighbour is a whole ulp away, or as good as.
          EXPECT_GT(moved[lane], 0) << function.name << " of " << x;
        }
      }
    }
  }
}

TEST(Permitted, Float16StaysWithinItsPromiseForEveryOperand) {
  Machine machine("gfx942");
  for (const Tested& function : functions) {
    const Instruction* instruction = decoded(machine, function, "_f16");
    ASSERT_NE(instruction, nullptr);
    int other = 0;
    for (std::uint32_t first = 0; first < 0x10000; first += lane_places) {
      for (unsigned lane = 0; lane < lane_places; ++lane) machine.v(1)[lane] = first + lane;
      const auto nearest = results(machine, *instruction, 0);
      const auto some = results(machine, *instruction, 5);
      for (unsigned lane = 0; lane < lane_places; ++lane) {
        if (some[lane] == nearest[lane]) continue;
        ++other;
        const double x = std::bit_cast<_Float16>(static_cast<std::uint16_t>(first + lane));
        const double got = std::bit_cast<_Float16>(static_cast<std::uint16_t>(some[lane]));
        ASSERT_LE(ulps(got, function.exact(static_cast<long double>(x)), -14, 11), 0.51)
            << function.name << " of " << x;
      }
    }
    EXPECT_GT(other, 20) << function.name;
  }
}

}  // namespace
}  // namespace wavejit::simgpu::test
