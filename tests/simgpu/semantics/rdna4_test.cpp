// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RDNA4: products of 16-bit floats against captures from the hardware, of bytes and nibbles against exact sums, and
// what its vector instructions do with halves, pairs and lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

struct Row {
  std::string instruction;
  unsigned lanes = 0;
  std::vector<std::uint32_t> a;
  std::vector<std::uint32_t> b;
  std::uint32_t c = 0;
  std::string d;
};

std::vector<std::uint32_t> words_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::uint32_t> words;
  for (std::string word; in >> word;) words.push_back(static_cast<std::uint32_t>(std::stoul(word, nullptr, 16)));
  return words;
}

std::vector<Row> rows_of(const char* path) {
  std::ifstream file(path);
  std::vector<Row> rows;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::vector<std::string> parts;
    std::istringstream in(line);
    for (std::string part; std::getline(in, part, '|');) {
      std::erase_if(part, [&](char c) { return c == ' ' && parts.size() != 2 && parts.size() != 3; });
      parts.push_back(part);
    }
    rows.push_back({.instruction = parts.at(0),
                    .lanes = static_cast<unsigned>(std::stoul(parts.at(1))),
                    .a = words_of(parts.at(2)),
                    .b = words_of(parts.at(3)),
                    .c = words_of(parts.at(4)).at(0),
                    .d = parts.at(5)});
  }
  return rows;
}

void expect_result(const Row& row, std::uint32_t got, std::size_t number) {
  if (row.d == "nan") {
    EXPECT_GT(got & 0x7fffffffU, 0x7f800000U) << number;
  } else {
    EXPECT_EQ(got, std::stoul(row.d, nullptr, 16)) << number << ": " << row.instruction << " of " << row.lanes;
  }
}

constexpr unsigned a_first = 0;
constexpr unsigned b_first = 8;
constexpr unsigned c_first = 16;
constexpr unsigned d_first = 24;

std::string registers(unsigned first, unsigned count) {
  return "v[" + std::to_string(first) + ":" + std::to_string(first + count - 1) + "]";
}

// The row of A in every row, the column of B in every column: all elements are the one.
std::vector<std::uint32_t> all_elements(const Row& row) {
  Machine machine("gfx1201", row.lanes);
  const unsigned groups = row.lanes / 16;
  const unsigned per_lane = 16 / groups;
  const unsigned results = 256 / row.lanes;
  for (unsigned lane = 0; lane < row.lanes; ++lane) {
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned k = (per_lane * (lane / 16)) + i;
      for (const auto& [first, values] : {std::pair{a_first, &row.a}, std::pair{b_first, &row.b}}) {
        std::uint32_t& word = machine.v(first + (i / 2))[lane];
        word = i % 2 == 0 ? (*values)[k] : word | ((*values)[k] << 16);
      }
    }
    for (unsigned r = 0; r < results; ++r) machine.v(c_first + r)[lane] = row.c;
  }
  EXPECT_TRUE(machine.run(row.instruction + " " + registers(d_first, results) + ", " +
                          registers(a_first, per_lane / 2) + ", " + registers(b_first, per_lane / 2) + ", " +
                          registers(c_first, results)));
  std::vector<std::uint32_t> all;
  for (unsigned r = 0; r < results; ++r) {
    for (unsigned lane = 0; lane < row.lanes; ++lane) all.push_back(machine.at(d_first + r, lane));
  }
  return all;
}

std::size_t check(const std::vector<Row>& rows) {
  std::size_t reproduced = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.a.size() == 2) {
      Machine machine("gfx1201");
      machine.set(0, row.a[0] | (row.a[1] << 16));
      machine.set(1, row.b[0] | (row.b[1] << 16));
      machine.set(2, row.c);
      EXPECT_TRUE(machine.run(row.instruction + " v3, v0, v1, v2"));
      expect_result(row, machine.at(3), i);
    } else {
      const std::vector<std::uint32_t> all = all_elements(row);
      EXPECT_TRUE(std::ranges::all_of(all, [&](std::uint32_t bits) { return bits == all[0]; })) << i;
      expect_result(row, all[0], i);
    }
    reproduced += ::testing::Test::HasFailure() ? 0 : 1;
  }
  return reproduced;
}

