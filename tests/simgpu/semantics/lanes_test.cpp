// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What crosses lanes or depends on them: EXEC, compares, carries, DPP, SDWA, lane reads and writes, permutations.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

void set_lane_numbers(Machine& machine, unsigned index, std::uint32_t offset = 0) {
  for (unsigned lane = 0; lane < 64; ++lane) machine.v(index)[lane] = lane + offset;
}

TEST(Lanes, InactiveLanesKeepTheirValues) {
  Machine machine("gfx942");
  set_lane_numbers(machine, 1);
  machine.set(0, 1000u);
  machine.set(4, 2000u);
  machine.set(5, 3000u);
  machine.wave().set_exec(0x8000000000000005u);
  ASSERT_TRUE(machine.run("v_add_u32 v0, v1, v1\nv_lshl_add_u64 v[4:5], v[4:5], 1, v[4:5]"));
  for (unsigned lane = 0; lane < 64; ++lane) {
    const bool active = lane == 0 || lane == 2 || lane == 63;
    EXPECT_EQ(machine.at(0, lane), active ? 2 * lane : 1000u);
    EXPECT_EQ(machine.at(4, lane), active ? 6000u : 2000u);
    EXPECT_EQ(machine.at(5, lane), active ? 9000u : 3000u);
  }
}

TEST(Lanes, ComparesGiveMasks) {
  Machine machine("gfx942");
  set_lane_numbers(machine, 1);
  machine.wave().set_exec(0xffffffff0000ffffu);
  ASSERT_TRUE(machine.run("v_cmp_gt_u32 vcc, 8, v1\nv_cmp_le_i32 s[10:11], 60, v1"));
  EXPECT_EQ(machine.wave().vcc(), 0xffu);
  EXPECT_EQ(machine.wave().sgpr64(10), 0xf000000000000000u);
  ASSERT_TRUE(machine.run("v_cmpx_ne_u32 vcc, 3, v1"));
  EXPECT_EQ(machine.wave().exec(), 0xffffffff0000fff7u);
  EXPECT_EQ(machine.wave().vcc(), 0xffffffff0000fff7u);
}

TEST(Lanes, FloatComparesTreatNanAsUnordered) {
  Machine machine("gfx942");
  constexpr std::uint32_t nan = 0x7fc00000;
  // Lane 0: 1 and 2; lane 1: equal; lane 2: 2 and 1; lane 3: NaN and 1; lane 4: -0 and 0.
  const std::uint32_t a[5] = {0x3f800000, 0x3f800000, 0x40000000, nan, 0x80000000};
  const std::uint32_t b[5] = {0x40000000, 0x3f800000, 0x3f800000, 0x3f800000, 0};
  for (unsigned lane = 0; lane < 5; ++lane) {
    machine.v(1)[lane] = a[lane];
    machine.v(2)[lane] = b[lane];
    const auto wide = [](std::uint32_t bits) {
      return std::bit_cast<std::uint64_t>(static_cast<double>(std::bit_cast<float>(bits)));
    };
    machine.v(4)[lane] = static_cast<std::uint32_t>(wide(a[lane]));
    machine.v(5)[lane] = static_cast<std::uint32_t>(wide(a[lane]) >> 32);
    machine.v(6)[lane] = static_cast<std::uint32_t>(wide(b[lane]));
    machine.v(7)[lane] = static_cast<std::uint32_t>(wide(b[lane]) >> 32);
    const auto half = [](std::uint32_t bits) {
      return bits == nan ? 0x7e00u
                         : ((bits >> 16) & 0x8000u) | (bits == 0x3f800000   ? 0x3c00u
                                                       : bits == 0x40000000 ? 0x4000u
                                                                            : 0u);
    };
    machine.v(8)[lane] = half(a[lane]);
    machine.v(9)[lane] = half(b[lane]);
  }
  machine.wave().set_exec(0x1f);
  const std::pair<const char*, std::uint64_t> expected[] = {{"f", 0x00},   {"lt", 0x01},  {"eq", 0x12},  {"le", 0x13},
                                                            {"gt", 0x04},  {"lg", 0x05},  {"ge", 0x16},  {"o", 0x17},
                                                            {"u", 0x08},   {"nge", 0x09}, {"nlg", 0x1a}, {"ngt", 0x1b},
                                                            {"nle", 0x0c}, {"neq", 0x0d}, {"nlt", 0x1e}, {"tru", 0x1f}};
  for (const auto& [condition, mask] : expected) {
    std::string text = std::string("v_cmp_") + condition;
    text.append("_f32 vcc, v1, v2\nv_cmp_").append(condition).append("_f64 s[2:3], v[4:5], v[6:7]\nv_cmp_");
    text.append(condition).append("_f16 s[4:5], v8, v9");
    ASSERT_TRUE(machine.run(text));
    EXPECT_EQ(machine.wave().vcc(), mask) << condition;
    EXPECT_EQ(machine.wave().sgpr64(2), mask) << condition;
    EXPECT_EQ(machine.wave().sgpr64(4), mask) << condition;
  }
  ASSERT_TRUE(machine.run("v_cmp_eq_f32 vcc, -v1, v2\nv_cmp_eq_f32 s[2:3], |v1|, |v2|"));
  EXPECT_EQ(machine.wave().vcc(), 0x10u);
  EXPECT_EQ(machine.wave().sgpr64(2), 0x12u);
}

