// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Hand-written facts: what single instructions give for chosen inputs, from the CDNA3 and CDNA4 ISA documents'
// pseudo-code and examples. One row, one fact.
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "tests/simgpu/semantics/machine.h"

namespace wavejit::simgpu::test {
namespace {

// v1, v2, v3 hold the inputs, v0 the old destination; `text` writes v0.
struct Fact {
  const char* text;
  std::uint32_t a, b, c;
  std::uint32_t expected;
  std::uint32_t old = 0xdeadbeef;
  const char* processors = "gfx942 gfx950";
};

constexpr std::uint32_t one = 0x3f800000;
constexpr std::uint32_t two = 0x40000000;
constexpr std::uint32_t infinity = 0x7f800000;
constexpr std::uint32_t minus = 0x80000000;
constexpr std::uint32_t nan = 0x7fc00000;
constexpr std::uint32_t signalling = 0x7f800001;

void expect_all(const std::vector<Fact>& facts) {
  for (const std::string processor : {"gfx942", "gfx950"}) {
    Machine machine(processor);
    for (const Fact& fact : facts) {
      if (!std::string_view(fact.processors).contains(processor)) continue;
      machine.set(0, fact.old);
      machine.set(1, fact.a);
      machine.set(2, fact.b);
      machine.set(3, fact.c);
      ASSERT_TRUE(machine.run(fact.text));
      for (const unsigned lane : {0u, 37u, 63u}) {
        EXPECT_EQ(machine.at(0, lane), fact.expected)
            << processor << ": " << fact.text << " of " << std::hex << fact.a << " " << fact.b << " " << fact.c
            << ", lane " << std::dec << lane;
      }
    }
  }
}

TEST(Facts, Float32Arithmetic) {
  expect_all({
      {"v_add_f32 v0, v1, v2", one, two, 0, 0x40400000},
      {"v_sub_f32 v0, v1, v2", one, two, 0, 0xbf800000},
      {"v_subrev_f32 v0, v1, v2", one, two, 0, one},
      {"v_mul_f32 v0, v1, v2", 0x40400000, 0xc0000000, 0, 0xc0c00000},
      // 1 + 2^-24 is a tie: to even.
      {"v_add_f32 v0, v1, v2", one, 0x33800000, 0, one},
      {"v_add_f32 v0, v1, v2", 0x3f800001, 0x33800000, 0, 0x3f800002},
      // Denormals are kept in this mode.
      {"v_add_f32 v0, v1, v2", 1, 1, 0, 2},
      {"v_mul_f32 v0, v1, v2", 0x00800000, 0x3f000000, 0, 0x00400000},
      {"v_add_f32 v0, v1, v2", infinity, infinity, 0, infinity},
      {"v_mul_f32 v0, v1, v2", 0x7f7fffff, two, 0, infinity},
      {"v_add_f32 v0, v1, v2", 0x80000000, 0x80000000, 0, 0x80000000},
      {"v_add_f32 v0, v1, v2", 0x80000000, 0, 0, 0},
      // NaN operands come out quiet.
      {"v_add_f32 v0, v1, v2", one, signalling, 0, 0x7fc00001},
      {"v_mul_legacy_f32 v0, v1, v2", 0, infinity, 0, 0},
      {"v_mul_legacy_f32 v0, v1, v2", nan, 0x80000000, 0, 0},
      // Fused: (1+2^-23)^2 - (1+2^-22) = 2^-46.
      {"v_fma_f32 v0, v1, v2, v3", 0x3f800001, 0x3f800001, 0xbf800002, 0x28800000},
      {"v_fmac_f32 v0, v1, v2", 0x3f800001, 0x3f800001, 0, 0x28800000, 0xbf800002},
      {"v_fmamk_f32 v0, v1, 0x40400000, v2", two, one, 0, 0x40e00000},
      {"v_fmaak_f32 v0, v1, v2, 0x40400000", two, two, 0, 0x40e00000},
      {"v_fma_f32 v0, -v1, |v2|, v3", one, 0xc0000000, 0x40400000, one},
      {"v_fma_f32 v0, v1, v2, v3", infinity, 0, one, 0xffc00000},
  });
}

TEST(Facts, MinimumAndMaximum) {
  expect_all({
      {"v_min_f32 v0, v1, v2", one, two, 0, one},
      {"v_max_f32 v0, v1, v2", one, two, 0, two},
      {"v_min_f32 v0, v1, v2", 0, minus, 0, minus},
      {"v_min_f32 v0, v1, v2", minus, 0, 0, minus},
      {"v_max_f32 v0, v1, v2", 0, minus, 0, 0},
      {"v_max_f32 v0, v1, v2", minus, 0, 0, 0},
      {"v_min_f32 v0, v1, v2", nan, one, 0, one},
      {"v_max_f32 v0, v1, v2", one, nan, 0, one},
      {"v_max_f32 v0, v1, v2", 0xff800000, nan, 0, 0xff800000},
      {"v_min3_f32 v0, v1, v2, v3", 0x40400000, one, two, one},
      {"v_max3_f32 v0, v1, v2, v3", two, 0x40400000, one, 0x40400000},
      {"v_max3_f32 v0, v1, v2, v3", nan, nan, one, one},
      {"v_med3_f32 v0, v1, v2, v3", 0x40400000, one, two, two},
      {"v_med3_f32 v0, v1, v2, v3", nan, one, two, one},
      {"v_minimum3_f32 v0, v1, v2, v3", one, nan, two, nan, 0, "gfx950"},
      {"v_maximum3_f32 v0, v1, v2, v3", minus, 0, minus, 0, 0, "gfx950"},
      {"v_min_i32 v0, v1, v2", 0xffffffff, 1, 0, 0xffffffff},
      {"v_min_u32 v0, v1, v2", 0xffffffff, 1, 0, 1},
      {"v_max_i32 v0, v1, v2", 0x80000000, 0x7fffffff, 0, 0x7fffffff},
      {"v_max_u32 v0, v1, v2", 0x80000000, 0x7fffffff, 0, 0x80000000},
      {"v_med3_i32 v0, v1, v2, v3", 0xfffffff0, 5, 3, 3},
      {"v_med3_u32 v0, v1, v2, v3", 0xfffffff0, 5, 3, 5},
      {"v_min3_i32 v0, v1, v2, v3", 0xfffffff0, 5, 3, 0xfffffff0},
      {"v_max3_u32 v0, v1, v2, v3", 0xfffffff0, 5, 3, 0xfffffff0},
  });
  // With MODE.IEEE a signalling NaN wins over the number and comes out quiet.
  Machine machine("gfx942");
  machine.wave().mode |= mode_ieee;
  machine.set(1, signalling);
  machine.set(2, 1.0f);
  ASSERT_TRUE(machine.run("v_min_f32 v0, v1, v2\nv_max_f32 v3, v2, v1"));
  EXPECT_EQ(machine.at(0), 0x7fc00001u);
  EXPECT_EQ(machine.at(3), 0x7fc00001u);
}

TEST(Facts, TranscendentalExamplesOfTheDocument) {
  expect_all({
      {"v_exp_f32 v0, v1", 0xff800000, 0, 0, 0},
      {"v_exp_f32 v0, v1", 0x80000000, 0, 0, one},
      {"v_exp_f32 v0, v1", infinity, 0, 0, infinity},
      {"v_exp_f32 v0, v1", 0x42fe0000, 0, 0, 0x7f000000},  // 2^127
      {"v_exp_f32 v0, v1", 0xc2fc0000, 0, 0, 0x00800000},  // 2^-126
      {"v_exp_f32 v0, v1", 0xc2fe0000, 0, 0, 0},           // 2^-127 is denormal: flushed
      {"v_exp_f32 v0, v1", 0x43000000, 0, 0, infinity},
      {"v_exp_f32 v0, v1", 0x7f000000, 0, 0, infinity},
      {"v_exp_f32 v0, v1", 0xff000000, 0, 0, 0},
      {"v_log_f32 v0, v1", 0xff800000, 0, 0, 0xffc00000},
      {"v_log_f32 v0, v1", 0xbf800000, 0, 0, 0xffc00000},
      {"v_log_f32 v0, v1", 0x80000000, 0, 0, 0xff800000},
      {"v_log_f32 v0, v1", 0, 0, 0, 0xff800000},
      {"v_log_f32 v0, v1", one, 0, 0, 0},
      {"v_log_f32 v0, v1", infinity, 0, 0, infinity},
      {"v_log_f32 v0, v1", 0x00800000, 0, 0, 0xc2fc0000},
      {"v_rcp_f32 v0, v1", 0xff800000, 0, 0, 0x80000000},
      {"v_rcp_f32 v0, v1", 0xc0000000, 0, 0, 0xbf000000},
      {"v_rcp_f32 v0, v1", 0x80000000, 0, 0, 0xff800000},
      {"v_rcp_f32 v0, v1", 0, 0, 0, infinity},
      {"v_rcp_f32 v0, v1", infinity, 0, 0, 0},
      {"v_rsq_f32 v0, v1", 0xff800000, 0, 0, 0xffc00000},
      {"v_rsq_f32 v0, v1", 0x80000000, 0, 0, 0xff800000},
      {"v_rsq_f32 v0, v1", 0, 0, 0, infinity},
      {"v_rsq_f32 v0, v1", 0x40800000, 0, 0, 0x3f000000},
      {"v_rsq_f32 v0, v1", infinity, 0, 0, 0},
      {"v_sqrt_f32 v0, v1", 0xff800000, 0, 0, 0xffc00000},
      {"v_sqrt_f32 v0, v1", 0x80000000, 0, 0, 0x80000000},
      {"v_sqrt_f32 v0, v1", 0x40800000, 0, 0, two},
      {"v_sqrt_f32 v0, v1", infinity, 0, 0, infinity},
      {"v_sin_f32 v0, v1", 0xff800000, 0, 0, 0xffc00000},
      {"v_sin_f32 v0, v1", 0xff7fffff, 0, 0, 0},
      {"v_sin_f32 v0, v1", 0x80000000, 0, 0, 0x80000000},
      {"v_sin_f32 v0, v1", 0x3e800000, 0, 0, one},
      {"v_cos_f32 v0, v1", 0x7f800000, 0, 0, 0xffc00000},
      {"v_cos_f32 v0, v1", 0xff7fffff, 0, 0, one},
      {"v_cos_f32 v0, v1", 0x80000000, 0, 0, one},
      {"v_cos_f32 v0, v1", 0x3e800000, 0, 0, 0},
      {"v_rcp_f16 v0, v1", 0xc000, 0, 0, 0xb800},
      {"v_rcp_f16 v0, v1", 0x8000, 0, 0, 0xfc00},
      {"v_sqrt_f16 v0, v1", 0xfc00, 0, 0, 0xfe00},
      {"v_rsq_f16 v0, v1", 0x4400, 0, 0, 0x3800},
      {"v_log_f16 v0, v1", 0x3c00, 0, 0, 0},
      {"v_log_f16 v0, v1", 0xbc00, 0, 0, 0xfe00},
      {"v_exp_f16 v0, v1", 0x8000, 0, 0, 0x3c00},
      {"v_exp_f16 v0, v1", 0xfc00, 0, 0, 0},
      {"v_sin_f16 v0, v1", 0x3400, 0, 0, 0x3c00},
      {"v_cos_f16 v0, v1", 0x3400, 0, 0, 0},
      {"v_cos_f16 v0, v1", 0x7bff, 0, 0, 0x3c00},
  });
}

TEST(Facts, RoundingAndParts) {
  expect_all({
      {"v_trunc_f32 v0, v1", 0xbfc00000, 0, 0, 0xbf800000},
      {"v_ceil_f32 v0, v1", 0xbf000000, 0, 0, 0x80000000},
      {"v_floor_f32 v0, v1", 0xbf000000, 0, 0, 0xbf800000},
      {"v_rndne_f32 v0, v1", 0x3f000000, 0, 0, 0},
      {"v_rndne_f32 v0, v1", 0x3fc00000, 0, 0, two},
      {"v_rndne_f32 v0, v1", 0x40200000, 0, 0, two},
      {"v_fract_f32 v0, v1", 0xbe800000, 0, 0, 0x3f400000},
      {"v_fract_f32 v0, v1", 0xb0000000, 0, 0, 0x3f7fffff},  // stays below one
      {"v_frexp_mant_f32 v0, v1", 0xc1200000, 0, 0, 0xbf200000},
      {"v_frexp_exp_i32_f32 v0, v1", 0xc1200000, 0, 0, 4},
      {"v_frexp_exp_i32_f32 v0, v1", 1, 0, 0, static_cast<std::uint32_t>(-148)},
      {"v_frexp_mant_f32 v0, v1", 1, 0, 0, 0x3f000000},
      {"v_frexp_exp_i32_f32 v0, v1", infinity, 0, 0, 0},
      {"v_frexp_mant_f32 v0, v1", infinity, 0, 0, infinity},
      {"v_frexp_exp_i32_f32 v0, v1", 0, 0, 0, 0},
      {"v_ldexp_f32 v0, v1, v2", one, 3, 0, 0x41000000},
      {"v_ldexp_f32 v0, v1, v2", one, static_cast<std::uint32_t>(-149), 0, 1},
      {"v_ldexp_f32 v0, v1, v2", one, static_cast<std::uint32_t>(-150), 0, 0},         // tie to even
      {"v_ldexp_f32 v0, v1, v2", 0x3fc00000, static_cast<std::uint32_t>(-150), 0, 1},  // 0.75 of the smallest
      {"v_ldexp_f32 v0, v1, v2", one, 0x7fffffff, 0, infinity},
      {"v_ldexp_f32 v0, v1, v2", 1, 149, 0, one},
      {"v_frexp_exp_i16_f16 v0, v1", 0x4900, 0, 0, 4},
      {"v_frexp_mant_f16 v0, v1", 0x4900, 0, 0, 0x3900},
      {"v_ldexp_f16 v0, v1, v2", 0x3c00, 0xffff, 0, 0x3800},
      {"v_rndne_f16 v0, v1", 0x4100, 0, 0, 0x4000},
      {"v_fract_f16 v0, v1", 0xb400, 0, 0, 0x3a00},
  });
}

TEST(Facts, Integers) {
  expect_all({
      {"v_add_u32 v0, v1, v2", 0xffffffff, 2, 0, 1},
      {"v_add_u32 v0, v1, v2 clamp", 0xffffffff, 2, 0, 0xffffffff},
      {"v_sub_u32 v0, v1, v2 clamp", 1, 2, 0, 0},
      {"v_subrev_u32 v0, v1, v2", 1, 5, 0, 4},
      {"v_add_i32 v0, v1, v2 clamp", 0x7fffffff, 1, 0, 0x7fffffff},
      {"v_sub_i32 v0, v1, v2 clamp", 0x80000000, 1, 0, 0x80000000},
      {"v_add3_u32 v0, v1, v2, v3", 1, 2, 3, 6},
      {"v_mul_lo_u32 v0, v1, v2", 0x10001, 0x10001, 0, 0x20001},
      {"v_mul_hi_u32 v0, v1, v2", 0xffffffff, 0xffffffff, 0, 0xfffffffe},
      {"v_mul_hi_i32 v0, v1, v2", 0xffffffff, 0xffffffff, 0, 0},
      {"v_mul_i32_i24 v0, v1, v2", 0x00ffffff, 3, 0, 0xfffffffd},
      {"v_mul_u32_u24 v0, v1, v2", 0xffffffff, 2, 0, 0x01fffffe},
      {"v_mul_hi_u32_u24 v0, v1, v2", 0x00ffffff, 0x00ffffff, 0, 0xffff},
      {"v_mul_hi_i32_i24 v0, v1, v2", 0x00800000, 0x00800000, 0, 0x4000},
      {"v_mad_i32_i24 v0, v1, v2, v3", 0x00ffffff, 3, 10, 7},
      {"v_mad_u32_u24 v0, v1, v2, v3", 0xff000003, 3, 10, 19},
      {"v_mad_u32_u16 v0, v1, v2, v3", 0x0001ffff, 0xffff, 1, 0xfffe0002},
      {"v_mad_i32_i16 v0, v1, v2, v3", 0xffff, 3, 10, 7},
      {"v_lshlrev_b32 v0, v1, v2", 33, 1, 0, 2},
      {"v_lshrrev_b32 v0, v1, v2", 32, 0x80000000, 0, 0x80000000},
      {"v_ashrrev_i32 v0, v1, v2", 31, 0x80000000, 0, 0xffffffff},
      {"v_lshlrev_b16 v0, v1, v2", 4, 0xffff, 0, 0xfff0},
      {"v_lshrrev_b16 v0, v1, v2", 20, 0xffff, 0, 0x0fff},
      {"v_ashrrev_i16 v0, v1, v2", 4, 0x8000, 0, 0xf800},
      {"v_lshl_add_u32 v0, v1, v2, v3", 3, 34, 1, 13},
      {"v_add_lshl_u32 v0, v1, v2, v3", 3, 4, 1, 14},
      {"v_lshl_or_b32 v0, v1, v2, v3", 1, 4, 3, 0x13},
      {"v_and_or_b32 v0, v1, v2, v3", 0xff, 0x0f, 0x30, 0x3f},
      {"v_or3_b32 v0, v1, v2, v3", 1, 2, 4, 7},
      {"v_xad_u32 v0, v1, v2, v3", 5, 3, 1, 7},
      {"v_xnor_b32 v0, v1, v2", 0xf0f0f0f0, 0xffff0000, 0, 0xf0f00f0f},
      {"v_not_b32 v0, v1", 5, 0, 0, 0xfffffffa},
      {"v_bfi_b32 v0, v1, v2, v3", 0x00ff00ff, 0x12345678, 0x9abcdef0, 0x9a34de78},
      {"v_bfe_u32 v0, v1, v2, v3", 0x12345678, 8, 12, 0x456},
      {"v_bfe_u32 v0, v1, v2, v3", 0xffffffff, 0, 32, 0},  // the width is taken modulo 32
      {"v_bfe_i32 v0, v1, v2, v3", 0x00000f00, 8, 4, 0xffffffff},
      {"v_bfe_i32 v0, v1, v2, v3", 0xffffffff, 5, 0, 0},
      {"v_bfm_b32 v0, v1, v2", 4, 8, 0, 0xf00},
      {"v_bfrev_b32 v0, v1", 0x00000001, 0, 0, 0x80000000},
      {"v_bfrev_b32 v0, v1", 0x12345678, 0, 0, 0x1e6a2c48},
      {"v_bcnt_u32_b32 v0, v1, v2", 0xf0f0ffff, 100, 0, 124},
      {"v_ffbh_u32 v0, v1", 0, 0, 0, 0xffffffff},
      {"v_ffbh_u32 v0, v1", 0x100000ff, 0, 0, 3},
      {"v_ffbh_u32 v0, v1", 1, 0, 0, 31},
      {"v_ffbl_b32 v0, v1", 0, 0, 0, 0xffffffff},
      {"v_ffbl_b32 v0, v1", 0xffff0000, 0, 0, 16},
      {"v_ffbh_i32 v0, v1", 0, 0, 0, 0xffffffff},
      {"v_ffbh_i32 v0, v1", 0xffff0000, 0, 0, 16},
      {"v_ffbh_i32 v0, v1", 0xffffffff, 0, 0, 0xffffffff},
      {"v_ffbh_i32 v0, v1", 0xfffffffe, 0, 0, 31},
      {"v_ffbh_i32 v0, v1", 0x40000000, 0, 0, 1},
      {"v_alignbit_b32 v0, v1, v2, v3", 0x12345678, 0x9abcdef0, 36, 0x89abcdef},
      {"v_alignbyte_b32 v0, v1, v2, v3", 0x12345678, 0x9abcdef0, 5, 0x789abcde},
      // Bytes 0..3 come from the second operand, 4..7 from the first; 8..11 signs, 12 zero, 13 and up ones.
      {"v_perm_b32 v0, v1, v2, v3", 0x13121110, 0x03020100, 0x00040703, 0x00101303},
      {"v_perm_b32 v0, v1, v2, v3", 0x80000000, 0x00008000, 0x0c0d080b, 0x00ffffff},
      {"v_perm_b32 v0, v1, v2, v3", 0x00008000, 0x80000000, 0x0a09ff0b, 0xffffff00},
      {"v_sad_u8 v0, v1, v2, v3", 0x01ff0500, 0x0200050a, 1, 267},
      {"v_sad_hi_u8 v0, v1, v2, v3", 0x00000001, 0x00000003, 5, 0x00020005},
      {"v_sad_u16 v0, v1, v2, v3", 0x00010005, 0x00030001, 1, 7},
      {"v_sad_u32 v0, v1, v2, v3", 1, 5, 3, 7},
      {"v_msad_u8 v0, v1, v2, v3", 0x05050505, 0x00010203, 0, 4 + 3 + 2},
      {"v_lerp_u8 v0, v1, v2, v3", 0xff010203, 0xff020203, 0x01010001, 0xff020203},
      {"v_cndmask_b32 v0, v1, v2, vcc", 7, 9, 0, 7},
      {"v_bitop3_b32 v0, v1, v2, v3 bitop3:0xe8", 0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0xe8e8e8e8, 0, "gfx950"},
      {"v_bitop3_b32 v0, v1, v2, v3 bitop3:0x1b", 0xf0f0f0f0, 0xcccccccc, 0xaaaaaaaa, 0x1b1b1b1b, 0, "gfx950"},
      {"v_bitop3_b16 v0, v1, v2, v3 bitop3:0x96", 0xf0f0, 0xcccc, 0xaaaa, 0xdead9696, 0xdeadbeef, "gfx950"},
      {"v_prng_b32 v0, v1", 0x80000001, 0, 0, 0x000000c7, 0, "gfx950"},
      {"v_ashr_pk_i8_i32 v0, v1, v2, v3", 0x00010000, 0xfffffe00, 8, 0xdeadfe7f, 0xdeadbeef, "gfx950"},
      {"v_ashr_pk_u8_i32 v0, v1, v2, v3", 0x00010000, 0xfffffe00, 8, 0xdead00ff, 0xdeadbeef, "gfx950"},
  });
}

TEST(Facts, Conversions) {
  expect_all({
      {"v_cvt_i32_f32 v0, v1", 0xbfc00000, 0, 0, 0xffffffff},
      {"v_cvt_i32_f32 v0, v1", 0x4f000000, 0, 0, 0x7fffffff},
      {"v_cvt_i32_f32 v0, v1", 0xff800000, 0, 0, 0x80000000},
      {"v_cvt_i32_f32 v0, v1", nan, 0, 0, 0},
      {"v_cvt_u32_f32 v0, v1", 0x4f800000, 0, 0, 0xffffffff},
      {"v_cvt_u32_f32 v0, v1", 0x4f7fffff, 0, 0, 0xffffff00},
      {"v_cvt_u32_f32 v0, v1", 0xbf800000, 0, 0, 0},
      {"v_cvt_u32_f32 v0, v1", nan, 0, 0, 0},
      {"v_cvt_f32_i32 v0, v1", 0xffffffff, 0, 0, 0xbf800000},
      {"v_cvt_f32_i32 v0, v1", 0x01000001, 0, 0, 0x4b800000},
      {"v_cvt_f32_u32 v0, v1", 0xffffffff, 0, 0, 0x4f800000},
      {"v_cvt_f32_u32 v0, v1", 0x01000003, 0, 0, 0x4b800002},
      {"v_cvt_flr_i32_f32 v0, v1", 0xbf000000, 0, 0, 0xffffffff},
      {"v_cvt_rpi_i32_f32 v0, v1", 0x3f000000, 0, 0, 1},
      {"v_cvt_f32_ubyte0 v0, v1", 0x80ff0403, 0, 0, 0x40400000},
      {"v_cvt_f32_ubyte1 v0, v1", 0x80ff0403, 0, 0, 0x40800000},
      {"v_cvt_f32_ubyte2 v0, v1", 0x80ff0403, 0, 0, 0x437f0000},
      {"v_cvt_f32_ubyte3 v0, v1", 0x80ff0403, 0, 0, 0x43000000},
      {"v_cvt_off_f32_i4 v0, v1", 8, 0, 0, 0xbf000000},
      {"v_cvt_off_f32_i4 v0, v1", 7, 0, 0, 0x3ee00000},
      // float16: ties to even, overflow, denormals, NaN; the upper half of the register is cleared.
      {"v_cvt_f16_f32 v0, v1", 0x3f801000, 0, 0, 0x3c00},
      {"v_cvt_f16_f32 v0, v1", 0x3f803000, 0, 0, 0x3c02},
      {"v_cvt_f16_f32 v0, v1", 0x477fefff, 0, 0, 0x7bff},
      {"v_cvt_f16_f32 v0, v1", 0x477ff000, 0, 0, 0x7c00},
      {"v_cvt_f16_f32 v0, v1", 0x33800000, 0, 0, 0x0001},
      {"v_cvt_f16_f32 v0, v1", 0x33000000, 0, 0, 0x0000},
      {"v_cvt_f16_f32 v0, v1", 0xb3000001, 0, 0, 0x8001},
      {"v_cvt_f16_f32 v0, v1", signalling, 0, 0, 0x7e00},
      {"v_cvt_f32_f16 v0, v1", 0xabcd0001, 0, 0, 0x33800000},
      {"v_cvt_f32_f16 v0, v1", 0xabcdfc00, 0, 0, 0xff800000},
      {"v_cvt_f32_f16 v0, v1", 0x03ff, 0, 0, 0x387fc000},
      {"v_cvt_u16_f16 v0, v1", 0xbc00, 0, 0, 0},
      {"v_cvt_i16_f16 v0, v1", 0xc100, 0, 0, 0xfffe},
      {"v_cvt_f16_u16 v0, v1", 0xffff, 0, 0, 0x7c00},
      {"v_cvt_f16_i16 v0, v1", 0xffff, 0, 0, 0xbc00},
      {"v_cvt_pkrtz_f16_f32 v0, v1, v2", 0x3f801fff, 0x477fffff, 0, 0x7bff3c00},
      {"v_cvt_pkrtz_f16_f32 v0, v1, v2", 0xbf803fff, 0x33ffffff, 0, 0x0001bc01},
      {"v_cvt_pk_i16_i32 v0, v1, v2", 0x00012345, 0xffff0000, 0, 0x80007fff},
      {"v_cvt_pk_u16_u32 v0, v1, v2", 0x00012345, 0x1234, 0, 0x1234ffff},
      {"v_cvt_pknorm_i16_f32 v0, v1, v2", one, 0xc0000000, 0, 0x80017fff},
      {"v_cvt_pknorm_u16_f32 v0, v1, v2", one, 0xc0000000, 0, 0x0000ffff},
      {"v_sat_pk_u8_i16 v0, v1", 0x0123fffe, 0, 0, 0x0000ff00},
      {"v_cvt_pk_u8_f32 v0, v1, 2, v3", 0x40400000, 0, 0x11111111, 0x11031111},
      {"v_pack_b32_f16 v0, v1, v2", 0xaaaa1111, 0xbbbb2222, 0, 0x22221111},
      {"v_pack_b32_f16 v0, v1, v2 op_sel:[1,1,0]", 0xaaaa1111, 0xbbbb2222, 0, 0xbbbbaaaa},
      {"v_cvt_pk_bf16_f32 v0, v1, v2", 0x3f808000, 0x3f818000, 0, 0x3f823f80, 0, "gfx950"},
      {"v_cvt_pk_bf16_f32 v0, v1, v2", 0x7f7fffff, signalling, 0, 0x7fc07f80, 0, "gfx950"},
      {"v_cvt_pk_f16_f32 v0, v1, v2", 0x3f801000, 0x3f803000, 0, 0x3c023c00, 0, "gfx950"},
      {"v_cvt_f32_bf16 v0, v1", 0xabcd3f80, 0, 0, one, 0, "gfx950"},
  });
}

TEST(Facts, EightBitFloats) {
  expect_all({
      // FNUZ (gfx942): e4m3 bias 8, e5m2 bias 16, 0x80 the only NaN.
      {"v_cvt_f32_fp8 v0, v1", 0x40, 0, 0, one, 0, "gfx942"},
      {"v_cvt_f32_fp8 v0, v1", 0x7f, 0, 0, 0x43700000, 0, "gfx942"},  // 240
      {"v_cvt_f32_fp8 v0, v1", 0x01, 0, 0, 0x3a800000, 0, "gfx942"},  // 2^-10
      {"v_cvt_f32_fp8 v0, v1", 0x80, 0, 0, nan, 0, "gfx942"},
      {"v_cvt_f32_bf8 v0, v1", 0x40, 0, 0, one, 0, "gfx942"},
      {"v_cvt_f32_bf8 v0, v1", 0xff, 0, 0, 0xc7600000, 0, "gfx942"},  // -57344
      {"v_cvt_f32_fp8_sdwa v0, v1 src0_sel:BYTE_2", 0x00c00000, 0, 0, 0xbf800000, 0, "gfx942"},
      {"v_cvt_pk_fp8_f32 v0, v1, v2", one, 0xc3700000, 0, 0xdeadff40, 0xdeadbeef, "gfx942"},
      {"v_cvt_pk_fp8_f32 v0, v1, v2 op_sel:[0,0,1]", one, 0xc3700000, 0, 0xff40beef, 0xdeadbeef, "gfx942"},
      {"v_cvt_pk_fp8_f32 v0, v1, v2", 0x80000000, nan, 0, 0x8000, 0, "gfx942"},
      {"v_cvt_pk_bf8_f32 v0, v1, v2", one, two, 0, 0x4440, 0, "gfx942"},
      {"v_cvt_pk_fp8_f32 v0, v1, v2", 0x3f880000, 0x3f980000, 0, 0x4240, 0, "gfx942"},  // ties to even
      // OCP (gfx950): e4m3 bias 7, no infinity, NaN 0x7f; e5m2 like IEEE.
      {"v_cvt_f32_fp8 v0, v1", 0x38, 0, 0, one, 0, "gfx950"},
      {"v_cvt_f32_fp8 v0, v1", 0x7e, 0, 0, 0x43e00000, 0, "gfx950"},  // 448
      {"v_cvt_f32_fp8 v0, v1", 0x7f, 0, 0, nan, 0, "gfx950"},
      {"v_cvt_f32_fp8 v0, v1", 0x80, 0, 0, 0x80000000, 0, "gfx950"},
      {"v_cvt_f32_bf8 v0, v1", 0x7c, 0, 0, infinity, 0, "gfx950"},
      {"v_cvt_f32_bf8 v0, v1", 0x7b, 0, 0, 0x47600000, 0, "gfx950"},
      {"v_cvt_pk_fp8_f32 v0, v1, v2", one, 0xc3e00000, 0, 0xfe38, 0, "gfx950"},
      {"v_cvt_pk_bf8_f32 v0, v1, v2", one, infinity, 0, 0x7c3c, 0, "gfx950"},
      {"v_cvt_sr_fp8_f32 v0, v1, v2 op_sel:[0,0,0,1]", 0x3f880000, 0, 0, 0xde38beef, 0xdeadbeef, "gfx950"},
      {"v_cvt_sr_fp8_f32 v0, v1, v2", 0x3f880000, 0x80000000, 0, 0xdeadbe39, 0xdeadbeef, "gfx950"},
      {"v_cvt_sr_bf16_f32 v0, v1, v2", 0x3f808000, 0x80000000, 0, 0xdead3f81, 0xdeadbeef, "gfx950"},
      // Scaled: 2^(exponent of the scale - 127).
      {"v_cvt_scalef32_f32_fp8 v0, v1, v2", 0x38, two, 0, two, 0, "gfx950"},
      {"v_cvt_scalef32_f32_fp8 v0, v1, v2 op_sel:[1,1,0]", 0x38000000, two, 0, two, 0, "gfx950"},
      {"v_cvt_scalef32_pk_fp8_f32 v0, v1, v2, v3", two, one, two, 0xdead3038, 0xdeadbeef, "gfx950"},
      {"v_cvt_scalef32_pk_fp4_f32 v0, v1, v2, 1.0", one, 0xc0c00000, 0, 0xdeadbef2, 0xdeadbeef, "gfx950"},
      {"v_cvt_scalef32_pk_f16_fp4 v0, v1, v2", 0x000000f2, one, 0, 0xc6003c00, 0, "gfx950"},
      {"v_cvt_scalef32_pk_bf16_fp8 v0, v1, v2", 0x0000b838, one, 0, 0xbf803f80, 0, "gfx950"},
  });
}

TEST(Facts, Float16) {
  expect_all({
      // VOP1 and VOP2 results clear the upper half.
      {"v_add_f16 v0, v1, v2", 0xffff3c00, 0xffff4000, 0, 0x4200},
      {"v_sub_f16 v0, v1, v2", 0x3c00, 0x4000, 0, 0xbc00},
      {"v_mul_f16 v0, v1, v2", 0x0001, 0x3800, 0, 0x0000},  // half of the smallest: tie to even
      {"v_mul_f16 v0, v1, v2", 0x0003, 0x3800, 0, 0x0002},
      {"v_mul_f16 v0, v1, v2", 0x7bff, 0x4000, 0, 0x7c00},
      {"v_add_f16 v0, v1, 1.0", 0x3c00, 0, 0, 0x4000},  // the inline constant is float16
      {"v_max_f16 v0, v1, v2", 0x7e00, 0x3c00, 0, 0x3c00},
      {"v_min_f16 v0, v1, v2", 0x8000, 0x0000, 0, 0x8000},
      // Fused; keeps the other half of the register.
      {"v_fma_f16 v0, v1, v2, v3", 0x3c01, 0x3c01, 0xbc02, 0xdead0010, 0xdeadbeef},
      {"v_fma_f16 v0, v1, v2, v3 op_sel:[0,0,0,1]", 0x3c01, 0x3c01, 0xbc02, 0x0010beef, 0xdeadbeef},
      {"v_fma_f16 v0, v1, v2, v3 op_sel:[1,0,0,0]", 0x40000000, 0x3c00, 0, 0xdead4000, 0xdeadbeef},
      {"v_fma_f16 v0, -v1, v2, |v3|", 0x3c00, 0x3c00, 0xc000, 0xdead3c00, 0xdeadbeef},
      {"v_max3_f16 v0, v1, v2, v3", 0x3c00, 0x4000, 0xc000, 0xdead4000, 0xdeadbeef},
      {"v_med3_f16 v0, v1, v2, v3", 0x3c00, 0x4000, 0xc000, 0xdead3c00, 0xdeadbeef},
      {"v_mad_u16 v0, v1, v2, v3", 300, 300, 1, 0xdead0000 | ((300 * 300 + 1) & 0xffff), 0xdeadbeef},
      {"v_mad_legacy_u16 v0, v1, v2, v3", 300, 300, 1, (300 * 300 + 1) & 0xffff, 0xdeadbeef},
      {"v_add_u16 v0, v1, v2", 0xffff, 2, 0, 1},
      {"v_add_u16 v0, v1, v2 clamp", 0xffff, 2, 0, 0xffff},
      {"v_sub_u16 v0, v1, v2 clamp", 1, 2, 0, 0},
      {"v_add_i16 v0, v1, v2 clamp", 0x7fff, 2, 0, 0xdead7fff, 0xdeadbeef},
      {"v_max_i16 v0, v1, v2", 0xffff, 1, 0, 1},
      {"v_max_u16 v0, v1, v2", 0xffff, 1, 0, 0xffff},
      {"v_mul_lo_u16 v0, v1, v2", 0xffff, 0xffff, 0, 1},
      {"v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,0]", 0x4000, one, one, 0x40400000},
      {"v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]", 0x40000000, one, one, 0x40400000},
      {"v_fma_mix_f32 v0, -v1, |v2|, v3", two, 0xbf800000, one, 0xbf800000},
      // An inline constant is of the type that it is read as.
      {"v_fma_mix_f32 v0, v1, 1.0, v3 op_sel_hi:[1,1,0]", 0x4000, 0, one, 0x40400000},
      {"v_fma_mix_f32 v0, v1, 1.0, v3 op_sel_hi:[1,0,0]", 0x4000, 0, one, 0x40400000},
      {"v_fma_mix_f32 v0, -v1, 2.0, v3 op_sel_hi:[0,1,1]", one, 0, 0x4400, 0x40000000},
      {"v_fma_mixlo_f16 v0, v1, v2, v3", two, one, one, 0xdead4200, 0xdeadbeef},
      {"v_fma_mixhi_f16 v0, v1, v2, v3", two, one, one, 0x4200beef, 0xdeadbeef},
  });
}

TEST(Facts, Packed) {
  expect_all({
      {"v_pk_add_f16 v0, v1, v2", 0x40003c00, 0x3c003c00, 0, 0x42004000},
      {"v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]", 0x40003c00, 0, 0, 0x42004000},
      {"v_pk_add_f16 v0, v1, 1.0", 0x40003c00, 0, 0, 0x40004000},
      {"v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]", 0x40003c00, 0, 0, 0x3c004000},
      {"v_pk_mul_f16 v0, v1, v2 neg_lo:[1,0] neg_hi:[0,1]", 0x40003c00, 0x3c003c00, 0, 0xc000bc00},
      {"v_pk_fma_f16 v0, v1, v2, v3", 0x40003c00, 0x40004000, 0x3c003c00, 0x45004200},
      {"v_pk_max_f16 v0, v1, v2", 0x40003c00, 0x3c004000, 0, 0x40004000},
      {"v_pk_min_f16 v0, v1, v2", 0x40003c00, 0x3c004000, 0, 0x3c003c00},
      {"v_pk_fmac_f16 v0, v1, v2", 0x40003c00, 0x40004000, 0, 0x45004200, 0x3c003c00},
      {"v_pk_add_u16 v0, v1, v2", 0xffff0001, 0x00020003, 0, 0x00010004},
      {"v_pk_add_u16 v0, v1, -1", 0x00050001, 0, 0, 0x00040000},
      {"v_pk_add_u16 v0, v1, v2 clamp", 0xffff0001, 0x00020003, 0, 0xffff0004},
      {"v_pk_sub_i16 v0, v1, v2 clamp", 0x80000005, 0x00010007, 0, 0x8000fffe},
      {"v_pk_mul_lo_u16 v0, v1, v2", 0x00030100, 0x00050100, 0, 0x000f0000},
      {"v_pk_mad_i16 v0, v1, v2, v3", 0xffff0002, 0x00050003, 0x00010001, 0xfffc0007},
      {"v_pk_lshlrev_b16 v0, v1, v2", 0x00110004, 0x00018001, 0, 0x00020010},
      {"v_pk_lshrrev_b16 v0, v1, v2", 0x00010004, 0x80018001, 0, 0x40000800},
      {"v_pk_ashrrev_i16 v0, v1, v2", 0x00010004, 0x80018001, 0, 0xc000f800},
      {"v_pk_max_i16 v0, v1, v2", 0xffff0001, 0x0001ffff, 0, 0x00010001},
      {"v_pk_min_u16 v0, v1, v2", 0xffff0001, 0x0001ffff, 0, 0x00010001},
      {"v_dot2_f32_f16 v0, v1, v2, v3", 0x40003c00, 0x42004000, 0x41200000, 0x41900000},  // 1*2 + 2*3 + 10
      {"v_dot2c_f32_f16 v0, v1, v2", 0x40003c00, 0x42004000, 0, 0x41900000, 0x41200000},
      {"v_dot4_i32_i8 v0, v1, v2, v3", 0xff02fe01, 0x01020304, 10, 10 + 4 - 6 + 4 - 1},
      {"v_dot4_u32_u8 v0, v1, v2, v3", 0xff000001, 0x02000003, 1, 514},
      {"v_dot4_u32_u8 v0, v1, v2, v3 clamp", 0xffffffff, 0xffffffff, 0xfffffff0, 0xffffffff},
      {"v_dot4c_i32_i8 v0, v1, v2", 0x00000001, 0x000000ff, 0, 4, 5},
      {"v_dot8_i32_i4 v0, v1, v2, v3", 0x0000008f, 0x00000022, 0, static_cast<std::uint32_t>(-2 - 16)},
      {"v_dot8_u32_u4 v0, v1, v2, v3", 0x0000008f, 0x00000022, 0, 30 + 16},
      {"v_dot2_i32_i16 v0, v1, v2, v3", 0xffff0002, 0x00030004, 1, 6},
      {"v_dot2_u32_u16 v0, v1, v2, v3", 0xffff0002, 0x00030004, 1, 9 + 3 * 0xffff},
      {"v_dot2_f32_bf16 v0, v1, v2, v3", 0x40003f80, 0x40404000, 0x41200000, 0x41900000, 0, "gfx950"},
      {"v_pk_minimum3_f16 v0, v1, v2, v3", 0x7e003c00, 0x3c004000, 0x3c004200, 0x7e003c00, 0, "gfx950"},
  });
}

TEST(Facts, ClampAndOutputModifiers) {
  expect_all({
      {"v_add_f32 v0, v1, v2 clamp", one, two, 0, one},
      {"v_add_f32 v0, v1, v2 clamp", 0xc0000000, one, 0, 0},
      {"v_add_f16 v0, v1, v2 clamp", 0x3c00, 0x4000, 0, 0x3c00},
      {"v_pk_add_f16 v0, v1, v2 clamp", 0xc0003c00, 0x3c003c00, 0, 0x00003c00},
      // Output denormals are kept, so that the modifier is ignored.
      {"v_add_f32 v0, v1, v2 mul:2", one, two, 0, 0x40400000},
  });
  Machine machine("gfx942");
  machine.set(1, 1.5f);
  machine.set(2, nan);
  machine.wave().mode = 0xc0;  // float32 denormals flushed
  ASSERT_TRUE(machine.run("v_add_f32 v0, v1, v1 mul:4\nv_mul_f32 v3, v1, 1.0 div:2"));
  EXPECT_EQ(machine.float_at(0), 12.0f);
  EXPECT_EQ(machine.float_at(3), 0.75f);
  machine.wave().mode = 0xf0 | mode_dx10_clamp;
  ASSERT_TRUE(machine.run("v_add_f32 v0, v2, v1 clamp"));
  EXPECT_EQ(machine.at(0), 0u);
  machine.wave().mode = 0xf0;
  ASSERT_TRUE(machine.run("v_add_f32 v0, v2, v1 clamp"));
  EXPECT_EQ(machine.at(0), nan);
}

TEST(Facts, ModeRoundsAndFlushes) {
  Machine machine("gfx942");
  machine.set(1, 1.0f);
  machine.set(2, 0x33000000u);  // 2^-25
  machine.set(3, 0x00000001u);
  const auto add = [&](std::uint32_t mode) {
    machine.wave().mode = mode;
    EXPECT_TRUE(machine.run("v_add_f32 v0, v1, v2"));
    return machine.at(0);
  };
  EXPECT_EQ(add(0xf0), 0x3f800000u);
  EXPECT_EQ(add(0xf1), 0x3f800001u);  // towards +inf
  EXPECT_EQ(add(0xf2), 0x3f800000u);
  machine.set(2, 0xb3000000u);
  EXPECT_EQ(add(0xf2), 0x3f7fffffu);  // towards -inf
  EXPECT_EQ(add(0xf3), 0x3f7fffffu);
  // float16 results round by the other field.
  machine.set(4, 0x3f801fffu);
  machine.wave().mode = 0xf4;
  ASSERT_TRUE(machine.run("v_cvt_f16_f32 v0, v4"));
  EXPECT_EQ(machine.at(0), 0x3c01u);
  machine.wave().mode = 0xfc;
  ASSERT_TRUE(machine.run("v_cvt_f16_f32 v0, v4"));
  EXPECT_EQ(machine.at(0), 0x3c00u);
  // Denormals: bit 0 of the field keeps inputs, bit 1 outputs.
  machine.set(5, 0x007fffffu);
  machine.set(6, 0x00800000u);
  machine.set(7, 0.5f);
  for (const auto& [mode, input, output] : {std::tuple{0xf0u, 0x00fffffeu, 0x00400000u}, std::tuple{0xc0u, 0u, 0u},
                                            std::tuple{0xd0u, 0x00fffffeu, 0u}, std::tuple{0xe0u, 0u, 0x00400000u}}) {
    machine.wave().mode = mode;
    ASSERT_TRUE(machine.run("v_add_f32 v0, v5, v5\nv_mul_f32 v8, v6, v7\nv_mov_b32 v9, v5"));
    EXPECT_EQ(machine.at(0), input) << mode;
    EXPECT_EQ(machine.at(8), output) << mode;
    EXPECT_EQ(machine.at(9), 0x007fffffu) << mode;  // a move is no arithmetic
  }
}

}  // namespace
}  // namespace wavejit::simgpu::test
