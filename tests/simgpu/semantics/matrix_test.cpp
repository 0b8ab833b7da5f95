// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix instructions against a float64 product through the lane layouts of docs/isa.md and AMD's matrix instruction
// calculator, written down here independently of the code under test.
#include "simgpu/machine/matrix/matrix.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "simgpu/machine/matrix/summation.h"
#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

enum class Type { f16, bf16, f32, xf32, f64, i8, fp8_fnuz, bf8_fnuz, fp8, bf8, fp6, bf6, fp4 };

struct Case {
  const char* processors;
  const char* mnemonic;
  int m, k, blocks;
  Type a, b;
  const char* modifiers = "";
};

int width(Type type) {
  switch (type) {
    case Type::f64:
      return 64;
    case Type::f32:
    case Type::xf32:
      return 32;
    case Type::f16:
    case Type::bf16:
      return 16;
    case Type::fp6:
    case Type::bf6:
      return 6;
    case Type::fp4:
      return 4;
    default:
      return 8;
  }
}

// Value of `1 + e + m` bits, straight from the definition.
double decode_small(std::uint32_t bits, int exponent_bits, int mantissa_bits, int bias) {
  const int sign = static_cast<int>(bits >> (exponent_bits + mantissa_bits)) & 1;
  const int exponent = static_cast<int>(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = static_cast<int>(bits) & ((1 << mantissa_bits) - 1);
  const double fraction = static_cast<double>(mantissa) / (1 << mantissa_bits);
  const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias);
  return sign != 0 ? -value : value;
}

double decode(std::uint64_t bits, Type type) {
  switch (type) {
    case Type::f64:
      return std::bit_cast<double>(bits);
    case Type::f32:
    case Type::xf32:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    case Type::bf16:
      return std::bit_cast<float>(static_cast<std::uint32_t>(bits << 16));
    case Type::f16:
      return decode_small(static_cast<std::uint32_t>(bits), 5, 10, 15);
    case Type::i8:
      return static_cast<std::int8_t>(bits);
    case Type::fp8_fnuz:
      return decode_small(static_cast<std::uint32_t>(bits), 4, 3, 8);
    case Type::bf8_fnuz:
      return decode_small(static_cast<std::uint32_t>(bits), 5, 2, 16);
    case Type::fp8:
      return decode_small(static_cast<std::uint32_t>(bits), 4, 3, 7);
    case Type::bf8:
      return decode_small(static_cast<std::uint32_t>(bits), 5, 2, 15);
    case Type::fp6:
      return decode_small(static_cast<std::uint32_t>(bits), 2, 3, 1);
    case Type::bf6:
      return decode_small(static_cast<std::uint32_t>(bits), 3, 2, 3);
    case Type::fp4:
      return decode_small(static_cast<std::uint32_t>(bits), 2, 1, 1);
  }
  return 0;
}

// A random encoding of moderate size: no NaN, no infinity.
std::uint64_t random_encoding(std::mt19937_64& random, Type type) {
  std::normal_distribution<double> normal;
  switch (type) {
    case Type::f64:
      return std::bit_cast<std::uint64_t>(normal(random));
    case Type::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(normal(random)));
    // Ten mantissa bits, so that narrowing changes nothing.
    case Type::xf32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(normal(random))) & 0xffffe000u;
    case Type::bf16:
      return std::bit_cast<std::uint32_t>(static_cast<float>(normal(random))) >> 16;
    case Type::f16:
      return (random() & 0x83ffu) | ((10 + random() % 8) << 10);
    case Type::i8:
      return random() & 0xff;
    case Type::fp8_fnuz:
    case Type::fp8:
      return (random() & 0x87u) | ((3 + random() % 8) << 3);
    case Type::bf8_fnuz:
    case Type::bf8:
      return (random() & 0x83u) | ((10 + random() % 8) << 2);
    case Type::fp6:
    case Type::bf6:
      return random() & 0x3f;
    case Type::fp4:
      return random() & 0xf;
  }
  return 0;
}

