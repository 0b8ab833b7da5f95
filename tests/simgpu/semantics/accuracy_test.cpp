// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How exact the transcendental instructions are, against float64 libm, and that the division sequences which LLVM emits
// come out correctly rounded.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <string>
#include <utility>

#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

// Distance of `got` from `exact` in units of float32's last place at `exact`.
double ulps(float got, double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e9;
  if (std::abs(exact) >= 0x1.ffffffp127) return std::isinf(got) ? 0 : 1e9;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent, -125) - 24);
  return std::abs(static_cast<double>(got) - exact) / unit;
}

struct Row {
  const char* mnemonic;
  double (*exact)(double);
  float low, high;
  double bound;  // the ISA says one ulp; ours is half a ulp and a little
};

double sine_of_turns(double x) { return std::sin(2 * M_PI * (x - std::nearbyint(x))); }
double cosine_of_turns(double x) { return std::cos(2 * M_PI * (x - std::nearbyint(x))); }

TEST(Accuracy, TranscendentalFloat32WithinOneUlp) {
  const Row rows[] = {
      {"v_exp_f32", [](double x) { return std::exp2(x); }, -125.9f, 127.9f, 0.51},
      {"v_exp_f32", [](double x) { return std::exp2(x); }, -1e-3f, 1e-3f, 0.51},
      {"v_log_f32", [](double x) { return std::log2(x); }, 0x1p-126f, 0x1p127f, 0.51},
      {"v_log_f32", [](double x) { return std::log2(x); }, 0.5f, 2.0f, 0.51},
      {"v_log_f32", [](double x) { return std::log2(x); }, 0.9999f, 1.0001f, 0.51},
      {"v_rcp_f32", [](double x) { return 1 / x; }, 0x1p-125f, 0x1p125f, 0.51},
      {"v_rsq_f32", [](double x) { return 1 / std::sqrt(x); }, 0x1p-126f, 0x1p127f, 0.51},
      {"v_sqrt_f32", [](double x) { return std::sqrt(x); }, 0x1p-126f, 0x1p127f, 0.51},
      {"v_sin_f32", &sine_of_turns, -256.0f, 256.0f, 0.51},
      {"v_sin_f32", &sine_of_turns, -1e-2f, 1e-2f, 0.51},
      {"v_cos_f32", &cosine_of_turns, -256.0f, 256.0f, 0.51},
  };
  Machine machine("gfx950");
  std::mt19937_64 random = random_from(1);
  for (const Row& row : rows) {
    const Instruction* instruction = machine.decode(std::string(row.mnemonic) + " v0, v1");
    ASSERT_NE(instruction, nullptr);
    double worst = 0;
    float where = 0;
    for (int round = 0; round < 4000; ++round) {
      for (unsigned lane = 0; lane < 64; ++lane) {
        // Half evenly, half by exponent.
        std::uniform_real_distribution<double> even(row.low, row.high);
        float x = static_cast<float>(even(random));
        if (row.low > 0 && lane % 2 == 0) {
          std::uniform_real_distribution<double> logarithm(std::log2(row.low), std::log2(row.high));
          x = static_cast<float>(std::exp2(logarithm(random)));
        }
        machine.v(1)[lane] = std::bit_cast<std::uint32_t>(x);
      }
      instruction->execute(machine.wave(), *instruction);
      for (unsigned lane = 0; lane < 64; ++lane) {
        const float x = machine.float_at(1, lane);
        const double exact = row.exact(x);
        // Cosine and sine next to their zeros: what libm makes of an inexact 2*pi*x is no reference.
        if (std::abs(exact) < 1e-9) continue;
        const double error = ulps(machine.float_at(0, lane), exact);
        if (error > worst) {
          worst = error;
          where = x;
        }
      }
    }
    EXPECT_LE(worst, row.bound) << row.mnemonic << " at " << where;
    RecordProperty(std::string(row.mnemonic) + "_ulps", std::to_string(worst));
  }
}

// Where 2^x stops being a normal number, whole powers, and how near 1 it comes on both sides.
TEST(Accuracy, ExpAtTheEndsOfItsRange) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const std::array<std::pair<float, float>, 15> rows = {{{128.0F, infinity},
                                                         {std::nextafter(128.0F, 0.0F), 0x1.ffff4ep127F},
                                                         {127.0F, 0x1p127F},
                                                         {0x1p30F, infinity},
                                                         {infinity, infinity},
                                                         {-126.0F, 0x1p-126F},
                                                         {std::nextafter(-126.0F, -200.0F), 0.0F},
                                                         {-127.0F, 0.0F},
                                                         {-0x1p30F, 0.0F},
                                                         {-infinity, 0.0F},
                                                         {0.0F, 1.0F},
                                                         {-0.0F, 1.0F},
                                                         {0x1p-149F, 1.0F},
                                                         {0x1p-23F, 0x1.000002p0F},
                                                         {-0x1p-24F, 0x1.fffffep-1F}}};
  Machine machine("gfx942");
  const Instruction* instruction = machine.decode("v_exp_f32 v0, v1");
  ASSERT_NE(instruction, nullptr);
  for (const auto& [x, expected] : rows) {
    for (unsigned lane = 0; lane < 64; ++lane) machine.v(1)[lane] = std::bit_cast<std::uint32_t>(x);
    instruction->execute(machine.wave(), *instruction);
    for (unsigned lane = 0; lane < 64; ++lane) {
      ASSERT_EQ(machine.at(0, lane), std::bit_cast<std::uint32_t>(expected)) << "2^" << x;
    }
  }
  for (int power = -126; power < 128; ++power) {
    machine.v(1)[0] = std::bit_cast<std::uint32_t>(static_cast<float>(power));
    instruction->execute(machine.wave(), *instruction);
    ASSERT_EQ(machine.float_at(0, 0), std::ldexp(1.0F, power));
  }
}

