// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults that others found on GPUs in kernels and compilers of theirs, each written anew as a small program: a check
// finds it, by the name of its report, and is silent about the same program without it.
#include <algorithm>
#include <array>
#include <format>
#include <string>
#include <vector>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Fault {
  std::string report;
  std::string target;
  std::string before;
  std::string wrong;
  std::vector<std::string> right;  // each of them in its place
  std::string after;
  std::string check;
  std::string text;  // part of what is said
  CheckedRun how = {};
};
void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.report; }

// Two waves. v1: 4 times the thread's number, v2: the other wave's; s12: where this wave's 256 bytes of a tile lie.
constexpr const char* two_waves = R"(
  v_and_b32 v2, 0x100, v1
  s_nop 0
  v_readfirstlane_b32 s12, v2
  v_xor_b32 v2, 0x100, v1
  s_mov_b32 s8, s6
  s_mov_b32 s9, s7
  s_mov_b32 s10, 0x1000
  s_mov_b32 s11, 0x27000
  s_mov_b32 m0, s12
  s_nop 4
)";
constexpr const char* rdna4_two_waves = R"(
  s_load_b64 s[6:7], s[0:1], 0x0
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v0
  v_xor_b32 v2, 0x80, v1
  s_wait_kmcnt 0x0
)";
constexpr const char* read_and_leave = R"(
  ds_read_b32 v3, v2
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v3, s[6:7]
)";
constexpr CheckedRun of_two_waves{.threads = 128, .rules = Rules::strict};
constexpr CheckedRun of_hazards{.checks = static_cast<std::uint32_t>(Check::hazards), .rules = Rules::strict};
constexpr CheckedRun of_two_narrow_waves{.threads = 64, .rules = Rules::strict};

// Tiles of 512 bytes by LDS DMA, a load of each wave for a tile.
std::string load_tiles(int count) {
  std::string loads;
  for (int tile = 0; tile < count; ++tile)
    loads += std::format("buffer_load_dword v1, s[8:11], 0 offen offset:{} lds\n", 512 * tile);
  return loads;
}
// A line for each of `count` registers.
std::string repeated(int count, int first, const std::string& text) {
  std::string all;
  for (int i = first; i < first + count; ++i) all += std::vformat(text, std::make_format_args(i)) + "\n";
  return all;
}

// A conversion between layouts as a swizzled tile has it: each lane writes two dwords that other lanes want, 8 bytes
// apart, and reads 8 bytes that two lanes of either wave wrote. v4, v5: where it writes; v6: where it reads.
constexpr const char* exchange = R"(
  v_lshlrev_b32 v4, 3, v0
  v_xor_b32 v4, 0x208, v4
  v_xor_b32 v5, 0x204, v4
  v_lshlrev_b32 v6, 3, v0
  ds_write_b32 v4, v0
  ds_write_b32 v5, v1
  s_waitcnt lgkmcnt(0)
)";
constexpr const char* leave_pair = "\ns_waitcnt lgkmcnt(0)\nv_add_u32 v3, v8, v9\nglobal_store_dword v1, v3, s[6:7]\n";

constexpr const char* packed_start = "v_mov_b32 v8, 1.0\nv_mov_b32 v9, 2.0\nv_mov_b32 v10, 0.5\nv_mov_b32 v11, 4.0\n";
constexpr const char* permuted_start = R"(
  v_mov_b32 v8, v0
  v_mov_b32 v10, 1
  v_mov_b32 v11, 2
  v_mov_b32 v12, 3
  v_add_nc_u32_dpp v8, v0, v0 row_shr:1 row_mask:0xf bank_mask:0xf
)";
constexpr const char* old_pair = "v_dual_add_f32 v14, v8, v11 :: v_dual_mov_b32 v17, v10\n";
// Sixteen passes of gfx950: 20 wait states.
constexpr const char* sixteen_passes = "v_mfma_f32_32x32x4_2b_f16 v[16:47], v[0:1], v[4:5], 0\n";

constexpr const char* meet = "s_waitcnt lgkmcnt(0)\ns_barrier\n";
constexpr const char* rdna4_meet = "s_wait_dscnt 0x0\ns_barrier_signal -1\ns_barrier_wait -1\n";

using Faults = std::vector<Fault>;