TEST(Lanes, IntegerComparesOfEveryWidth) {
  Machine machine("gfx942");
  // Lane 0: -1 and 1; lane 1: equal; lane 2: 1 and -1.
  const std::int64_t a[3] = {-1, 5, 1};
  const std::int64_t b[3] = {1, 5, -1};
  for (unsigned lane = 0; lane < 3; ++lane) {
    machine.v(2)[lane] = static_cast<std::uint32_t>(a[lane]);
    machine.v(3)[lane] = static_cast<std::uint32_t>(a[lane] >> 32);
    machine.v(4)[lane] = static_cast<std::uint32_t>(b[lane]);
    machine.v(5)[lane] = static_cast<std::uint32_t>(b[lane] >> 32);
  }
  machine.wave().set_exec(7);
  struct Row {
    const char* condition;
    std::uint64_t is_signed;
    std::uint64_t is_unsigned;
  };
  const Row rows[] = {{"f", 0, 0},  {"lt", 1, 4}, {"eq", 2, 2}, {"le", 3, 6},
                      {"gt", 4, 1}, {"ne", 5, 5}, {"ge", 6, 3}, {"t", 7, 7}};
  for (const Row& row : rows) {
    for (const char* type : {"i16", "u16", "i32", "u32", "i64", "u64"}) {
      const bool wide = std::string_view(type).ends_with("64");
      ASSERT_TRUE(machine.run(std::string("v_cmp_") + row.condition + "_" + type + " s[8:9], " +
                              (wide ? "v[2:3], v[4:5]" : "v2, v4")));
      EXPECT_EQ(machine.wave().sgpr64(8), type[0] == 'i' ? row.is_signed : row.is_unsigned) << row.condition << type;
    }
  }
}

TEST(Lanes, ClassesOfFloats) {
  Machine machine("gfx942");
  const std::uint32_t values[10] = {0x7f800001, 0x7fc00000, 0xff800000, 0xbf800000, 0x80000001,
                                    0x80000000, 0x00000000, 0x00000001, 0x3f800000, 0x7f800000};
  const std::uint32_t halves[10] = {0x7c01, 0x7e00, 0xfc00, 0xbc00, 0x8001, 0x8000, 0x0000, 0x0001, 0x3c00, 0x7c00};
  for (unsigned lane = 0; lane < 10; ++lane) {
    machine.v(1)[lane] = values[lane];
    machine.v(2)[lane] = halves[lane];
  }
  machine.wave().set_exec(0x3ff);
  for (unsigned bit = 0; bit < 10; ++bit) {
    machine.wave().sgpr[4] = 1u << bit;
    ASSERT_TRUE(machine.run("v_cmp_class_f32 vcc, v1, s4\nv_cmp_class_f16 s[2:3], v2, s4"));
    EXPECT_EQ(machine.wave().vcc(), std::uint64_t{1} << bit);
    EXPECT_EQ(machine.wave().sgpr64(2), std::uint64_t{1} << bit);
  }
  // Flushing does not turn a denormal into a zero here.
  machine.wave().mode = 0;
  machine.wave().sgpr[4] = 0x90;
  ASSERT_TRUE(machine.run("v_cmp_class_f32 vcc, v1, s4"));
  EXPECT_EQ(machine.wave().vcc(), 0x90u);
}

