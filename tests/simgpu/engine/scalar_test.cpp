// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar instructions one by one: each line runs in a kernel and its result and SCC are compared with values worked out
// by hand from the ISA document's pseudo-code.
#include <format>
#include <vector>

#include "assembled.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

struct ScalarCase {
  const char* code;  // result in s[20:21] (32-bit results leave s21 = 0xabcd)
  std::uint64_t result;
  int scc;  // −1: whatever was there (1)
};

constexpr std::uint64_t narrow(std::uint32_t value) { return value | (std::uint64_t{0xabcd} << 32); }

const std::vector<ScalarCase>& cases() {
  static const std::vector<ScalarCase> all = {
      {"s_add_u32 s20, -1, 2", narrow(1), 1},
      {"s_add_u32 s20, 7, 2", narrow(9), 0},
      {"s_sub_u32 s20, 1, 2", narrow(0xffffffff), 1},
      {"s_add_i32 s20, 0x7fffffff, 1", narrow(0x80000000), 1},
      {"s_add_i32 s20, -1, 1", narrow(0), 0},
      {"s_sub_i32 s20, 0x80000000, 1", narrow(0x7fffffff), 1},
      {"s_addc_u32 s20, 5, 6", narrow(12), 0},
      {"s_subb_u32 s20, 5, 5", narrow(0xffffffff), 1},
      {"s_absdiff_i32 s20, 3, 10", narrow(7), 1},
      {"s_min_i32 s20, -4, 4", narrow(0xfffffffc), 1},
      {"s_min_u32 s20, -4, 4", narrow(4), 0},
      {"s_max_i32 s20, -4, 4", narrow(4), 0},
      {"s_max_u32 s20, -4, 4", narrow(0xfffffffc), 1},
      {"s_cselect_b32 s20, 11, 22", narrow(11), -1},
      {"s_cselect_b64 s[20:21], -3, 22", 0xfffffffffffffffd, -1},
      {"s_and_b32 s20, 12, 10", narrow(8), 1},
      {"s_and_b64 s[20:21], -1, 0x80000000", 0x80000000, 1},
      {"s_or_b32 s20, 12, 10", narrow(14), 1},
      {"s_xor_b32 s20, 12, 12", narrow(0), 0},
      {"s_andn2_b32 s20, 12, 10", narrow(4), 1},
      {"s_orn2_b32 s20, 0, -16", narrow(15), 1},
      {"s_nand_b32 s20, -1, -1", narrow(0), 0},
      {"s_nor_b32 s20, 0, 0", narrow(0xffffffff), 1},
      {"s_xnor_b64 s[20:21], 5, 5", ~std::uint64_t{0}, 1},
      {"s_lshl_b32 s20, 1, 33", narrow(2), 1},
      {"s_lshl_b64 s[20:21], 1, 33", std::uint64_t{1} << 33, 1},
      {"s_lshr_b32 s20, -1, 28", narrow(15), 1},
      {"s_lshr_b64 s[20:21], -1, 60", 15, 1},
      {"s_ashr_i32 s20, -16, 2", narrow(0xfffffffc), 1},
      {"s_ashr_i64 s[20:21], -16, 4", ~std::uint64_t{0}, 1},
      {"s_bfm_b32 s20, 4, 8", narrow(0xf00), -1},
      {"s_bfm_b64 s[20:21], 40, 8", 0xffffffffff00, -1},
      {"s_mov_b32 s28, 0x12345678\n s_bfe_u32 s20, s28, 0x80008", narrow(0x56), 1},
      {"s_mov_b32 s28, 0xf000\n s_bfe_i32 s20, s28, 0x4000c", narrow(0xffffffff), 1},
      {"s_bfe_u32 s20, 0x12345678, 0", narrow(0), 0},
      {"s_mul_i32 s20, -3, 5", narrow(0xfffffff1), -1},
      {"s_mul_hi_u32 s20, -1, 16", narrow(15), -1},
      {"s_mul_hi_i32 s20, -1, 16", narrow(0xffffffff), -1},
      {"s_lshl1_add_u32 s20, 3, 4", narrow(10), 0},
      {"s_lshl4_add_u32 s20, 0xf0000000, 4", narrow(4), 1},
      {"s_mov_b32 s28, 0x12345678\n s_pack_ll_b32_b16 s20, s28, 0x9abcdef0", narrow(0xdef05678), -1},
      {"s_pack_lh_b32_b16 s20, 0x12345678, s22", narrow(0xaaaa5678), -1},
      {"s_pack_hh_b32_b16 s20, 0x12345678, s22", narrow(0xaaaa1234), -1},
      {"s_mov_b32 s20, 0.5", narrow(0x3f000000), -1},
      {"s_mov_b64 s[20:21], 1.0", 0x3ff0000000000000, -1},
      {"s_cmov_b32 s20, 9", narrow(9), -1},
      {"s_not_b32 s20, -2", narrow(1), 1},
      {"s_not_b64 s[20:21], -1", 0, 0},
      {"s_brev_b32 s20, 1", narrow(0x80000000), -1},
      {"s_bcnt1_i32_b32 s20, 0xff00", narrow(8), 1},
      {"s_bcnt0_i32_b32 s20, -1", narrow(0), 0},
      {"s_bcnt1_i32_b64 s20, -1", narrow(64), 1},
      {"s_ff1_i32_b32 s20, 0x100", narrow(8), -1},
      {"s_ff1_i32_b32 s20, 0", narrow(0xffffffff), -1},
      {"s_ff1_i32_b64 s20, s[24:25]", narrow(36), -1},
      {"s_ff0_i32_b32 s20, 7", narrow(3), -1},
      {"s_flbit_i32_b32 s20, 0x100", narrow(23), -1},
      {"s_flbit_i32_b64 s20, 1", narrow(63), -1},
      {"s_flbit_i32 s20, -2", narrow(31), -1},
      {"s_flbit_i32 s20, -1", narrow(0xffffffff), -1},
      {"s_sext_i32_i8 s20, 0x80", narrow(0xffffff80), -1},
      {"s_sext_i32_i16 s20, 0x8000", narrow(0xffff8000), -1},
      {"s_abs_i32 s20, -7", narrow(7), 1},
      {"s_bitset1_b32 s20, 4", narrow(0x10), -1},
      {"s_bitset0_b64 s[20:21], 32", 0xabcc00000000, -1},
      {"s_wqm_b32 s20, 0x100", narrow(0xf00), 1},
      {"s_quadmask_b32 s20, 0x1010", narrow(0xa), 1},
      {"s_bitreplicate_b64_b32 s[20:21], 5", 0x33, -1},
      {"s_movk_i32 s20, 0xff00", narrow(0xffffff00), -1},
      {"s_addk_i32 s20, 0x12", narrow(0x12), 0},
      {"s_mulk_i32 s22, 2\n s_mov_b32 s20, s22", narrow(0x55555554), -1},
      {"s_cmp_eq_i32 s22, s22\n s_mov_b32 s20, 0", narrow(0), 1},
      {"s_cmp_lt_i32 s22, 0\n s_mov_b32 s20, 0", narrow(0), 1},
      {"s_cmp_lt_u32 s22, 0\n s_mov_b32 s20, 0", narrow(0), 0},
      {"s_cmpk_lt_i32 s22, 0xffff\n s_mov_b32 s20, 0", narrow(0), 1},
      {"s_cmpk_gt_u32 s22, 0xffff\n s_mov_b32 s20, 0", narrow(0), 1},
      {"s_cmp_eq_u64 s[24:25], 0\n s_mov_b32 s20, 0", narrow(0), 0},
      {"s_bitcmp1_b32 s22, 31\n s_mov_b32 s20, 0", narrow(0), 1},
      {"s_bitcmp0_b64 s[24:25], 36\n s_mov_b32 s20, 0", narrow(0), 0},
      {"s_mov_b64 s[20:21], src_shared_base", 0x1000000000000, -1},
      {"s_mov_b64 s[20:21], src_private_base", 0x2000000000000, -1},
      {"s_mov_b32 s20, src_scc", narrow(1), -1},
      {"s_getreg_b32 s20, hwreg(HW_REG_MODE, 4, 4)", narrow(12), -1},
      {"s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 4), 9\n s_getreg_b32 s20, hwreg(HW_REG_MODE, 0, 8)", narrow(0xc9), -1},
      {"s_mov_b64 exec, 10\n s_and_saveexec_b64 s[20:21], 12", 10, 1},
      {"s_mov_b64 exec, 10\n s_and_saveexec_b64 s[20:21], 12\n s_mov_b64 s[20:21], exec", 8, 1},
      {"s_mov_b64 exec, 10\n s_andn2_saveexec_b64 s[20:21], 12\n s_mov_b64 s[20:21], exec", 4, 1},
      {"s_mov_b64 exec, 10\n s_or_saveexec_b64 s[20:21], 0\n s_mov_b64 s[20:21], exec", 10, 1},
      {"s_mov_b64 exec, 10\n s_andn1_wrexec_b64 s[20:21], 2", 8, 1},
      {"s_mov_b64 exec, 0\n s_cbranch_execz 1\n s_trap 2\n s_mov_b32 s20, 3", narrow(3), -1},
      {"s_mov_b64 vcc, 0\n s_cbranch_vccz 1\n s_trap 2\n s_mov_b32 s20, 3", narrow(3), -1},
      {"s_cbranch_scc1 1\n s_trap 2\n s_mov_b32 s20, 3", narrow(3), -1},
      {"s_mov_b32 m0, 2\n s_movrels_b32 s20, s20", narrow(0xaaaaaaaa), -1},
  };
  return all;
}