// Between waves of a workgroup, through LDS.
void add_races(Faults& all, const std::string& target) {
  const auto named = [&](const char* report) { return std::format("{}_{}", report, target); };
  const std::string store = "ds_write_b32 v1, v0\n";
  // "Drain FlyDSL stage-1 LDS-DMA loads before the tile barrier": the count in front of the barrier leaves a load of
  // the tile that is read behind it on its way.
  all.push_back({.report = named("Aiter5561"),
                 .target = target,
                 .before = two_waves + load_tiles(3),
                 .wrong = "s_waitcnt vmcnt(3)",
                 .right = {"s_waitcnt vmcnt(2)", "s_waitcnt vmcnt(0)"},
                 .after = std::string("s_barrier") + read_and_leave,
                 .check = "races",
                 .text = "and has not waited for it: a barrier does not order what is on its way",
                 .how = of_two_waves});
  // "drain lgkmcnt(0) at producer barriers in flatmm_splitk": a full prologue, of which the first slot is handed over.
  // The right count by the ISA is one that the report did not trust; what its change waits for counts no LDS DMA
  // (llvm/llvm-project#179305).
  all.push_back({.report = named("Aiter3413"),
                 .target = target,
                 .before = two_waves + load_tiles(8),
                 .wrong = "s_waitcnt vmcnt(8) lgkmcnt(0)",
                 .right = {"s_waitcnt vmcnt(7)", "s_waitcnt vmcnt(0)"},
                 .after = std::string("s_barrier") + read_and_leave,
                 .check = "races",
                 .text = "and has not waited for it",
                 .how = of_two_waves});
  // "block_sync_lds: use LDS-only release/acquire fences": nothing kept the store in front of the barrier.
  all.push_back({.report = named("RocmLibraries10893"),
                 .target = target,
                 .before = two_waves,
                 .wrong = meet + store,
                 .right = {store + meet},
                 .after = read_and_leave,
                 .check = "races",
                 .text = "with no barrier in between",
                 .how = of_two_waves});
  // "test_gemm_mx correctness failures (LDS read drain)": reads are on their way over the barrier behind which another
  // wave loads into the same bytes.
  all.push_back(
      {.report = named("RocmLibraries10653"),
       .target = target,
       .before = two_waves + store + meet + repeated(8, 8, "ds_read_b32 v{}, v2"),
       .wrong = "s_nop 0",
       .right = {"s_waitcnt lgkmcnt(0)"},
       .after = "s_barrier\n" + load_tiles(1) + "s_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v1, v15, s[6:7]\n",
       .check = "races",
       .text = "reads by 'ds_read_b32",
       .how = of_two_waves});
  // "contiguous ds_read_b64 of swizzled LDS races at -O3": the report says that wide reads of what the other wave wrote
  // give old values, and that strided ones hide it. Both spellings are held to the same barrier here.
  for (const auto& [name, read] :
       {std::pair("", "ds_read_b64 v[8:9], v6"), std::pair("Strided", "ds_read2_b32 v[8:9], v6 offset1:1")}) {
    all.push_back({.report = std::format("Llvm206825{}_{}", name, target),
                   .target = target,
                   .before = std::string(two_waves) + exchange,
                   .wrong = "s_nop 0",
                   .right = {"s_barrier"},
                   .after = read + std::string(leave_pair),
                   .check = "races",
                   .text = "with no barrier in between",
                   .how = of_two_waves});
    all.push_back({.report = std::format("Llvm206825Again{}_{}", name, target),
                   .target = target,
                   .before = std::string(two_waves) + exchange + "s_barrier\n" + read + "\ns_waitcnt lgkmcnt(0)\n",
                   .wrong = "s_nop 0",
                   .right = {"s_barrier"},
                   .after = "ds_write_b32 v4, v1\nds_write_b32 v5, v0" + std::string(leave_pair),
                   .check = "races",
                   .text = "with no barrier in between",
                   .how = of_two_waves});
  }
}