TEST(Lanes, CarriesTravelInMasks) {
  Machine machine("gfx942");
  for (unsigned lane = 0; lane < 64; ++lane) {
    machine.v(1)[lane] = lane % 2 == 0 ? 0xffffffffu : 5;
    machine.v(2)[lane] = 1;
  }
  machine.wave().set_exec(0xf);
  machine.wave().set_vcc(every_place);
  ASSERT_TRUE(machine.run("v_add_co_u32 v3, vcc, v1, v2\nv_addc_co_u32 v4, s[6:7], v1, v1, vcc"));
  EXPECT_EQ(machine.wave().vcc(), 0x5u);
  EXPECT_EQ(machine.at(3, 0), 0u);
  EXPECT_EQ(machine.at(3, 1), 6u);
  EXPECT_EQ(machine.at(4, 0), 0xffffffffu);
  EXPECT_EQ(machine.at(4, 1), 10u);
  EXPECT_EQ(machine.wave().sgpr64(6), 0x5u);
  ASSERT_TRUE(machine.run("v_sub_co_u32 v3, vcc, v2, v1\nv_subb_co_u32 v4, vcc, v2, v2, vcc"));
  EXPECT_EQ(machine.at(3, 0), 2u);
  EXPECT_EQ(machine.at(4, 0), 0xffffffffu);
  EXPECT_EQ(machine.wave().vcc(), 0xfu);
  ASSERT_TRUE(machine.run("v_subrev_co_u32 v3, vcc, v1, v2\nv_subbrev_co_u32 v5, s[8:9], v2, v1, vcc"));
  EXPECT_EQ(machine.at(3, 1), static_cast<std::uint32_t>(-4));
  EXPECT_EQ(machine.at(5, 1), 3u);
  EXPECT_EQ(machine.wave().sgpr64(8), 0u);
  machine.set64(10, std::uint64_t{0xffffffffffffffffu});
  ASSERT_TRUE(machine.run("v_mad_u64_u32 v[12:13], s[8:9], v1, v2, v[10:11]"));
  EXPECT_EQ(machine.at64(12, 1), 4u);
  EXPECT_EQ(machine.wave().sgpr64(8), 0xfu);
  ASSERT_TRUE(machine.run("v_mad_i64_i32 v[12:13], s[8:9], v1, -3, v[10:11]"));
  EXPECT_EQ(machine.at64(12, 0), 2u);
  EXPECT_EQ(machine.at64(12, 1), static_cast<std::uint64_t>(-16));
}

TEST(Lanes, SixtyFourBitIntegersAndConstants) {
  Machine machine("gfx950");
  machine.set64(2, std::uint64_t{0x8000000000000001u});
  machine.set(1, 4u);
  ASSERT_TRUE(
      machine.run("v_lshlrev_b64 v[4:5], v1, v[2:3]\nv_lshrrev_b64 v[6:7], v1, v[2:3]\n"
                  "v_ashrrev_i64 v[8:9], v1, v[2:3]\nv_mov_b32 v18, 0x44\nv_lshlrev_b64 v[10:11], v18, v[2:3]\n"
                  "v_lshl_add_u64 v[12:13], v[2:3], 3, -1\nv_mov_b64 v[14:15], -2\nv_mov_b64 v[16:17], v[2:3]"));
  EXPECT_EQ(machine.at64(4), 0x10u);
  EXPECT_EQ(machine.at64(6), 0x0800000000000000u);
  EXPECT_EQ(machine.at64(8), 0xf800000000000000u);
  EXPECT_EQ(machine.at64(10), 0x10u);
  EXPECT_EQ(machine.at64(12), 7u);
  EXPECT_EQ(machine.at64(14), static_cast<std::uint64_t>(-2));
  EXPECT_EQ(machine.at64(16), 0x8000000000000001u);
  machine.set64(20, 1.5);
  ASSERT_TRUE(
      machine.run("v_add_f64 v[22:23], v[20:21], 4.0\nv_mul_f64 v[24:25], -v[20:21], |v[20:21]|\n"
                  "v_fma_f64 v[26:27], v[20:21], 2.0, 1.0\nv_max_f64 v[28:29], v[20:21], 2.0\n"
                  "v_cvt_f64_i32 v[30:31], -7\nv_cvt_i32_f64 v32, v[24:25]\nv_cvt_f32_f64 v33, v[20:21]\n"
                  "v_mov_b32 v50, 0xfffffbce\nv_ldexp_f64 v[34:35], v[20:21], v50\nv_frexp_exp_i32_f64 v36, v[34:35]\n"
                  "v_frexp_mant_f64 v[38:39], v[34:35]\nv_rndne_f64 v[40:41], v[20:21]\n"
                  "v_cvt_f64_u32 v[42:43], -1\nv_cvt_u32_f64 v44, v[42:43]\nv_fract_f64 v[46:47], -v[20:21]"));
  EXPECT_EQ(machine.double_at(22), 5.5);
  EXPECT_EQ(machine.double_at(24), -2.25);
  EXPECT_EQ(machine.double_at(26), 4.0);
  EXPECT_EQ(machine.double_at(28), 2.0);
  EXPECT_EQ(machine.double_at(30), -7.0);
  EXPECT_EQ(static_cast<std::int32_t>(machine.at(32)), -2);
  EXPECT_EQ(machine.float_at(33), 1.5f);
  EXPECT_EQ(machine.at64(34), 2u);  // 1.5 * 2^-1074: tie to even
  EXPECT_EQ(static_cast<std::int32_t>(machine.at(36)), -1072);
  EXPECT_EQ(machine.double_at(38), 0.5);
  EXPECT_EQ(machine.double_at(40), 2.0);
  EXPECT_EQ(machine.double_at(42), 4294967295.0);
  EXPECT_EQ(machine.at(44), 0xffffffffu);
  EXPECT_EQ(machine.double_at(46), 0.5);
}

