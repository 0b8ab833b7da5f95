// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What was never written, followed from where it lies to where it decides something.
#include <string>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::uint32_t only = static_cast<std::uint32_t>(Check::uninitialised);

struct Case {
  std::string name;
  std::string body;
  std::string text;  // part of the report; empty: there must be none
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Uninitialised : public ::testing::TestWithParam<Case> {};

// v1 is 4 times the thread, s[6:7] the output; v20 and up and s20 and up were never written.
const Case cases[] = {
    {"StoredRegister", "global_store_dword v1, v20, s[6:7]",
     "what is stored comes from a register that was never written"},
    {"StoredAfterArithmetic", "v_add_u32 v2, v0, v20\nglobal_store_dword v1, v2, s[6:7]", "what is stored"},
    {"StoredAfterAScalarMove", "s_mov_b32 s8, s20\nv_mov_b32 v2, s8\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    {"WrittenFirst", "v_mov_b32 v20, 3\nglobal_store_dword v1, v20, s[6:7]", ""},
    {"NeverUsed", "v_add_u32 v2, v20, v21\nv_mov_b32 v2, 1\nglobal_store_dword v1, v2, s[6:7]", ""},
    // One byte of four is taken out.
    {"FieldOfWhatWasWritten",
     "v_mov_b32 v20, 7\nv_mov_b32_sdwa v20, v21 dst_sel:BYTE_3 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0\n"
     "v_bfe_u32 v2, v20, 8, 8\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    {"HalfShiftedUp",
     "v_mov_b32 v20, 7\nv_mov_b32_sdwa v20, v21 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0\n"
     "v_lshlrev_b16 v2, 8, v20\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    {"HalfShiftedDown",
     "v_mov_b32 v20, 7\nv_mov_b32_sdwa v20, v21 dst_sel:BYTE_1 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0\n"
     "v_lshrrev_b16 v2, 8, v20\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    {"FieldOfWhatWasNot",
     "v_mov_b32 v20, 7\nv_mov_b32_sdwa v20, v21 dst_sel:BYTE_3 dst_unused:UNUSED_PRESERVE src0_sel:BYTE_0\n"
     "v_bfe_u32 v2, v20, 20, 8\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    // Each source of a packing conversion is half of the result (clang's code for one bfloat16).
    {"OtherHalfFromAScalar", "v_cvt_pkrtz_f16_f32 v2, v0, s20\nglobal_store_short v1, v2, s[6:7]", ""},
    {"HalfFromAScalar", "v_cvt_pkrtz_f16_f32 v2, v0, s20\nglobal_store_dword v1, v2, s[6:7]", "what is stored"},
    {"Address", "v_lshlrev_b32 v2, 2, v20\nglobal_load_dword v3, v2, s[6:7]", "the address comes from a register"},
    {"LdsAddress", "v_and_b32 v2, 0xfc, v20\nds_write_b32 v2, v0", "the address"},
    {"ScalarAddress", "s_and_b32 s8, s20, 0xfc\nbuffer_load_dword v3, off, s[12:15], s8", "the address"},
    {"Branch", "s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 over\ns_nop 0\nover:", "the condition of this branch"},
    {"BranchOnDefinedValues", "s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 over\ns_nop 0\nover:", ""},
    {"BranchOnAMask", "v_cmp_gt_u32 vcc, 4, v20\ns_cbranch_vccnz over\ns_nop 0\nover:", "the condition of this branch"},
    {"Exec", "v_cmp_gt_u32 vcc, 4, v20\ns_and_saveexec_b64 s[8:9], vcc", "EXEC comes from"},
    // A mask whose bits were written lane by lane, under full EXEC again: only lanes that are on count.
    {"ExecOfLanesThatAreOn",
     "s_mov_b64 s[10:11], exec\ns_mov_b64 exec, 0xff\ns_andn2_b64 s[20:21], s[20:21], exec\n"
     "s_and_saveexec_b64 s[8:9], s[20:21]\ns_mov_b64 exec, s[10:11]",
     ""},
    {"ExecOfLanesThatWereOff",
     "s_mov_b64 s[10:11], exec\ns_mov_b64 exec, 0xff\ns_andn2_b64 s[20:21], s[20:21], exec\n"
     "s_mov_b64 exec, s[10:11]\ns_and_saveexec_b64 s[8:9], s[20:21]",
     "EXEC comes from"},
    {"ExecWithMoreLanesThanKnown", "s_or_saveexec_b64 s[8:9], s[20:21]", ""},
    // Sums of 64 bits whose upper dword nobody wants: v4 comes from v0 and v2 alone.
    {"LowerDwordOfAProduct",
     "v_mov_b32 v2, 1\nv_mad_u64_u32 v[4:5], s[8:9], v0, 4, v[2:3]\nglobal_store_dword v1, v4, s[6:7]", ""},
    {"UpperDwordOfAProduct",
     "v_mov_b32 v2, 1\nv_mad_u64_u32 v[4:5], s[8:9], v0, 4, v[2:3]\nglobal_store_dword v1, v5, s[6:7]",
     "what is stored"},
    {"LowerDwordOfASum",
     "v_mov_b32 v2, 1\nv_mov_b32 v8, 3\nv_lshl_add_u64 v[4:5], v[2:3], 2, v[8:9]\nglobal_store_dword v1, v4, s[6:7]",
     ""},
    {"LowerDwordOfASumOfNothing",
     "v_mov_b32 v3, 1\nv_mov_b32 v8, 3\nv_lshl_add_u64 v[4:5], v[2:3], 2, v[8:9]\nglobal_store_dword v1, v4, s[6:7]",
     "what is stored"},
    // v21 is not read: both halves of the pair take v20.
    {"PairOfFloatsFromOne",
     "v_mov_b32 v20, 1.0\nv_mov_b32 v8, 2.0\nv_mov_b32 v9, 2.0\n"
     "v_pk_mul_f32 v[4:5], v[20:21], v[8:9] op_sel_hi:[0,1]\nv_add_u32 v4, v4, v5\nglobal_store_dword v1, v4, s[6:7]",
     ""},
    {"PairOfFloatsFromOneScalar",
     "s_mov_b32 s20, 1.0\nv_mov_b32 v8, 2.0\nv_mov_b32 v9, 2.0\n"
     "v_pk_mul_f32 v[4:5], s[20:21], v[8:9] op_sel_hi:[0,1]\nglobal_store_dword v1, v5, s[6:7]",
     ""},
    {"PairOfFloatsFromTwoScalars",
     "s_mov_b32 s20, 1.0\nv_mov_b32 v8, 2.0\nv_mov_b32 v9, 2.0\n"
     "v_pk_mul_f32 v[4:5], s[20:21], v[8:9]\nglobal_store_dword v1, v5, s[6:7]",
     "what is stored"},
    {"PairOfFloatsFromTwo",
     "v_mov_b32 v20, 1.0\nv_mov_b32 v8, 2.0\nv_mov_b32 v9, 2.0\n"
     "v_pk_mul_f32 v[4:5], v[20:21], v[8:9]\nglobal_store_dword v1, v5, s[6:7]",
     "what is stored"},
    {"HalfAPairOfFloats",
     "v_mov_b32 v21, 1.0\nv_mov_b32 v8, 2.0\nv_mov_b32 v9, 2.0\n"
     "v_pk_add_f32 v[4:5], v[20:21], v[8:9]\nglobal_store_dword v1, v5, s[6:7]",
     ""},
    // Two halves put into a register, one after the other.
    {"BothHalvesInserted",
     "s_mov_b32 s8, 0xffff\ns_mov_b32 s9, 0xffff0000\nv_bfi_b32 v20, s8, v0, v20\nv_bfi_b32 v20, s9, v0, v20\n"
     "global_store_dword v1, v20, s[6:7]",
     ""},
    {"OneHalfInserted", "s_mov_b32 s8, 0xffff\nv_bfi_b32 v20, s8, v0, v20\nglobal_store_dword v1, v20, s[6:7]",
     "what is stored"},
    // Registers numbered at run time: v22 is written, v20 is named.
    {"RelativeDestination",
     "s_mov_b32 s8, 2\ns_set_gpr_idx_on s8, gpr_idx(DST)\nv_mov_b32 v20, v0\ns_set_gpr_idx_off\n"
     "global_store_dword v1, v22, s[6:7]",
     ""},
    {"RelativeDestinationElsewhere",
     "s_mov_b32 s8, 2\ns_set_gpr_idx_on s8, gpr_idx(DST)\nv_mov_b32 v20, v0\ns_set_gpr_idx_off\n"
     "global_store_dword v1, v20, s[6:7]",
     "what is stored"},
    {"RelativeSource",
     "v_mov_b32 v22, 5\ns_mov_b32 s8, 2\ns_set_gpr_idx_on s8, gpr_idx(SRC0)\nv_mov_b32 v3, v20\ns_set_gpr_idx_off\n"
     "global_store_dword v1, v3, s[6:7]",
     ""},
    {"RelativeSourceOfNothing",
     "v_mov_b32 v20, 5\ns_mov_b32 s8, 2\ns_set_gpr_idx_on s8, gpr_idx(SRC0)\nv_mov_b32 v3, v20\ns_set_gpr_idx_off\n"
     "global_store_dword v1, v3, s[6:7]",
     "what is stored"},
    // A mask kept in lanes of a register and read back: bit by bit.
    {"MaskThatWasSpilled",
     "s_mov_b64 s[10:11], exec\ns_mov_b64 exec, 0xff\ns_andn2_b64 s[20:21], s[20:21], exec\n"
     "v_writelane_b32 v30, s20, 3\nv_writelane_b32 v30, s21, 4\ns_mov_b64 s[20:21], 0\n"
     "v_readlane_b32 s24, v30, 3\nv_readlane_b32 s25, v30, 4\ns_and_saveexec_b64 s[8:9], s[24:25]\n"
     "s_mov_b64 exec, s[10:11]",
     ""},
    {"MaskThatWasSpilledAndIsWanted",
     "s_mov_b64 s[10:11], exec\ns_mov_b64 exec, 0xff\ns_andn2_b64 s[20:21], s[20:21], exec\n"
     "v_writelane_b32 v30, s20, 3\nv_writelane_b32 v30, s21, 4\ns_mov_b64 exec, s[10:11]\n"
     "v_readlane_b32 s24, v30, 3\nv_readlane_b32 s25, v30, 4\ns_and_saveexec_b64 s[8:9], s[24:25]",
     "EXEC comes from"},
    {"SelectedAway",
     "v_mov_b32 v2, 7\nv_cmp_le_u32 vcc, 0, v0\nv_cndmask_b32 v3, v20, v2, vcc\nglobal_store_dword v1, v3, s[6:7]", ""},
    {"Selected",
     "v_mov_b32 v2, 7\nv_cmp_gt_u32 vcc, 63, v0\nv_cndmask_b32 v3, v20, v2, vcc\nglobal_store_dword v1, v3, s[6:7]",
     "what is stored"},
    // The high half of v20 is 0: memory with ECC clears what a half leaves (simgpu/machine/memory/transfer.h).
    {"HalfPackedAway",
     "v_mov_b32 v2, 7\nglobal_load_short_d16 v20, v1, s[6:7]\ns_waitcnt vmcnt(0)\n"
     "v_pack_b32_f16 v3, v20, v2\nglobal_store_dword v1, v3, s[6:7]",
     ""},
    {"HalfPackedIn",
     "v_mov_b32 v2, 7\nglobal_load_short_d16 v20, v1, s[6:7]\ns_waitcnt vmcnt(0)\n"
     "v_pack_b32_f16 v3, v20, v2 op_sel:[1,0,0]\nglobal_store_dword v1, v3, s[6:7]",
     ""},
    {"HalfStored", "global_load_short_d16 v20, v1, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_store_short v1, v20, s[6:7]", ""},
    {"BytesPermutedAway",
     "global_load_short_d16 v20, v1, s[6:7]\ns_mov_b32 s8, 0x01000100\ns_waitcnt vmcnt(0)\n"
     "v_perm_b32 v3, v20, v20, s8\nglobal_store_dword v1, v3, s[6:7]",
     ""},
    {"BytesPermutedIn",
     "global_load_short_d16 v20, v1, s[6:7]\ns_mov_b32 s8, 0x03020100\ns_waitcnt vmcnt(0)\n"
     "v_perm_b32 v3, v20, v20, s8\nglobal_store_dword v1, v3, s[6:7]",
     ""},
    {"LanesThatWereOff",
     "s_mov_b64 exec, 0xff\nv_mov_b32 v20, 1\ns_mov_b64 exec, -1\nglobal_store_dword v1, v20, s[6:7]",
     "what is stored"},
    {"LanesThatAreStillOff", "s_mov_b64 exec, 0xff\nv_mov_b32 v20, 1\nglobal_store_dword v1, v20, s[6:7]", ""},
    {"LdsNeverWritten", "ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     "memory that was never written, loaded by 'ds_read_b32 v2, v1'"},
    {"LdsWritten", "ds_write_b32 v1, v0\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    {"ThroughLds", "ds_write_b32 v1, v20\nds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    {"ThroughAPermute", "ds_bpermute_b32 v2, v1, v20\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    // Half a wave exchanges lanes: what the other half holds takes no part (a block of 32 threads).
    {"ThroughAPermuteOfHalfAWave",
     "s_mov_b64 exec, 0xffffffff\nv_mov_b32 v20, 1\nv_xor_b32 v21, 64, v1\nds_bpermute_b32 v2, v21, v20\n"
     "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    {"PermutedFromALaneThatIsOff",
     "s_mov_b64 exec, 0xffffffff\nv_xor_b32 v21, 128, v1\nv_mov_b32 v20, 1\nds_bpermute_b32 v2, v21, v20\n"
     "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    {"PermutedByLanesThatAreOff",
     "s_mov_b64 exec, 0xffffffff\nv_mov_b32 v20, 1\nv_mov_b32 v21, v1\nds_permute_b32 v2, v21, v20\n"
     "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    {"SwizzledInHalfAWave",
     "s_mov_b64 exec, 0xffffffff\nv_mov_b32 v20, 1\nds_swizzle_b32 v2, v20 offset:swizzle(SWAP,16)\n"
     "s_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    // One lane of the half that is on holds nothing, and the lane that takes it is stored, or is not.
    {"OneLanePermutedIn",
     "s_mov_b64 exec, 0xfffffffe\nv_mov_b32 v20, 1\ns_mov_b64 exec, 0xffffffff\nv_xor_b32 v21, 64, v1\n"
     "ds_bpermute_b32 v2, v21, v20\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    {"OneLanePermutedAway",
     "s_mov_b64 exec, 0xfffffffe\nv_mov_b32 v20, 1\ns_mov_b64 exec, 0xffffffff\nv_xor_b32 v21, 64, v1\n"
     "ds_bpermute_b32 v2, v21, v20\ns_waitcnt lgkmcnt(0)\ns_mov_b64 exec, 0xffff\nglobal_store_dword v1, v2, s[6:7]",
     ""},
    {"AddedAcrossRowsOfHalfAWave",
     "s_mov_b64 exec, 0xffffffff\nv_mov_b32 v20, 1\ns_nop 4\n"
     "v_add_u32_dpp v2, v20, v20 row_bcast:15 row_mask:0xf bank_mask:0xf bound_ctrl:0\n"
     "global_store_dword v1, v2, s[6:7]",
     ""},
    {"AddedFromALaneThatHoldsNothing",
     "s_mov_b64 exec, 0xfffffffe\nv_mov_b32 v20, 1\nv_mov_b32 v3, 1\ns_mov_b64 exec, 0xffffffff\nv_mov_b32 v3, 1\n"
     "s_nop 4\nv_add_u32_dpp v2, v20, v3 row_ror:1 row_mask:0xf bank_mask:0xf\ns_mov_b64 exec, 0xfffd\n"
     "global_store_dword v1, v2, s[6:7]",
     ""},
    {"AddedFromALaneThatHoldsNothingStored",
     "s_mov_b64 exec, 0xfffffffe\nv_mov_b32 v20, 1\nv_mov_b32 v3, 1\ns_mov_b64 exec, 0xffffffff\nv_mov_b32 v3, 1\n"
     "s_nop 4\nv_add_u32_dpp v2, v20, v3 row_ror:1 row_mask:0xf bank_mask:0xf\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    {"LaneSwap",
     "v_mov_b32 v2, 1\ns_nop 1\nv_permlane32_swap_b32 v2, v20\ns_mov_b64 exec, 0xffffffff\n"
     "global_store_dword v1, v2, s[6:7]",
     ""},
    {"LaneSwappedIn", "v_mov_b32 v2, 1\ns_nop 1\nv_permlane32_swap_b32 v2, v20\nglobal_store_dword v1, v2, s[6:7]",
     "what is stored"},
    // A row of A that holds nothing spoils a row of the result, which lane 0 keeps in its first register.
    {"MatrixRow",
     "v_mov_b32 v8, 0\nv_mov_b32 v9, 0\nv_mov_b32 v10, 0\nv_mov_b32 v11, 0\ns_mov_b64 exec, 1\nv_mov_b32 v8, v20\n"
     "s_mov_b64 exec, -1\ns_nop 4\nv_mfma_f32_32x32x8_f16 v[32:47], v[8:9], v[10:11], 0\ns_nop 15\ns_nop 15\n"
     "global_store_dword v1, v33, s[6:7]\nglobal_store_dword v1, v47, s[6:7]",
     ""},
    {"MatrixRowStored",
     "v_mov_b32 v8, 0\nv_mov_b32 v9, 0\nv_mov_b32 v10, 0\nv_mov_b32 v11, 0\ns_mov_b64 exec, 1\nv_mov_b32 v8, v20\n"
     "s_mov_b64 exec, -1\ns_nop 4\nv_mfma_f32_32x32x8_f16 v[32:47], v[8:9], v[10:11], 0\ns_nop 15\ns_nop 15\n"
     "global_store_dword v1, v32, s[6:7]",
     "what is stored"},
};

TEST_P(Uninitialised, IsReportedWhereItDecides) {
  const Assembled kernel(KernelSource{.body = std::string(prologue) + GetParam().body, .lds_bytes = 256});
  Buffer<std::uint32_t> memory(64, 7);
  const Checked checked = run_checked(kernel, {memory.address()}, {.checks = only});
  if (GetParam().text.empty()) {
    EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
    EXPECT_TRUE(checked.status.ok()) << checked.status.text;
  } else {
    // What follows a bad address may fault as well.
    ASSERT_FALSE(checked.findings.empty());
    EXPECT_EQ(checked.findings[0].check, "uninitialised");
    EXPECT_THAT(checked.text(), HasSubstr(GetParam().text));
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Uninitialised, ::testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.name; });

TEST(UninitialisedMemory, FromTheDevicesAllocator) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = only;
  scope.set(settings);
  DeviceMemory& memory = DeviceMemory::instance();
  auto* in = static_cast<std::uint32_t*>(memory.allocate(256, MemoryKind::device, 0));
  auto* out = static_cast<std::uint32_t*>(memory.allocate(256, MemoryKind::device, 0));
  const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  global_load_dword v2, v1, s[4:5]
  s_waitcnt vmcnt(0)
  global_store_dword v1, v2, s[6:7])",
                                      .kernarg_bytes = 16});
  const std::vector<std::uint64_t> arguments = {reinterpret_cast<std::uint64_t>(in),
                                                reinterpret_cast<std::uint64_t>(out)};
  memory.define(in, 255);
  const Checked almost = run_checked(kernel, arguments, {.checks = only});
  ASSERT_THAT(almost.names(), ElementsAre("uninitialised"));
  EXPECT_EQ(almost.findings[0].lane, 63);
  EXPECT_EQ(almost.findings[0].source.instruction, "global_load_dword v2, v1, s[4:5]");
  memory.define(in, 256);
  EXPECT_THAT(run_checked(kernel, arguments, {.checks = only}).findings, IsEmpty());
  // What a kernel stored is written; a copy of what was not is not.
  const std::vector<std::uint64_t> back = {arguments[1], arguments[0]};
  EXPECT_THAT(run_checked(kernel, back, {.checks = only}).findings, IsEmpty());
  memory.free(in);
  memory.free(out);
}

// What a scalar load gets counts dword by dword: a compiler widens three to four, and nobody looks at the last.
TEST(UninitialisedMemory, ThroughScalarLoads) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = only;
  scope.set(settings);
  DeviceMemory& memory = DeviceMemory::instance();
  auto* in = memory.allocate(12, MemoryKind::device, 0);
  auto* out = memory.allocate(256, MemoryKind::device, 0);
  for (const int word : {0, 2, 3}) {
    const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_waitcnt lgkmcnt(0)
  s_load_dwordx4 s[8:11], s[4:5], 0x0
  s_waitcnt lgkmcnt(0)
  v_add_u32 v2, s)" + std::to_string(8 + word) + ", v0\nglobal_store_dword v1, v2, s[6:7]",
                                        .kernarg_bytes = 16});
    const std::vector<std::uint64_t> arguments = {reinterpret_cast<std::uint64_t>(in),
                                                  reinterpret_cast<std::uint64_t>(out)};
    const Checked checked = run_checked(kernel, arguments, {.checks = only});
    if (word == 2) {
      EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
    } else {
      ASSERT_THAT(checked.names(), ElementsAre("uninitialised")) << word;
      EXPECT_EQ(checked.findings[0].source.instruction, "s_load_dwordx4 s[8:11], s[4:5], 0x0");
    }
    memory.define(static_cast<std::uint8_t*>(in) + 4, 8);
  }
  memory.free(in);
  memory.free(out);
}