void add_rdna4_races(Faults& all) {
  const std::string store = "ds_store_b32 v1, v0\n";
  const std::string read_and_leave = "ds_load_b32 v3, v2\ns_wait_dscnt 0x0\nglobal_store_b32 v1, v3, s[6:7]\n";
  all.push_back({.report = "RocmLibraries10893_gfx1201",
                 .target = "gfx1201",
                 .before = rdna4_two_waves,
                 .wrong = rdna4_meet + store,
                 .right = {store + rdna4_meet},
                 .after = read_and_leave,
                 .check = "races",
                 .text = "with no barrier in between",
                 .how = of_two_narrow_waves});
  // 28 reads on their way over the barrier, as the report has them.
  all.push_back({.report = "RocmLibraries10653_gfx1201",
                 .target = "gfx1201",
                 .before = rdna4_two_waves + store + rdna4_meet + repeated(28, 100, "ds_load_b32 v{}, v2"),
                 .wrong = "s_wait_loadcnt_dscnt 0x11c",
                 .right = {"s_wait_dscnt 0x0"},
                 .after = "s_barrier_signal -1\ns_barrier_wait -1\nds_store_b32 v1, v2\ns_wait_dscnt 0x0\n"
                          "global_store_b32 v1, v127, s[6:7]\n",
                 .check = "races",
                 .text = "reads by 'ds_load_b32",
                 .how = of_two_narrow_waves});
  // "barrier before LDS reuse in qwen35_fa_prep": all read the sum in the first word, and who is done writes there.
  all.push_back(
      {.report = "Hipfire575_gfx1201",
       .target = "gfx1201",
       .before = rdna4_two_waves + store + rdna4_meet + "v_mov_b32 v4, 0\nds_load_b32 v3, v4\ns_wait_dscnt 0x0\n",
       .wrong = "s_nop 0",
       .right = {rdna4_meet},
       .after = "ds_store_b32 v1, v2\nglobal_store_b32 v1, v3, s[6:7]\n",
       .check = "races",
       .text = "with no barrier in between",
       .how = of_two_narrow_waves});
  // "barrier the M32 staged kernel's head loop": the next turn's stores pass the reads of a wave that lags.
  all.push_back({.report = "Lucebox739_gfx1201",
                 .target = "gfx1201",
                 .before = rdna4_two_waves + std::string("s_mov_b32 s8, 2\n.Lturn:\n") + store + rdna4_meet +
                           "ds_load_b32 v3, v2\ns_wait_dscnt 0x0\n",
                 .wrong = "s_nop 0",
                 .right = {rdna4_meet},
                 .after = "s_sub_co_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\ns_cbranch_scc1 .Lturn\n"
                          "global_store_b32 v1, v3, s[6:7]\n",
                 .check = "races",
                 .text = "with no barrier in between",
                 .how = of_two_narrow_waves});
}

// A wave's own: counts, and what a load leaves unwritten.
void add_waits(Faults& all, const std::string& target) {
  const auto named = [&](const char* report) { return std::format("{}_{}", report, target); };
  const std::string leave = "\ns_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v1, v3, s[6:7]\n";
  // "Wait on all LDS DMA operations when no aliasing store is found": LLVM follows a few loads into LDS and put no wait
  // in front of a read of another one's bytes.
  all.push_back({.report = named("Llvm170660"),
                 .target = target,
                 .before = two_waves + load_tiles(8) + "s_waitcnt vmcnt(1)\nds_read_b32 v3, v1 offset:3072\n",
                 .wrong = "s_nop 0",
                 .right = {"s_waitcnt vmcnt(0)"},
                 .after = "ds_read_b32 v3, v1 offset:3584" + leave,
                 .check = "waits",
                 .text = "reads LDS byte 0x",
                 .how = of_two_waves});
  // "Zero padded LDS before direct-to-LDS gather": lanes of padding are masked, and their bytes of the tile stay noise.
  all.push_back({.report = named("RocMlir2426"),
                 .target = target,
                 .before = two_waves + std::string("v_mov_b32 v4, 0\n"),
                 .wrong = "s_nop 0",
                 .right = {"ds_write_b32 v1, v4\ns_waitcnt lgkmcnt(0)"},
                 .after = "s_mov_b32 exec_hi, 0\n" + load_tiles(1) + "s_mov_b32 exec_hi, -1\n" +
                          "s_waitcnt vmcnt(0)\nds_read_b32 v3, v1" + leave,
                 .check = "uninitialised",
                 .text = "never written",
                 .how = of_two_waves});
  // "Direct-to-LDS loads fault if destination is too small": every lane writes, also behind the tile.
  all.push_back({.report = named("MetaTriton2801"),
                 .target = target,
                 .before = std::string(two_waves),
                 .wrong = "s_movk_i32 m0, 0x1f80\ns_nop 0",
                 .right = {"s_movk_i32 m0, 0x1f00\ns_nop 0"},
                 .after = load_tiles(1) + "s_waitcnt vmcnt(0)\n",
                 .check = "bounds",
                 .text = "LDS",
                 .how = {.rules = Rules::strict}});
  // "Model wait-counter backpressure in Waitcheck" (ROCm/rocm-systems): what a full counter has let go is there. Other
  // checkers reported it.
  all.push_back({.report = named("RocmSystems11202"),
                 .target = target,
                 .before = two_waves + std::string("ds_write_b32 v1, v0\nds_read_b32 v8, v1\n"),
                 .wrong = repeated(14, 20, "ds_read_b32 v{}, v1"),
                 .right = {repeated(15, 20, "ds_read_b32 v{}, v1")},
                 .after = "v_mov_b32 v3, v8" + leave,
                 .check = "waits",
                 .text = "reads v8 while 'ds_read_b32 v8",
                 .how = of_two_waves});
  all.push_back({.report = named("RocmSystems11202Vector"),
                 .target = target,
                 .before = two_waves + std::string("global_load_dword v8, v1, s[6:7]\n"),
                 .wrong = repeated(62, 20, "global_load_dword v{}, v1, s[6:7]"),
                 .right = {repeated(63, 20, "global_load_dword v{}, v1, s[6:7]")},
                 .after = "v_mov_b32 v3, v8\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[6:7] offset:1024\n",
                 .check = "waits",
                 .text = "reads v8 while 'global_load_dword v8",
                 .how = of_two_waves});
}