TEST(Lanes, PackedFloat32ChoosesWords) {
  Machine machine("gfx942");
  const float values[4] = {1, 2, 10, 20};
  for (unsigned i = 0; i < 4; ++i) machine.set(2 + i, values[i]);
  machine.wave().sgpr[4] = std::bit_cast<std::uint32_t>(3.0f);
  machine.wave().sgpr[5] = std::bit_cast<std::uint32_t>(5.0f);
  const auto pair = [&](const std::string& text, float low, float high) {
    ASSERT_TRUE(machine.run(text));
    EXPECT_EQ(machine.float_at(0, 9), low) << text;
    EXPECT_EQ(machine.float_at(1, 9), high) << text;
  };
  pair("v_pk_mul_f32 v[0:1], v[2:3], v[4:5]", 10, 40);
  pair("v_pk_add_f32 v[0:1], v[2:3], v[4:5] op_sel:[1,0] op_sel_hi:[0,1]", 12, 21);
  pair("v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel_hi:[1,0]", 10, 20);
  pair("v_pk_mul_f32 v[0:1], v[2:3], s[4:5]", 3, 10);
  pair("v_pk_mul_f32 v[0:1], v[2:3], s[4:5] op_sel:[0,1]", 5, 10);
  pair("v_pk_add_f32 v[0:1], v[2:3], 1.0", 2, 2);  // the constant's upper word is zero
  pair("v_pk_add_f32 v[0:1], v[2:3], 1.0 op_sel_hi:[1,0]", 2, 3);
  pair("v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[2:3] neg_lo:[1,0,0] neg_hi:[0,0,1]", -9, 38);
  pair("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]", 2, 10);
  pair("v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[0,1]", 1, 20);
}