TEST(Rdna4, EveryCaptureOfTheHardwareIsReproduced) { EXPECT_EQ(check(rows_of(WAVEJIT_RDNA4_CAPTURES)), 169U); }
TEST(Rdna4, VectorsOfAnotherModelAgree) { EXPECT_EQ(check(rows_of(WAVEJIT_RDNA4_VECTORS)), 20U); }

// Rows, columns and registers, by small integers: exact in every format.
template <typename Value>
void check_layout(const std::string& name, unsigned lanes, unsigned k, unsigned bits, Value encode, bool integers,
                  const std::string& modifiers = "") {
  Machine machine("gfx1201", lanes);
  auto random = random_from(7);
  std::vector<int> a(16 * k);
  std::vector<int> b(16 * k);
  std::vector<int> c(256);
  for (int& x : a) x = static_cast<int>(random() % 8);
  for (int& x : b) x = static_cast<int>(random() % 8);
  for (int& x : c) x = static_cast<int>(random() % 100) - 50;
  const unsigned per_lane = 16 * k / lanes;
  const unsigned operand_words = (per_lane * bits + 31) / 32;
  const unsigned results = 256 / lanes;
  const auto row_of = [&](unsigned lane, unsigned r) {
    return lanes == 32 ? (8 * (lane / 16)) + r : (8 * (lane / 16 % 2)) + (4 * (lane / 32)) + r;
  };
  for (unsigned lane = 0; lane < lanes; ++lane) {
    for (unsigned word = 0; word < operand_words; ++word) machine.v(word)[lane] = machine.v(b_first + word)[lane] = 0;
    for (unsigned i = 0; i < per_lane; ++i) {
      const unsigned at = (per_lane * (lane / 16)) + i;
      machine.v(i * bits / 32)[lane] |= encode(a[(lane % 16 * k) + at]) << (i * bits % 32);
      machine.v(b_first + (i * bits / 32))[lane] |= encode(b[(lane % 16 * k) + at]) << (i * bits % 32);
    }
    for (unsigned r = 0; r < results; ++r) {
      const int value = c[(row_of(lane, r) * 16) + (lane % 16)];
      machine.v(c_first + r)[lane] =
          integers ? static_cast<std::uint32_t>(value) : std::bit_cast<std::uint32_t>(static_cast<float>(value));
    }
  }
  const auto operand = [&](unsigned first) {
    return operand_words == 1 ? "v" + std::to_string(first) : registers(first, operand_words);
  };
  ASSERT_TRUE(machine.run(name + " " + registers(d_first, results) + ", " + operand(a_first) + ", " + operand(b_first) +
                          ", " + registers(c_first, results) + modifiers))
      << name;
  for (unsigned lane = 0; lane < lanes; ++lane) {
    for (unsigned r = 0; r < results; ++r) {
      const unsigned row = row_of(lane, r);
      int expected = c[(row * 16) + (lane % 16)];
      for (unsigned i = 0; i < k; ++i) expected += a[(row * k) + i] * b[(lane % 16 * k) + i];
      const std::uint32_t got = machine.at(d_first + r, lane);
      EXPECT_EQ(integers ? static_cast<int>(got) : static_cast<int>(std::bit_cast<float>(got)), expected)
          << name << " lane " << lane << " register " << r;
    }
  }
}

std::uint32_t half_of(int x) { return std::bit_cast<std::uint16_t>(static_cast<_Float16>(x)); }
std::uint32_t brain_of(int x) { return std::bit_cast<std::uint32_t>(static_cast<float>(x)) >> 16; }
// 0 … 7 with sign 0: exponent bias 7, three fraction bits.
std::uint32_t fp8_of(int x) {
  if (x == 0) return 0;
  const int power = std::bit_width(static_cast<unsigned>(x)) - 1;
  return static_cast<std::uint32_t>(((power + 7) << 3) | ((x << (3 - power)) & 7));
}
std::uint32_t integer_of(int x) { return static_cast<std::uint32_t>(x); }