// Lanes that load one behind the other, from any place: the byte that holds nothing is found, and its lane.
TEST(UninitialisedMemory, OneByteOfWhatAWaveLoadsTogether) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.checks = only;
  scope.set(settings);
  DeviceMemory& memory = DeviceMemory::instance();
  for (const unsigned begin : {0U, 4U, 6U, 252U}) {
    for (const unsigned missing : {begin, begin + 9, begin + 511, begin + 1023, begin + 1024}) {
      auto* in = static_cast<std::uint8_t*>(memory.allocate(4096, MemoryKind::device, 0));
      auto* out = static_cast<std::uint8_t*>(memory.allocate(4096, MemoryKind::device, 0));
      memory.define(in, missing);
      memory.define(in + missing + 1, 4096 - missing - 1);
      const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx4 s[4:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  global_load_dwordx4 v[4:7], v1, s[4:5] offset:)" +
                                                  std::to_string(begin) +
                                                  "\ns_waitcnt vmcnt(0)\nglobal_store_dwordx4 v1, v[4:7], s[6:7]",
                                          .kernarg_bytes = 16});
      const Checked checked = run_checked(
          kernel, {reinterpret_cast<std::uint64_t>(in), reinterpret_cast<std::uint64_t>(out)}, {.checks = only});
      if (missing == begin + 1024) {
        EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
      } else {
        ASSERT_THAT(checked.names(), ElementsAre("uninitialised"));
        EXPECT_EQ(checked.findings[0].lane, (missing - begin) / 16);
      }
      memory.free(in);
      memory.free(out);
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