TEST(Lanes, DppMovesBetweenLanes) {
  Machine machine("gfx942");
  // For each lane the lane that it reads, or -1.
  using Source = std::function<int(int)>;
  const std::pair<const char*, Source> controls[] = {
      {"quad_perm:[3,2,0,1]", [](int l) { return (l & ~3) + (std::array{3, 2, 0, 1})[l & 3]; }},
      {"row_shl:3", [](int l) { return l % 16 + 3 < 16 ? l + 3 : -1; }},
      {"row_shr:1", [](int l) { return l % 16 >= 1 ? l - 1 : -1; }},
      {"row_shr:15", [](int l) { return l % 16 >= 15 ? l - 15 : -1; }},
      {"row_ror:4", [](int l) { return (l & ~15) + (l + 12) % 16; }},
      {"row_mirror", [](int l) { return (l & ~15) + 15 - l % 16; }},
      {"row_half_mirror", [](int l) { return (l & ~7) + 7 - l % 8; }},
      {"row_bcast:15", [](int l) { return l >= 16 ? (l & ~15) - 1 : -1; }},
      {"row_bcast:31", [](int l) { return l >= 32 ? 31 : -1; }},
      {"row_newbcast:5", [](int l) { return (l & ~15) + 5; }},
      {"wave_shl:1", [](int l) { return l < 63 ? l + 1 : -1; }},
      {"wave_shr:1", [](int l) { return l > 0 ? l - 1 : -1; }},
      {"wave_rol:1", [](int l) { return (l + 1) % 64; }},
      {"wave_ror:1", [](int l) { return (l + 63) % 64; }},
  };
  set_lane_numbers(machine, 1, 100);
  for (const auto& [control, source] : controls) {
    for (const bool bound : {false, true}) {
      machine.set(0, 7u);
      const std::string text = std::string("v_mov_b32_dpp v0, v1 ") + control + " row_mask:0xf bank_mask:0xf" +
                               (bound ? " bound_ctrl:0" : "");
      ASSERT_TRUE(machine.run(text));
      for (int lane = 0; lane < 64; ++lane) {
        const int from = source(lane);
        const std::uint32_t expected = from >= 0 ? static_cast<std::uint32_t>(from) + 100 : (bound ? 0u : 7u);
        ASSERT_EQ(machine.at(0, static_cast<unsigned>(lane)), expected) << text << " lane " << lane;
      }
    }
  }
  // Masks choose rows and banks of four lanes; inactive source lanes count as missing.
  machine.set(0, 7u);
  machine.wave().set_exec(~std::uint64_t{1});
  ASSERT_TRUE(machine.run("v_add_u32_dpp v0, v1, v1 row_shr:1 row_mask:0x5 bank_mask:0x3"));
  for (unsigned lane = 0; lane < 64; ++lane) {
    const bool written = (lane / 16) % 2 == 0 && (lane % 16) / 4 < 2 && lane % 16 != 0 && lane != 1;
    EXPECT_EQ(machine.at(0, lane), written ? 2 * (lane + 100) - 1 : 7u) << lane;
  }
}

TEST(Lanes, SdwaChoosesBytesAndWords) {
  Machine machine("gfx942");
  machine.set(1, 0x80f07f01u);
  machine.set(2, 0x00030002u);
  const auto result = [&](const std::string& text, std::uint32_t old = 0x11223344u) {
    machine.set(0, old);
    EXPECT_TRUE(machine.run(text));
    return machine.at(0, 50);
  };
  EXPECT_EQ(result("v_add_u32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_1 src1_sel:WORD_1"),
            0x82u);
  EXPECT_EQ(
      result("v_add_u32_sdwa v0, sext(v1), v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:BYTE_3 src1_sel:WORD_0"),
      0xffffff82u);
  EXPECT_EQ(result("v_mov_b32_sdwa v0, v1 dst_sel:BYTE_2 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0"), 0x11013344u);
  EXPECT_EQ(result("v_mov_b32_sdwa v0, v1 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:WORD_0"), 0x7f010000u);
  EXPECT_EQ(result("v_mov_b32_sdwa v0, v1 dst_sel:BYTE_1 dst_unused:UNUSED_SEXT src0_sel:BYTE_2"), 0xfffff000u);
  EXPECT_EQ(result("v_or_b32_sdwa v0, v1, v2 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:DWORD src1_sel:BYTE_2"),
            0x80f07f03u);
  machine.set(3, 0x40003c00u);
  EXPECT_EQ(
      result("v_add_f16_sdwa v0, v3, v3 dst_sel:WORD_1 dst_unused:UNUSED_PRESERVE src0_sel:WORD_1 src1_sel:WORD_0"),
      0x42003344u);
  EXPECT_EQ(result("v_add_f16_sdwa v0, -v3, |v3| dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:WORD_0"),
            0xbc00u);
  EXPECT_EQ(result("v_cvt_f32_f16_sdwa v0, v3 dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:WORD_1"), 0x40000000u);
  ASSERT_TRUE(machine.run("v_cmp_eq_u32_sdwa vcc, v1, v2 src0_sel:BYTE_0 src1_sel:BYTE_1"));
  EXPECT_EQ(machine.wave().vcc(), 0u);
  ASSERT_TRUE(machine.run("v_cmp_gt_i16_sdwa s[2:3], sext(v2), sext(v1) src0_sel:BYTE_0 src1_sel:BYTE_3"));
  EXPECT_EQ(machine.wave().sgpr64(2), every_place);
}