TEST(Rdna4, ElementsAreWhereTheLayoutSays) {
  for (const unsigned lanes : {32U, 64U}) {
    check_layout("v_wmma_f32_16x16x16_f16", lanes, 16, 16, half_of, false);
    check_layout("v_wmma_f32_16x16x16_bf16", lanes, 16, 16, brain_of, false);
    check_layout("v_wmma_f32_16x16x16_fp8_fp8", lanes, 16, 8, fp8_of, false);
    check_layout("v_wmma_i32_16x16x16_iu8", lanes, 16, 8, integer_of, true);
    check_layout("v_wmma_i32_16x16x16_iu4", lanes, 16, 4, integer_of, true);
    check_layout("v_wmma_i32_16x16x32_iu4", lanes, 32, 4, integer_of, true);
  }
}

TEST(Rdna4, HalvesOfRegistersKeepTheOther) {
  Machine machine("gfx1201");
  machine.set(0, 0x3c004000U);  // 2, 1
  machine.set(1, 0x44004200U);  // 3, 4
  machine.set(2, 0x11112222U);
  ASSERT_TRUE(machine.run("v_add_f16 v2.h, v0.l, v1.h"));
  EXPECT_EQ(machine.at(2), 0x46002222U);  // 2 + 4 above
  ASSERT_TRUE(machine.run("v_mul_f16 v2.l, v0.h, v1.l"));
  EXPECT_EQ(machine.at(2), 0x46004200U);
  ASSERT_TRUE(machine.run("v_cvt_f32_f16 v3, v1.h"));
  EXPECT_EQ(machine.float_at(3), 4.0F);
  ASSERT_TRUE(machine.run("v_swap_b16 v0.l, v1.h"));
  EXPECT_EQ(machine.at(0), 0x3c004400U);
  EXPECT_EQ(machine.at(1), 0x40004200U);
}

TEST(Rdna4, PairsReadBeforeTheyWrite) {
  Machine machine("gfx1201");
  machine.set(0, 5U);
  machine.set(1, 7U);
  ASSERT_TRUE(machine.run("v_dual_mov_b32 v0, v1 :: v_dual_mov_b32 v1, v0"));
  EXPECT_EQ(machine.at(0), 7U);
  EXPECT_EQ(machine.at(1), 5U);
  machine.set(2, 1.5F);
  machine.set(3, 2.0F);
  machine.set(5, 4.0F);
  ASSERT_TRUE(machine.run("v_dual_fmac_f32 v5, v2, v3 :: v_dual_add_nc_u32 v4, v0, v1"));
  EXPECT_EQ(machine.float_at(5), 7.0F);
  EXPECT_EQ(machine.at(4), 12U);
  machine.wave().set_vcc(0xffff0000U);
  ASSERT_TRUE(machine.run("v_dual_cndmask_b32 v6, v0, v1 :: v_dual_mul_f32 v7, v2, v3"));
  EXPECT_EQ(machine.at(6, 3), 7U);
  EXPECT_EQ(machine.at(6, 20), 5U);
  EXPECT_EQ(machine.float_at(7), 3.0F);
}

TEST(Rdna4, LanesReadEachOther) {
  Machine machine("gfx1201");
  for (unsigned lane = 0; lane < 32; ++lane) machine.v(0)[lane] = lane;
  const auto expect_from = [&](const std::string& text, auto from) {
    machine.set(1, 99U);
    ASSERT_TRUE(machine.run(text));
    for (unsigned lane = 0; lane < 32; ++lane) EXPECT_EQ(machine.at(1, lane), from(lane)) << text << ", " << lane;
  };
  expect_from("v_mov_b32_dpp v1, v0 dpp8:[7,6,5,4,3,2,1,0]", [](unsigned lane) { return lane ^ 7; });
  expect_from("v_mov_b32_dpp v1, v0 row_share:3 row_mask:0xf bank_mask:0xf",
              [](unsigned lane) { return (lane & 16) | 3; });
  expect_from("v_mov_b32_dpp v1, v0 row_xmask:5 row_mask:0xf bank_mask:0xf", [](unsigned lane) { return lane ^ 5; });
  machine.wave().sgpr[2] = 0x76543210;
  machine.wave().sgpr[3] = 0xfedcba98;
  expect_from("v_permlanex16_b32 v1, v0, s2, s3", [](unsigned lane) { return lane ^ 16; });
  expect_from("v_permlane16_b32 v1, v0, s3, s2", [](unsigned lane) { return lane ^ 8; });
  for (unsigned lane = 0; lane < 32; ++lane) machine.v(2)[lane] = 15 - (lane % 16);
  expect_from("v_permlane16_var_b32 v1, v0, v2", [](unsigned lane) { return lane ^ 15; });
  expect_from("v_permlanex16_var_b32 v1, v0, v2", [](unsigned lane) { return lane ^ 31; });
  machine.wave().set_exec(0xff);
  ASSERT_TRUE(machine.run("v_mov_b32 v1, 0"));
  ASSERT_TRUE(machine.run("v_permlanex16_b32 v1, v0, s2, s3 op_sel:[1,0]"));
  EXPECT_EQ(machine.at(1, 2), 18U);
}