void put_bits(Machine& machine, unsigned first, unsigned lane, unsigned bit, unsigned bits, std::uint64_t value) {
  for (unsigned i = 0; i < bits; ++i) {
    std::uint32_t& word = machine.v(first + (bit + i) / 32)[lane];
    const std::uint32_t mask = 1u << ((bit + i) % 32);
    word = ((value >> i) & 1) != 0 ? word | mask : word & ~mask;
  }
}

std::string registers(unsigned first, unsigned count) {
  if (count == 1) return "v" + std::to_string(first);
  return "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

void check(const std::string& processor, const Case& test, std::uint64_t seed,
           const matrix::Summation* summation = nullptr) {
  SCOPED_TRACE(processor + " " + test.mnemonic + " " + test.modifiers);
  Machine machine(processor);
  machine.wave().summation = summation;
  std::mt19937_64 random(seed);
  const int per_lane = test.m * test.k * test.blocks / 64;
  const int results = test.m * test.m * test.blocks / 64;
  const bool integer = test.a == Type::i8;
  const bool wide = test.a == Type::f64;
  const auto operand_registers = [&](Type type) { return static_cast<unsigned>((per_lane * width(type) + 31) / 32); };
  constexpr unsigned a_first = 0;
  constexpr unsigned b_first = 16;
  constexpr unsigned c_first = 32;
  constexpr unsigned d_first = 96;

  using Matrix = std::vector<double>;
  const auto block_size = static_cast<std::size_t>(test.m) * static_cast<std::size_t>(test.k);
  std::vector<Matrix> a(test.blocks, Matrix(block_size));
  std::vector<Matrix> b(test.blocks, Matrix(block_size));
  for (unsigned lane = 0; lane < 64; ++lane) {
    const int index = static_cast<int>(lane) % test.m;
    const int block = static_cast<int>(lane) / test.m % test.blocks;
    const int group = static_cast<int>(lane) / test.m / test.blocks;
    for (int i = 0; i < per_lane; ++i) {
      const auto place = [&](Type type) {
        if (per_lane == 32 && width(type) == 8) return group * 16 + i % 16 + (i / 16) * (test.k / 2);
        return group * per_lane + i;
      };
      const std::uint64_t x = random_encoding(random, test.a);
      const std::uint64_t y = random_encoding(random, test.b);
      put_bits(machine, a_first, lane, static_cast<unsigned>(i * width(test.a)), width(test.a), x);
      put_bits(machine, b_first, lane, static_cast<unsigned>(i * width(test.b)), width(test.b), y);
      a[block][index * test.k + place(test.a)] = decode(x, test.a);
      b[block][index * test.k + place(test.b)] = decode(y, test.b);
    }
  }
  // C: small numbers of its own type.
  for (int r = 0; r < results; ++r) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      const int value = static_cast<int>(random() % 2001) - 1000;
      if (wide) {
        const auto bits = std::bit_cast<std::uint64_t>(value / 16.0);
        machine.v(c_first + 2 * r)[lane] = static_cast<std::uint32_t>(bits);
        machine.v(c_first + 2 * r + 1)[lane] = static_cast<std::uint32_t>(bits >> 32);
      } else {
        machine.v(c_first + r)[lane] =
            integer ? static_cast<std::uint32_t>(value) : std::bit_cast<std::uint32_t>(static_cast<float>(value) / 16);
      }
    }
  }
  machine.wave().set_exec(0x5555);  // must not matter
  const unsigned words = static_cast<unsigned>(results) * (wide ? 2 : 1);
  const std::string text = std::string(test.mnemonic) + " " + registers(d_first, words) + ", " +
                           registers(a_first, operand_registers(test.a)) + ", " +
                           registers(b_first, operand_registers(test.b)) + ", " + registers(c_first, words) + " " +
                           test.modifiers;
  ASSERT_TRUE(machine.run(text));
  int wrong = 0;
  for (int r = 0; r < results; ++r) {
    for (unsigned lane = 0; lane < 64; ++lane) {
      const int l = static_cast<int>(lane);
      const int column = l % test.m;
      int row = 0;
      int block = 0;
      if (wide) {
        row = test.m == 16 ? 4 * r + l / 16 : l / 16;
        block = test.m == 16 ? 0 : l / 4 % 4;
      } else if (test.m == 32) {
        row = 8 * (r % 16 / 4) + 4 * (l / 32) + r % 4;
        block = r / 16;
      } else if (test.m == 16) {
        row = 4 * (l / 16) + r % 4;
        block = r / 4;
      } else {
        row = r;
        block = l / 4;
      }
      double exact = 0;
      double size = 0;
      for (int k = 0; k < test.k; ++k) {
        const double product = a[block][row * test.k + k] * b[block][column * test.k + k];
        exact += product;
        size += std::abs(product);
      }
      double c = 0;
      double got = 0;
      if (wide) {
        c = machine.double_at(c_first + 2 * r, lane);
        got = machine.double_at(d_first + 2 * r, lane);
      } else if (integer) {
        c = static_cast<std::int32_t>(machine.at(c_first + r, lane));
        got = static_cast<std::int32_t>(machine.at(d_first + r, lane));
      } else {
        c = machine.float_at(c_first + r, lane);
        got = machine.float_at(d_first + r, lane);
      }
      exact += c;
      size += std::abs(c);
      const double bound = integer ? 0 : size * (wide ? 1e-15 : 1.2e-7) * (test.k + 1);
      if (!(std::abs(got - exact) <= bound) && ++wrong < 5) {
        ADD_FAILURE() << "block " << block << " row " << row << " column " << column << ": " << got << " instead of "
                      << exact;
      }
    }
  }
}