TEST(Accuracy, Float16FunctionsOfEveryInput) {
  const Row rows[] = {
      {"v_exp_f16", [](double x) { return std::exp2(x); }, 0, 0, 0},
      {"v_log_f16", [](double x) { return std::log2(x); }, 0, 0, 0},
      {"v_rcp_f16", [](double x) { return 1 / x; }, 0, 0, 0},
      {"v_rsq_f16", [](double x) { return 1 / std::sqrt(x); }, 0, 0, 0},
      {"v_sqrt_f16", [](double x) { return std::sqrt(x); }, 0, 0, 0},
  };
  Machine machine("gfx942");
  for (const Row& row : rows) {
    const Instruction* instruction = machine.decode(std::string(row.mnemonic) + " v0, v1");
    ASSERT_NE(instruction, nullptr);
    for (std::uint32_t first = 0; first < 0x10000; first += 64) {
      for (unsigned lane = 0; lane < 64; ++lane) machine.v(1)[lane] = first + lane;
      instruction->execute(machine.wave(), *instruction);
      for (unsigned lane = 0; lane < 64; ++lane) {
        const double x = std::bit_cast<_Float16>(static_cast<std::uint16_t>(first + lane));
        const double exact = row.exact(x);
        const double got = std::bit_cast<_Float16>(static_cast<std::uint16_t>(machine.at(0, lane)));
        if (std::isnan(exact)) {
          ASSERT_TRUE(std::isnan(got)) << row.mnemonic << " of " << x;
          continue;
        }
        if (std::abs(exact) >= 65520) {
          ASSERT_TRUE(std::isinf(got)) << row.mnemonic << " of " << x;
          continue;
        }
        int exponent = 0;
        std::frexp(exact, &exponent);
        const double unit = std::ldexp(1.0, std::max(exponent, -13) - 11);
        ASSERT_LE(std::abs(got - exact), 0.501 * unit) << row.mnemonic << " of " << x;
      }
    }
  }
}

std::uint32_t random_float_bits(std::mt19937_64& random) {
  // Every exponent as likely as any other, the ends more often.
  const std::uint64_t bits = random();
  std::uint32_t exponent = static_cast<std::uint32_t>(bits >> 32) & 0xff;
  if ((bits & 0x700) == 0) exponent = static_cast<std::uint32_t>(bits >> 40) % 3;
  if ((bits & 0x700) == 0x100) exponent = 252 + static_cast<std::uint32_t>(bits >> 40) % 3;
  return (static_cast<std::uint32_t>(bits) & 0x807fffffu) | (exponent << 23);
}

// The code of `fdiv float` as llc-22 emits it for a kernel with denormals kept.
constexpr const char* divide_f32 =
    "v_div_scale_f32 v4, s[0:1], v2, v2, v1\n"
    "v_rcp_f32 v5, v4\n"
    "v_fma_f32 v6, -v4, v5, 1.0\n"
    "v_fmac_f32 v5, v6, v5\n"
    "v_div_scale_f32 v7, vcc, v1, v2, v1\n"
    "v_mul_f32 v6, v7, v5\n"
    "v_fma_f32 v8, -v4, v6, v7\n"
    "v_fmac_f32 v6, v8, v5\n"
    "v_fma_f32 v4, -v4, v6, v7\n"
    "v_div_fmas_f32 v4, v4, v5, v6\n"
    "v_div_fixup_f32 v0, v4, v2, v1";

TEST(Accuracy, DivisionOfFloat32IsCorrectlyRounded) {
  Machine machine("gfx942");
  std::mt19937_64 random = random_from(3);
  const Instruction* program = machine.decode(divide_f32);
  ASSERT_NE(program, nullptr);
  for (int round = 0; round < 4000; ++round) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      machine.v(1)[lane] = random_float_bits(random);
      machine.v(2)[lane] = random_float_bits(random);
      if (lane % 4 == 0) {
        // Quotients that are denormal or next to overflow.
        const std::uint32_t exponent = 1 + static_cast<std::uint32_t>(random() % 30);
        machine.v(1)[lane] = (machine.v(1)[lane] & 0x807fffffu) | (exponent << 23);
        machine.v(2)[lane] = (machine.v(2)[lane] & 0x807fffffu) | ((exponent + 120) << 23);
      }
    }
    for (int i = 0; i < 11; ++i) program[i].execute(machine.wave(), program[i]);
    for (unsigned lane = 0; lane < 64; ++lane) {
      const float n = machine.float_at(1, lane);
      const float d = machine.float_at(2, lane);
      const float exact = n / d;
      const float got = machine.float_at(0, lane);
      ASSERT_TRUE(std::bit_cast<std::uint32_t>(exact) == std::bit_cast<std::uint32_t>(got) ||
                  (std::isnan(exact) && std::isnan(got)))
          << std::hexfloat << n << " / " << d << " = " << exact << ", not " << got;
    }
  }
}