// All cases in one kernel, so that the assembler runs once.
std::string kernel_of_all_cases() {
  std::string body =
      "s_load_dwordx2 s[6:7], s[0:1], 0x0\ns_mov_b64 s[26:27], exec\nv_mov_b32 v4, 0\ns_waitcnt lgkmcnt(0)\n";
  for (const ScalarCase& wanted : cases()) {
    body += std::format(R"(
  s_mov_b32 s20, 0
  s_mov_b32 s21, 0xabcd
  s_mov_b32 s22, 0xaaaaaaaa
  s_mov_b32 s24, 0
  s_mov_b32 s25, 16
  s_cmp_eq_u32 s20, s20
  {}
  s_cselect_b32 s23, 1, 0
  s_mov_b64 exec, s[26:27]
  v_mov_b32 v10, s20
  v_mov_b32 v11, s21
  v_mov_b32 v12, s23
  global_store_dwordx3 v4, v[10:12], s[6:7]
  v_add_u32 v4, 12, v4)",
                        wanted.code);
  }
  return body;
}

TEST(ScalarInstructions, GiveWhatTheIsaSays) {
  const Assembled kernel(kernel_of_all_cases());
  Buffer<std::uint32_t> out(3 * cases().size());
  const Status status = kernel.run({out.address()}, {1, 1, 1}, {1, 1, 1});
  ASSERT_TRUE(status.ok()) << status.text;
  for (std::size_t i = 0; i < cases().size(); ++i) {
    const ScalarCase& wanted = cases()[i];
    const std::uint64_t result = out[3 * i] | (std::uint64_t{out[(3 * i) + 1]} << 32);
    EXPECT_EQ(result, wanted.result) << wanted.code << std::format(": {:#x}, not {:#x}", result, wanted.result);
    EXPECT_EQ(out[(3 * i) + 2], wanted.scc < 0 ? 1u : static_cast<std::uint32_t>(wanted.scc)) << wanted.code;
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