const Case cases[] = {
    {"gfx942 gfx950", "v_mfma_f32_32x32x8_f16", 32, 8, 1, Type::f16, Type::f16},
    {"gfx942 gfx950", "v_mfma_f32_32x32x8_bf16", 32, 8, 1, Type::bf16, Type::bf16},
    {"gfx950", "v_mfma_f32_32x32x16_f16", 32, 16, 1, Type::f16, Type::f16},
    {"gfx950", "v_mfma_f32_32x32x16_bf16", 32, 16, 1, Type::bf16, Type::bf16},
    {"gfx942 gfx950", "v_mfma_f32_16x16x16_f16", 16, 16, 1, Type::f16, Type::f16},
    {"gfx942 gfx950", "v_mfma_f32_16x16x16_bf16", 16, 16, 1, Type::bf16, Type::bf16},
    {"gfx950", "v_mfma_f32_16x16x32_f16", 16, 32, 1, Type::f16, Type::f16},
    {"gfx950", "v_mfma_f32_16x16x32_bf16", 16, 32, 1, Type::bf16, Type::bf16},
    {"gfx942 gfx950", "v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, Type::f16, Type::f16},
    {"gfx942 gfx950", "v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, Type::bf16, Type::bf16},
    {"gfx942 gfx950", "v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, Type::f16, Type::f16},
    {"gfx942 gfx950", "v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, Type::bf16, Type::bf16},
    {"gfx942 gfx950", "v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, Type::f16, Type::f16},
    {"gfx942 gfx950", "v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, Type::bf16, Type::bf16},
    {"gfx942 gfx950", "v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, Type::f32, Type::f32},
    {"gfx942 gfx950", "v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, Type::f32, Type::f32},
    {"gfx942 gfx950", "v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, Type::f32, Type::f32},
    {"gfx942 gfx950", "v_mfma_f32_32x32x2_f32", 32, 2, 1, Type::f32, Type::f32},
    {"gfx942 gfx950", "v_mfma_f32_16x16x4_f32", 16, 4, 1, Type::f32, Type::f32},
    {"gfx942", "v_mfma_f32_32x32x4_xf32", 32, 4, 1, Type::xf32, Type::xf32},
    {"gfx942", "v_mfma_f32_16x16x8_xf32", 16, 8, 1, Type::xf32, Type::xf32},
    {"gfx942 gfx950", "v_mfma_f64_16x16x4_f64", 16, 4, 1, Type::f64, Type::f64},
    {"gfx942 gfx950", "v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, Type::f64, Type::f64},
    {"gfx942 gfx950", "v_mfma_i32_32x32x16_i8", 32, 16, 1, Type::i8, Type::i8},
    {"gfx942 gfx950", "v_mfma_i32_16x16x32_i8", 16, 32, 1, Type::i8, Type::i8},
    {"gfx950", "v_mfma_i32_32x32x32_i8", 32, 32, 1, Type::i8, Type::i8},
    {"gfx950", "v_mfma_i32_16x16x64_i8", 16, 64, 1, Type::i8, Type::i8},
    {"gfx942 gfx950", "v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, Type::i8, Type::i8},
    {"gfx942 gfx950", "v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, Type::i8, Type::i8},
    {"gfx942 gfx950", "v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, Type::i8, Type::i8},
    {"gfx942", "v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, Type::fp8_fnuz, Type::fp8_fnuz},
    {"gfx942", "v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 1, Type::fp8_fnuz, Type::bf8_fnuz},
    {"gfx942", "v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, Type::bf8_fnuz, Type::fp8_fnuz},
    {"gfx942", "v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, Type::bf8_fnuz, Type::bf8_fnuz},
    {"gfx942", "v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1, Type::fp8_fnuz, Type::fp8_fnuz},
    {"gfx942", "v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, Type::fp8_fnuz, Type::bf8_fnuz},
    {"gfx942", "v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, Type::bf8_fnuz, Type::fp8_fnuz},
    {"gfx942", "v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, Type::bf8_fnuz, Type::bf8_fnuz},
    {"gfx950", "v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, Type::fp8, Type::fp8},
    {"gfx950", "v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, Type::fp8, Type::bf8},
    {"gfx950", "v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, Type::bf8, Type::fp8},
    {"gfx950", "v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, Type::bf8, Type::bf8},
    {"gfx950", "v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, Type::fp8, Type::fp8},
    {"gfx950", "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, Type::fp8, Type::fp8},
    {"gfx950", "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, Type::bf8, Type::fp8, "cbsz:1"},
    {"gfx950", "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, Type::fp6, Type::bf6, "cbsz:2 blgp:3"},
    {"gfx950", "v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, Type::fp4, Type::fp4, "cbsz:4 blgp:4"},
    {"gfx950", "v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, Type::bf6, Type::fp4, "cbsz:3 blgp:4"},
};

TEST(MatrixInstructions, AgreeWithAFloat64ProductThroughTheDocumentedLayouts) {
  for (const std::string processor : {"gfx942", "gfx950"}) {
    std::uint64_t seed = 1;
    for (const Case& test : cases) {
      if (std::string_view(test.processors).contains(processor)) check(processor, test, seed++);
    }
  }
}

TEST(MatrixInstructions, AgreeWithAFloat64ProductHoweverTheyAdd) {
  const matrix::Summation cdna3 = matrix::cdna3_summation();
  const matrix::Summation seeded[] = {matrix::seeded_summation(7), matrix::seeded_summation(8)};
  std::uint64_t seed = 100;
  for (const Case& test : cases) {
    const std::string_view processors = test.processors;
    if (processors.contains("gfx942")) check("gfx942", test, seed, &cdna3);
    for (const matrix::Summation& some : seeded) {
      check(processors.contains("gfx950") ? "gfx950" : "gfx942", test, seed, &some);
    }
    ++seed;
  }
}

// Each operand of f8f6f4 has a format of its own, named by cbsz and blgp; the number of its registers follows.
TEST(MatrixInstructions, OfMixedFormatsAgreeForEveryPairHoweverTheyAdd) {
  constexpr Type formats[] = {Type::fp8, Type::bf8, Type::fp6, Type::bf6, Type::fp4};  // 0 to 4 of cbsz and blgp
  const matrix::Summation seeded = matrix::seeded_summation(9);
  const matrix::Summation* const summations[] = {nullptr, &seeded};
  std::uint64_t seed = 200;
  for (std::size_t a = 0; a < std::size(formats); ++a) {
    for (std::size_t b = 0; b < std::size(formats); ++b) {
      const std::string modifiers = "cbsz:" + std::to_string(a) + " blgp:" + std::to_string(b);
      for (const matrix::Summation* summation : summations) {
        check("gfx950", {"gfx950", "v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, formats[a], formats[b], modifiers.c_str()},
              seed++, summation);
        check("gfx950",
              {"gfx950", "v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, formats[a], formats[b], modifiers.c_str()}, seed++,
              summation);
      }
    }
  }
}

TEST(MatrixInstructions, EveryRegisteredShapeIsTested) {
  for (const matrix::Shape& shape : matrix::shapes()) {
    bool tested = false;
    for (const Case& test : cases) tested = tested || std::string_view(test.mnemonic) == shape.name;
    EXPECT_TRUE(tested) << shape.name;
  }
}

TEST(MatrixInstructions, ShareTheAccumulatorWithTheResultAndTakeConstants) {
  Machine machine("gfx950");
  machine.set(0, 0x3c003c00u);  // 1.0, 1.0 in float16
  machine.set(1, 0x3c003c00u);
  machine.set(2, 0x3c003c00u);
  machine.set(3, 0x3c003c00u);
  ASSERT_TRUE(machine.run("v_mfma_f32_32x32x16_f16 a[0:15], v[0:3], v[0:3], 1.0"));
  for (unsigned r = 0; r < 16; ++r) EXPECT_EQ(machine.float_at(256 + r, 13), 17.0f);
  ASSERT_TRUE(machine.run("v_mfma_f32_32x32x16_f16 a[0:15], v[0:3], v[0:3], a[0:15]"));
  for (unsigned r = 0; r < 16; ++r) EXPECT_EQ(machine.float_at(256 + r, 63), 33.0f);
  ASSERT_TRUE(machine.run("v_mfma_f32_32x32x16_f16 v[0:15], v[0:3], v[0:3], 0"));
  for (unsigned r = 0; r < 16; ++r) EXPECT_EQ(machine.float_at(r, 5), 16.0f);
}

TEST(MatrixInstructions, SumWithAscendingKOneRoundingEach) {
  // 2^24 + 1 rounds back to 2^24 each time; the other way round the ones would add up first.
  Machine machine("gfx942");
  for (unsigned lane = 0; lane < 64; ++lane) {
    machine.v(0)[lane] = 0x3c003c00u;
    machine.v(1)[lane] = 0x3c003c00u;
    machine.v(2)[lane] = 0x3c003c00u;
    machine.v(3)[lane] = 0x3c003c00u;
  }
  ASSERT_TRUE(machine.run("v_mov_b32 v4, 0x4b800000"));
  ASSERT_TRUE(machine.run("v_mov_b32 v5, v4\nv_mov_b32 v6, v4\nv_mov_b32 v7, v4"));
  ASSERT_TRUE(machine.run("v_mfma_f32_16x16x16_f16 v[8:11], v[0:1], v[2:3], v[4:7]"));
  EXPECT_EQ(machine.float_at(8), 16777216.0f);
}

TEST(MatrixInstructions, KeepDenormalsWhateverMode) {
  Machine machine("gfx942");
  machine.wave().mode = 0;      // flush everything
  machine.set(0, 0x00000001u);  // 2^-24 in float16, and 0
  machine.set(1, 0u);
  machine.set(2, 0x00003c00u);
  machine.set(3, 0u);
  ASSERT_TRUE(machine.run("v_mfma_f32_32x32x8_f16 v[16:31], v[0:1], v[2:3], 0"));
  EXPECT_EQ(machine.float_at(16), std::ldexp(2.0f, -24));  // k = 0 and k = 4
}

TEST(MatrixInstructions, BroadcastBlocksOfA) {
  // 4x4x1, 16 blocks: A of block b is b; with cbsz 2, abid 1 blocks 4g…4g+3 all use A of block 4g+1.
  Machine machine("gfx942");
  for (unsigned lane = 0; lane < 64; ++lane) {
    const unsigned block = lane / 4;
    machine.v(0)[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(block));
  }
  machine.set(1, 1.0f);
  ASSERT_TRUE(machine.run("v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, 0 cbsz:2 abid:1"));
  for (unsigned lane = 0; lane < 64; ++lane) {
    const unsigned block = lane / 16 * 4 + 1;
    EXPECT_EQ(machine.float_at(5, lane), static_cast<float>(block)) << lane;
  }
  // BLGP 4: the first 16 lanes of B for everybody.
  for (unsigned lane = 0; lane < 64; ++lane)
    machine.v(1)[lane] = std::bit_cast<std::uint32_t>(static_cast<float>(lane));
  machine.set(0, 1.0f);
  ASSERT_TRUE(machine.run("v_mfma_f32_4x4x1_16b_f32 v[4:7], v0, v1, 0 blgp:4"));
  for (unsigned lane = 0; lane < 64; ++lane)
    EXPECT_EQ(machine.float_at(4, lane), static_cast<float>(lane % 16)) << lane;
}

TEST(MatrixInstructions, NegateFloat64Operands) {
  Machine machine("gfx942");
  machine.set64(0, 3.0);
  machine.set64(2, 5.0);
  machine.set64(4, 7.0);
  ASSERT_TRUE(machine.run("v_mfma_f64_4x4x4_4b_f64 v[8:9], v[0:1], v[2:3], v[4:5] neg:[1,0,1]"));
  EXPECT_EQ(machine.double_at(8, 17), -67.0);
}

TEST(MatrixInstructions, ScaleBlocksOf32) {
  Machine machine("gfx950");
  for (unsigned r = 0; r < 4; ++r) {
    machine.set(r, 0x22222222u);  // fp4 1.0
    machine.set(8 + r, 0x22222222u);
  }
  machine.set(16, 0x7f807f7fu);  // byte 0: 2^0, byte 2: 2^1
  machine.set(17, 0x7e7f7f7fu);  // byte 3: 2^-1
  ASSERT_TRUE(machine.run(
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[0:3], v[8:11], 0, v16, v17 op_sel:[0,0,0] op_sel_hi:[1,0,0] cbsz:4 blgp:4"));
  EXPECT_EQ(machine.float_at(20), 256.0f);
  ASSERT_TRUE(machine.run(
      "v_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[0:3], v[8:11], 0, v16, v17 op_sel:[0,1,0] op_sel_hi:[0,1,0] cbsz:4 blgp:4"));
  EXPECT_EQ(machine.float_at(20), 64.0f);
}

TEST(MatrixInstructions, ScaleByThirtyTwoConsecutiveK) {
  // Lane group g holds the scales of k = 32g…32g+31, also for 8-bit operands, which lie in two runs of 16. A is 1 where
  // k is in block 2 only, so that only the scales of lanes 32–47 count.
  Machine machine("gfx950");
  for (unsigned r = 0; r < 8; ++r) {
    machine.set(8 + r, 0x38383838u);  // fp8 1.0
    for (unsigned lane = 0; lane < 64; ++lane) {
      // Bytes 4r…4r+3 of lane group g: k = 16g + (4r mod 16) + 64·(r/4).
      const unsigned k = 16 * (lane / 16) + (4 * r) % 16 + 64 * (r / 4);
      machine.v(r)[lane] = k / 32 == 2 ? 0x38383838u : 0;
    }
  }
  for (unsigned lane = 0; lane < 64; ++lane) {
    machine.v(16)[lane] = 127 + lane / 16;
    machine.v(17)[lane] = 127;
  }
  ASSERT_TRUE(machine.run("v_mfma_scale_f32_16x16x128_f8f6f4 v[20:23], v[0:7], v[8:15], 0, v16, v17"));
  EXPECT_EQ(machine.float_at(20, 3), 128.0f);
}

}  // namespace
}  // namespace wavejit::simgpu::test