constexpr const char* divide_f64 =
    "v_div_scale_f64 v[10:11], s[0:1], v[4:5], v[4:5], v[2:3]\n"
    "v_rcp_f64 v[12:13], v[10:11]\n"
    "v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0\n"
    "v_fmac_f64 v[12:13], v[12:13], v[14:15]\n"
    "v_fma_f64 v[14:15], -v[10:11], v[12:13], 1.0\n"
    "v_fmac_f64 v[12:13], v[12:13], v[14:15]\n"
    "v_div_scale_f64 v[14:15], vcc, v[2:3], v[4:5], v[2:3]\n"
    "v_mul_f64 v[16:17], v[14:15], v[12:13]\n"
    "v_fma_f64 v[10:11], -v[10:11], v[16:17], v[14:15]\n"
    "v_div_fmas_f64 v[10:11], v[10:11], v[12:13], v[16:17]\n"
    "v_div_fixup_f64 v[0:1], v[10:11], v[4:5], v[2:3]";

TEST(Accuracy, DivisionOfFloat64IsCorrectlyRounded) {
  Machine machine("gfx950");
  std::mt19937_64 random = random_from(4);
  const Instruction* program = machine.decode(divide_f64);
  ASSERT_NE(program, nullptr);
  const auto number = [&](std::uint64_t exponent) { return (random() & 0x800fffffffffffffu) | (exponent << 52); };
  for (int round = 0; round < 4000; ++round) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      std::uint64_t n = number(random() % 2048);
      std::uint64_t d = number(random() % 2048);
      if (lane % 4 == 0) {
        const std::uint64_t exponent = 1 + random() % 100;
        n = number(exponent);
        d = number(exponent + 1010 + random() % 20);
      }
      if (lane % 4 == 1) {
        n = number(1);
        d = number(random() % 3);
      }
      machine.v(2)[lane] = static_cast<std::uint32_t>(n);
      machine.v(3)[lane] = static_cast<std::uint32_t>(n >> 32);
      machine.v(4)[lane] = static_cast<std::uint32_t>(d);
      machine.v(5)[lane] = static_cast<std::uint32_t>(d >> 32);
    }
    for (int i = 0; i < 11; ++i) program[i].execute(machine.wave(), program[i]);
    for (unsigned lane = 0; lane < 64; ++lane) {
      const double n = machine.double_at(2, lane);
      const double d = machine.double_at(4, lane);
      const double exact = n / d;
      const double got = machine.double_at(0, lane);
      ASSERT_TRUE(std::bit_cast<std::uint64_t>(exact) == std::bit_cast<std::uint64_t>(got) ||
                  (std::isnan(exact) && std::isnan(got)))
          << std::hexfloat << n << " / " << d << " = " << exact << ", not " << got;
    }
  }
}

TEST(Accuracy, TrigPreopGivesTheBitsOfTwoOverPi) {
  Machine machine("gfx942");
  machine.set64(2, 1.0);
  ASSERT_TRUE(
      machine.run("v_trig_preop_f64 v[4:5], v[2:3], 0\nv_trig_preop_f64 v[6:7], v[2:3], 1\n"
                  "v_trig_preop_f64 v[8:9], v[2:3], 2"));
  // Three pieces of 53 bits, none overlapping: the first is 2/pi cut off, their sum is 2/pi to 159 bits.
  const double first = machine.double_at(4);
  EXPECT_LE(first, 2 / M_PI);
  EXPECT_NEAR(first, 2 / M_PI, 0x1p-53);
  EXPECT_LT(machine.double_at(6), 0x1p-53);
  EXPECT_LT(machine.double_at(8), 0x1p-106);
  const long double sum = static_cast<long double>(first) + machine.double_at(6);
  EXPECT_NEAR(static_cast<double>(sum * M_PIl - 2.0L), 0.0, 4e-19);
  // For large operands the window moves down by their exponent: bits 53·s + (exponent − 1077) on.
  machine.set64(2, 0x1p100);
  ASSERT_TRUE(machine.run("v_trig_preop_f64 v[10:11], v[2:3], 0"));
  EXPECT_LT(machine.double_at(10), 0x1p-46);
  EXPECT_GT(machine.double_at(10), 0x1p-110);
}

}  // namespace
}  // namespace wavejit::simgpu::test