// Wait states.
void add_hazards(Faults& all, const std::string& target) {
  const auto named = [&](const char* report) { return std::format("{}_{}", report, target); };
  // "Widen MUBUF/MTBUF source-vgpr WAR hazard to SGPR soffset": the instruction behind the store changes what is stored.
  all.push_back(
      {.report = named("Llvm197267"),
       .target = target,
       .before = two_waves + std::string("s_mov_b32 s16, 0\n") + "buffer_store_dwordx4 v[8:11], v1, s[8:11], s16 offen",
       .wrong = "",
       .right = {"\ns_nop 0", "\nv_mov_b32 v20, 0"},
       .after = "v_pk_mul_f32 v[8:9], v[12:13], v[12:13]\n",
       .check = "hazards",
       .text = "0 wait states after 'buffer_store_dwordx4",
       .how = of_hazards});
  // "missing S_NOP after wide store": the store stands on one of two ways that meet. LLVM 22 has not this fault.
  all.push_back({.report = named("Llvm202333"),
                 .target = target,
                 .before = two_waves + std::string("s_mov_b64 s[34:35], exec\ns_cmp_eq_u32 s2, s2\n") +
                           "s_cbranch_scc0 .Lmeet\nglobal_store_dwordx4 v1, v[8:11], s[6:7]\n.Lmeet:\n" +
                           "s_or_b64 exec, exec, s[34:35]",
                 .wrong = "",
                 .right = {"\ns_nop 0"},
                 .after = "v_pk_mul_f32 v[8:9], v[12:13], v[12:13]\n",
                 .check = "hazards",
                 .text = "1 wait states after 'global_store_dwordx4",
                 .how = of_hazards});
  // "Trans -> non-Trans VALU forwarding hazard" (iree-org/wave), in a backend with a table of its own.
  all.push_back({.report = named("IreeWave1112"),
                 .target = target,
                 .before = "v_mov_b32 v9, 2.0\ns_nop 1\nv_rcp_f32 v8, v9",
                 .wrong = "",
                 .right = {"\ns_nop 0"},
                 .after = "v_mul_f32 v3, v8, v9\nglobal_store_dword v1, v3, s[6:7]\n",
                 .check = "hazards",
                 .text = "0 wait states after 'v_rcp_f32",
                 .how = of_hazards});
}