TEST(Lanes, ReadsWritesAndSwaps) {
  Machine machine("gfx950");
  set_lane_numbers(machine, 1, 1000);
  set_lane_numbers(machine, 2, 2000);
  machine.wave().sgpr[3] = 70;  // lanes are taken modulo 64
  machine.wave().set_exec(0xff00);
  ASSERT_TRUE(
      machine.run("v_readlane_b32 s4, v1, s3\nv_readlane_b32 s5, v1, 63\nv_readfirstlane_b32 s6, v1\n"
                  "v_writelane_b32 v2, 5, 1"));
  EXPECT_EQ(machine.wave().sgpr[4], 1006u);
  EXPECT_EQ(machine.wave().sgpr[5], 1063u);
  EXPECT_EQ(machine.wave().sgpr[6], 1008u);
  EXPECT_EQ(machine.at(2, 1), 5u);  // although lane 1 is inactive
  machine.wave().set_exec(0);
  ASSERT_TRUE(machine.run("v_readfirstlane_b32 s6, v1"));
  EXPECT_EQ(machine.wave().sgpr[6], 1000u);
  machine.wave().set_exec(1);
  set_lane_numbers(machine, 2, 2000);
  ASSERT_TRUE(machine.run("v_swap_b32 v1, v2"));
  EXPECT_EQ(machine.at(1, 0), 2000u);
  EXPECT_EQ(machine.at(2, 0), 1000u);
  EXPECT_EQ(machine.at(1, 1), 1001u);
}

TEST(Lanes, PermlaneSwaps) {
  // docs/isa.md: lanes 32–63 of the first with lanes 0–31 of the second; 16: the same within each half. EXEC is
  // ignored.
  Machine machine("gfx950");
  machine.wave().set_exec(1);
  set_lane_numbers(machine, 1, 100);
  set_lane_numbers(machine, 2, 200);
  ASSERT_TRUE(machine.run("v_permlane32_swap_b32 v1, v2"));
  for (unsigned lane = 0; lane < 32; ++lane) {
    EXPECT_EQ(machine.at(1, lane), 100 + lane);
    EXPECT_EQ(machine.at(1, lane + 32), 200 + lane);
    EXPECT_EQ(machine.at(2, lane), 132 + lane);
    EXPECT_EQ(machine.at(2, lane + 32), 232 + lane);
  }
  set_lane_numbers(machine, 1, 100);
  set_lane_numbers(machine, 2, 200);
  ASSERT_TRUE(machine.run("v_permlane16_swap_b32 v1, v2"));
  for (unsigned half = 0; half < 64; half += 32) {
    for (unsigned lane = half; lane < half + 16; ++lane) {
      EXPECT_EQ(machine.at(1, lane), 100 + lane);
      EXPECT_EQ(machine.at(1, lane + 16), 200 + lane);
      EXPECT_EQ(machine.at(2, lane), 116 + lane);
      EXPECT_EQ(machine.at(2, lane + 16), 216 + lane);
    }
  }
}

TEST(Lanes, CountsBitsBelow) {
  Machine machine("gfx942");
  machine.wave().set_vcc(0xf0f0f0f0aaaaaaaau);
  ASSERT_TRUE(
      machine.run("v_mbcnt_lo_u32_b32 v0, -1, 0\nv_mbcnt_hi_u32_b32 v0, -1, v0\n"
                  "v_mbcnt_lo_u32_b32 v1, vcc_lo, 0\nv_mbcnt_hi_u32_b32 v1, vcc_hi, v1"));
  for (unsigned lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(machine.at(0, lane), lane);
    std::uint32_t count = 0;
    for (unsigned below = 0; below < lane; ++below) count += (machine.wave().vcc() >> below) & 1;
    EXPECT_EQ(machine.at(1, lane), count);
  }
}

TEST(Lanes, AccumulationRegistersAreReadAndWritten) {
  Machine machine("gfx942");
  set_lane_numbers(machine, 1);
  ASSERT_TRUE(
      machine.run("v_accvgpr_write_b32 a3, v1\nv_accvgpr_mov_b32 a4, a3\nv_accvgpr_read_b32 v2, a4\n"
                  "v_accvgpr_write_b32 a5, 1.0"));
  EXPECT_EQ(machine.at(2, 44), 44u);
  EXPECT_EQ(machine.float_at(256 + 5), 1.0f);
}

}  // namespace
}  // namespace wavejit::simgpu::test