TEST(Rdna4, MasksAreOneRegister) {
  Machine machine("gfx1201");
  machine.wave().sgpr[9] = 0x12345678;
  for (unsigned lane = 0; lane < 32; ++lane) machine.v(0)[lane] = lane;
  ASSERT_TRUE(machine.run("v_cmp_gt_u32 s8, 4, v0"));
  EXPECT_EQ(machine.wave().sgpr[8], 0xfU);
  EXPECT_EQ(machine.wave().sgpr[9], 0x12345678U);
  ASSERT_TRUE(machine.run("s_and_saveexec_b32 s10, s8"));
  EXPECT_EQ(machine.wave().exec(), 0xfU);
  EXPECT_EQ(machine.wave().sgpr[10], 0xffffffffU);
  ASSERT_TRUE(machine.run("v_cmpx_eq_u32 2, v0"));
  EXPECT_EQ(machine.wave().exec(), 4U);
  ASSERT_TRUE(machine.run("s_mov_b32 exec_lo, -1"));
  ASSERT_TRUE(machine.run("v_add_co_u32 v1, vcc_lo, -1, v0"));
  EXPECT_EQ(machine.wave().vcc(), 0xfffffffeU);
  ASSERT_TRUE(machine.run("v_add_co_ci_u32 v2, null, 0, v0, vcc_lo"));
  EXPECT_EQ(machine.at(2, 0), 0U);
  EXPECT_EQ(machine.at(2, 5), 6U);
}

TEST(Rdna4, ScalarsAreFloatsToo) {
  Machine machine("gfx1201");
  machine.wave().sgpr[2] = std::bit_cast<std::uint32_t>(1.5F);
  machine.wave().sgpr[3] = std::bit_cast<std::uint32_t>(-4.0F);
  const auto float_at = [&](unsigned index) { return std::bit_cast<float>(machine.wave().sgpr[index]); };
  ASSERT_TRUE(machine.run("s_mul_f32 s4, s2, s3"));
  EXPECT_EQ(float_at(4), -6.0F);
  ASSERT_TRUE(machine.run("s_fmac_f32 s4, s2, s2"));
  EXPECT_EQ(float_at(4), -3.75F);
  ASSERT_TRUE(machine.run("s_fmaak_f32 s5, s2, s3, 0x41000000"));
  EXPECT_EQ(float_at(5), 2.0F);
  ASSERT_TRUE(machine.run("v_s_exp_f32 s6, -s3"));
  EXPECT_EQ(float_at(6), 16.0F);
  ASSERT_TRUE(machine.run("v_s_rcp_f32 s6, |s3|"));
  EXPECT_EQ(float_at(6), 0.25F);
  ASSERT_TRUE(machine.run("s_cmp_lt_f32 s3, s2"));
  EXPECT_EQ(machine.wave().scc, 1U);
  machine.wave().sgpr[7] = 7;
  ASSERT_TRUE(machine.run("s_cvt_f32_u32 s8, s7"));
  EXPECT_EQ(float_at(8), 7.0F);
  machine.wave().set_sgpr64(10, 0xffffffffULL);
  ASSERT_TRUE(machine.run("s_add_nc_u64 s[12:13], s[10:11], 1"));
  EXPECT_EQ(machine.wave().sgpr64(12), 0x100000000ULL);
}

}  // namespace
}  // namespace wavejit::simgpu::test