void add_hazards_of_one_target(Faults& all) {
  // "Fix MAI hazard scan missing 19-instruction-old hazards": hazards_test.cpp has what LLVM 22 makes of it.
  all.push_back({.report = "Llvm222040_gfx950",
                 .target = "gfx950",
                 .before = "s_nop 1\n" + std::string(sixteen_passes) + repeated(19, 60, "v_mov_b32 v{}, 0"),
                 .wrong = "",
                 .right = {"s_nop 0", "v_mov_b32 v90, 0"},
                 .after = "v_add_f32 v3, v47, v47\nglobal_store_dword v1, v3, s[6:7]\n",
                 .check = "hazards",
                 .text = "19 wait states after",
                 .how = of_hazards});
  // "Add wait states between different MFMAs sharing an accumulator": hazards_test.cpp has more pairs (HazardBeyondLlvm).
  all.push_back({.report = "Llvm218363_gfx950",
                 .target = "gfx950",
                 .before = "s_nop 1\nv_mfma_f32_16x16x32_f16 v[16:19], v[0:3], v[4:7], 0\ns_nop 4\n",
                 .wrong = "",
                 .right = {"s_nop 0"},
                 .after = "v_mfma_f32_16x16x16_f16 v[16:19], v[0:1], v[4:5], v[16:19]\ns_nop 15\n",
                 .check = "hazards",
                 .text = "5 wait states after",
                 .how = of_hazards});
  // "Disable packed FP32 on gfx950": intermittent on hardware, so that the instruction itself is what is found.
  all.push_back({.report = "RocMlir2459_gfx950",
                 .target = "gfx950",
                 .before = packed_start,
                 .wrong = "v_pk_fma_f32 v[12:13], v[8:9], v[10:11], v[8:9] op_sel:[0,1,0]",
                 .right = {"v_pk_fma_f32 v[12:13], v[8:9], v[10:11], v[8:9] op_sel_hi:[1,0,1]",
                           "v_fma_f32 v12, v8, v11, v8\nv_fma_f32 v13, v9, v11, v9"},
                 .after = "v_add_f32 v3, v12, v13\nglobal_store_dword v1, v3, s[6:7]\n",
                 .check = "hazards",
                 .text = "takes the high half of its second source for its low result",
                 .how = {.rules = Rules::strict}});
  // "attn_fwd fp32 hdim80 causal produces NaN in LSE on gfx1150": a dual instruction too soon behind a DPP one, with two
  // even registers as the first sources of its halves.
  all.push_back({.report = "Aotriton183_gfx1201",
                 .target = "gfx1201",
                 .before = std::string(rdna4_two_waves) + permuted_start,
                 .wrong = "s_nop 15\ns_nop 8\n" + std::string(old_pair),
                 .right = {"s_nop 15\ns_nop 9\n" + std::string(old_pair),
                           "s_wait_alu depctr_va_vdst(0)\n" + std::string(old_pair),
                           "v_dual_add_f32 v14, v8, v12 :: v_dual_mov_b32 v17, v11\n",
                           "v_add_f32 v14, v8, v11\nv_mov_b32 v17, v10\n"},
                 .after = "v_add_nc_u32 v3, v14, v17\nglobal_store_b32 v1, v3, s[6:7]\n",
                 .check = "hazards",
                 .text = "reads v8 25 wait states after",
                 .how = of_two_narrow_waves});
}

Faults faults() {
  Faults all;
  for (const char* target : {"gfx942", "gfx950"}) {
    add_races(all, target);
    add_waits(all, target);
    add_hazards(all, target);
  }
  add_rdna4_races(all);
  add_hazards_of_one_target(all);
  return all;
}

Checked run(const Fault& fault, const std::string& middle, CheckedRun how) {
  const bool is_rdna4 = fault.target == "gfx1201";
  const Assembled kernel(
      KernelSource{.body = (is_rdna4 ? "" : std::string(prologue)) + fault.before + middle + "\n" + fault.after,
                   .target = fault.target,
                   .kernarg_bytes = 16,
                   .lds_bytes = 8192,
                   .vgprs = 128});
  Buffer<std::uint32_t> memory(1024, 7);
  return run_checked(kernel, {memory.address(), 0}, how);
}

class PublishedFaults : public ::testing::TestWithParam<Fault> {};

// In every order of waves: who is first must not decide whether it is seen.
constexpr std::array schedules = {Schedule::in_order, Schedule::reverse, Schedule::random};

TEST_P(PublishedFaults, IsFound) {
  for (const Schedule schedule : schedules) {
    CheckedRun how = GetParam().how;
    how.schedule = schedule;
    const Checked checked = run(GetParam(), GetParam().wrong, how);
    // What was read too early may also be found to be nothing that anybody wrote.
    EXPECT_THAT(checked.names(), AllOf(Contains(GetParam().check), Each(AnyOf(GetParam().check, "uninitialised"))));
    const auto by_check = [&](const ReportedFinding& finding) { return finding.check == GetParam().check; };
    const auto found = std::ranges::find_if(checked.findings, by_check);
    if (found != checked.findings.end()) EXPECT_THAT(found->text, HasSubstr(GetParam().text));
  }
}

TEST_P(PublishedFaults, MendedItIsSilent) {
  for (const std::string& right : GetParam().right) {
    for (const Schedule schedule : schedules) {
      CheckedRun how = GetParam().how;
      how.schedule = schedule;
      const Checked checked = run(GetParam(), right, how);
      EXPECT_THAT(checked.findings, IsEmpty()) << right << ": " << checked.text();
      EXPECT_TRUE(checked.status.ok()) << checked.status.text;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, PublishedFaults, ::testing::ValuesIn(faults()),
                         [](const auto& info) { return info.param.report; });

}  // namespace
}  // namespace wavejit::simgpu::testing
