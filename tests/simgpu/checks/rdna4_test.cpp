// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Faults of RDNA4's kernels, each with and without what is missing: waits by counters of their own, barriers in two
// parts, what the ALUs owe each other.
#include <string>
#include <tuple>
#include <utility>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  std::string name;
  std::string before;
  std::string missing;  // what keeps it right
  std::string after;
  std::string check;
  std::string text;  // part of the report
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

constexpr const char* begin = R"(
  s_load_b64 s[6:7], s[0:1], 0x0
  v_and_b32 v1, 0x3ff, v0
  v_lshlrev_b32 v1, 2, v1
  s_wait_kmcnt 0x0
)";
constexpr const char* zeros = R"(
  v_mov_b32 v8, 0
  v_mov_b32 v9, 0
  v_mov_b32 v10, 0
  v_mov_b32 v11, 0
)";

const Case cases[] = {
    {.name = "Load",
     .before = "global_load_b32 v2, v1, s[6:7]",
     .missing = "s_wait_loadcnt 0x0",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "reads v2 while 'global_load_b32 v2, v1, s[6:7]' at"},
    {.name = "LoadCountsApartFromStores",
     .before = "global_load_b32 v2, v1, s[6:7]\nglobal_store_b32 v1, v1, s[6:7] offset:512\ns_wait_storecnt 0x0",
     .missing = "s_wait_loadcnt 0x0",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "no s_wait_loadcnt 0 or less since"},
    {.name = "LocalLoad",
     .before = "ds_store_b32 v1, v1\nds_load_b32 v2, v1\ns_wait_loadcnt 0x0",
     .missing = "s_wait_dscnt 0x0",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "no s_wait_dscnt 0 or less since"},
    {.name = "ScalarLoad",
     .before = "s_load_b32 s8, s[0:1], 0x0\ns_wait_dscnt 0x0",
     .missing = "s_wait_kmcnt 0x0",
     .after = "v_mov_b32 v3, s8",
     .check = "waits",
     .text = "no s_wait_kmcnt 0 since"},
    {.name = "ScalarLoadsComeInAnyOrder",
     .before = "s_load_b32 s8, s[0:1], 0x0\ns_load_b32 s9, s[0:1], 0x4\ns_wait_kmcnt 0x1",
     .missing = "s_wait_kmcnt 0x0",
     .after = "v_mov_b32 v3, s8",
     .check = "waits",
     .text = "no s_wait_kmcnt 0 since"},
    {.name = "BothCountersAtOnce",
     .before = "ds_store_b32 v1, v1\nds_load_b32 v2, v1\nglobal_load_b32 v3, v1, s[6:7]\ns_wait_loadcnt_dscnt 0x1",
     .missing = "s_wait_loadcnt_dscnt 0x0",
     .after = "v_add_nc_u32 v3, v3, v2",
     .check = "waits",
     .text = "reads v2 while 'ds_load_b32"},
    // Waits of older targets, in AMD's own copies: loads, and LDS with scalar memory.
    {.name = "OldWaitForALoad",
     .before = "global_load_b32 v2, v1, s[6:7]\ns_waitcnt lgkmcnt(0)",
     .missing = "s_waitcnt vmcnt(0)",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "no s_wait_loadcnt 0 or less since"},
    {.name = "OldWaitForLds",
     .before = "ds_store_b32 v1, v1\nds_load_b32 v2, v1\ns_waitcnt vmcnt(0)",
     .missing = "s_waitcnt lgkmcnt(0)",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "no s_wait_dscnt 0 or less since"},
    {.name = "OldWaitForAScalarLoad",
     .before = "s_load_b32 s8, s[0:1], 0x0\ns_waitcnt vmcnt(0)",
     .missing = "s_waitcnt lgkmcnt(0)",
     .after = "v_mov_b32 v3, s8",
     .check = "waits",
     .text = "no s_wait_kmcnt 0 since"},
    {.name = "Overwritten",
     .before = "global_load_b32 v2, v1, s[6:7]",
     .missing = "s_wait_loadcnt 0x0",
     .after = "v_mov_b32 v2, 5\nv_mov_b32 v3, v2",
     .check = "waits",
     .text = "overwrites v2 while"},
    // Loads may give their results in another order than they were issued in.
    {.name = "OverwrittenByALoad",
     .before = "global_load_b32 v2, v1, s[6:7]",
     .missing = "s_wait_loadcnt 0x0",
     .after = "global_load_b32 v2, v1, s[6:7] offset:4\ns_wait_loadcnt 0x0\nv_mov_b32 v3, v2",
     .check = "waits",
     .text = "overwrites v2 while 'global_load_b32 v2, v1, s[6:7]' at"},
    {.name = "HalfOverALoad",
     .before = "global_load_b32 v2, v1, s[6:7]",
     .missing = "s_wait_loadcnt 0x0",
     .after = "global_load_d16_hi_b16 v2, v1, s[6:7] offset:4\ns_wait_loadcnt 0x0\nv_mov_b32 v3, v2",
     .check = "waits",
     .text = "reads v2 while 'global_load_b32 v2, v1, s[6:7]' at"},
    {.name = "TheSameHalfTwice",
     .before = "v_mov_b32 v2, 0\nglobal_load_d16_b16 v2, v1, s[6:7]",
     .missing = "s_wait_loadcnt 0x0",
     .after = "global_load_d16_u8 v2, v1, s[6:7] offset:4\ns_wait_loadcnt 0x0\nv_mov_b32 v3, v2",
     .check = "waits",
     .text = "v2 while 'global_load_d16_b16"},
    {.name = "HalvesOfMemoryAndOfLds",
     .before = "v_mov_b32 v2, 0\nds_store_b32 v1, v1\nglobal_load_d16_b16 v2, v1, s[6:7]",
     .missing = "s_wait_loadcnt 0x0",
     .after = "ds_load_u16_d16_hi v2, v1\ns_wait_dscnt 0x0\ns_wait_loadcnt 0x0\nv_mov_b32 v3, v2",
     .check = "waits",
     .text = "v2 while 'global_load_d16_b16"},
    {.name = "HalvesReadTooEarly",
     .before = "v_mov_b32 v2, 0\nglobal_load_d16_b16 v2, v1, s[6:7]\nglobal_load_d16_hi_b16 v2, v1, s[6:7] offset:4\n"
               "s_wait_loadcnt 0x1",
     .missing = "s_wait_loadcnt 0x0",
     .after = "v_mov_b32 v3, v2",
     .check = "waits",
     .text = "reads v2 while 'global_load_d16_hi_b16"},
    {.name = "Permute",
     .before = "ds_bpermute_b32 v2, v1, v1\ns_wait_loadcnt 0x0",
     .missing = "s_wait_dscnt 0x0",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "reads v2 while 'ds_bpermute_b32"},
    {.name = "AtomicWithResult",
     .before = "global_atomic_add_u32 v2, v1, v1, s[6:7] th:TH_ATOMIC_RETURN\ns_wait_storecnt 0x0",
     .missing = "s_wait_loadcnt 0x0",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "no s_wait_loadcnt 0 or less since"},
    {.name = "FlatLoadOfMemory",
     .before = "v_mov_b32 v4, s6\nv_mov_b32 v5, s7\nflat_load_b32 v2, v[4:5]\ns_wait_dscnt 0x0",
     .missing = "s_wait_loadcnt 0x0",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "reads v2 while 'flat_load_b32"},
    {.name = "FlatLoadMayBeOfLds",
     .before = "v_mov_b32 v4, s6\nv_mov_b32 v5, s7\nflat_load_b32 v2, v[4:5]\ns_wait_loadcnt 0x0",
     .missing = "s_wait_dscnt 0x0",
     .after = "v_add_nc_u32 v3, 1, v2",
     .check = "waits",
     .text = "reads v2 while 'flat_load_b32"},
    {.name = "TransposingLoad",
     .before = "v_lshlrev_b32 v2, 2, v1\nglobal_load_tr_b128 v[4:7], v2, s[6:7]\ns_wait_dscnt 0x0",
     .missing = "s_wait_loadcnt 0x0",
     .after = "v_add_nc_u32 v3, v4, v7",
     .check = "waits",
     .text = "while 'global_load_tr_b128"},
    {.name = "ProductOfAProduct",
     .before = std::string(zeros) + "v_wmma_f32_16x16x16_f16 v[16:23], v[8:11], v[8:11], 0",
     .missing = "v_nop",
     .after = "v_wmma_f32_16x16x16_f16 v[24:31], v[16:19], v[8:11], 0\nv_nop\nv_mov_b32 v3, v24",
     .check = "hazards",
     .text = "multiplies the result of 'v_wmma_f32_16x16x16_f16"},
    {.name = "ScalarRewrittenByScalar",
     .before = "s_mov_b32 s8, 1\nv_mov_b32 v2, s8\ns_mov_b32 s8, 2",
     .missing = "s_wait_alu depctr_sa_sdst(0)",
     .after = "v_mov_b32 v3, s8",
     .check = "hazards",
     .text = "no s_wait_alu with sa_sdst 0 since"},
    {.name = "RewrittenByTheProgramCounter",
     .before = "s_mov_b32 s8, 1\nv_mov_b32 v2, s8\ns_getpc_b64 s[8:9]",
     .missing = "s_wait_alu depctr_sa_sdst(0)",
     .after = "s_and_b32 s10, s8, 0\nv_mov_b32 v3, s10",
     .check = "hazards",
     .text = "no s_wait_alu with sa_sdst 0 since"},
    {.name = "ScalarRewrittenByVector",
     .before = "s_mov_b32 s8, 1\nv_mov_b32 v2, s8\nv_readfirstlane_b32 s8, v2",
     .missing = "s_wait_alu depctr_va_sdst(0)",
     .after = "v_mov_b32 v3, s8",
     .check = "hazards",
     .text = "no s_wait_alu with va_sdst 0 since"},
    {.name = "MaskRewritten",
     .before = "s_mov_b32 vcc_lo, -1\nv_cndmask_b32 v2, 0, 1, vcc_lo\nv_cmp_eq_u32 vcc_lo, 0, v1",
     .missing = "s_wait_alu depctr_va_vcc(0)",
     .after = "v_cndmask_b32 v3, 0, 1, vcc_lo",
     .check = "hazards",
     .text = "no s_wait_alu with va_vcc 0 since"},
};

Assembled kernel_of(const Case& c, bool right) {
  return Assembled(KernelSource{.body = std::string(begin) + c.before + "\n" + (right ? c.missing : "s_nop 0") + "\n" +
                                        c.after + "\nglobal_store_b32 v1, v3, s[6:7]",
                                .target = "gfx1201",
                                .kernarg_bytes = 16,
                                .lds_bytes = 512});
}

class Rdna4Faults : public ::testing::TestWithParam<Case> {};

TEST_P(Rdna4Faults, TheMissingOneIsReported) {
  Buffer<std::uint32_t> memory(256, 7);
  const Checked checked = run_checked(kernel_of(GetParam(), false), {memory.address(), 0}, {.threads = 32});
  ASSERT_THAT(checked.names(), ElementsAre(GetParam().check)) << checked.text();
  EXPECT_THAT(checked.text(), HasSubstr(GetParam().text));
}
TEST_P(Rdna4Faults, WithItThereIsSilence) {
  for (const Arrival arrival : {Arrival::early, Arrival::late, Arrival::random}) {
    Buffer<std::uint32_t> memory(256, 7);
    const Checked checked =
        run_checked(kernel_of(GetParam(), true), {memory.address(), 0}, {.arrival = arrival, .threads = 32});
    EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
    EXPECT_TRUE(checked.status.ok()) << checked.status.text;
  }
}
INSTANTIATE_TEST_SUITE_P(Each, Rdna4Faults, ::testing::ValuesIn(cases),
                         [](const auto& info) { return info.param.name; });

// Two loads, each of its half of a register: neither waits for the other (LLVM leaves the wait out since
// llvm/llvm-project#194477; Triton 3.9 has it so).
TEST(Rdna4Waits, TwoHalvesOfARegisterAreLoadedWithoutAWaitBetween) {
  for (const auto& [low, high, wait] :
       {std::tuple{"global_load_d16_b16 v3, v1, s[6:7]", "global_load_d16_hi_b16 v3, v1, s[6:7] offset:2",
                   "s_wait_loadcnt 0x0"},
        {"ds_load_u16_d16 v3, v1", "ds_load_u16_d16_hi v3, v1 offset:2", "s_wait_dscnt 0x0"}}) {
    for (const bool high_first : {false, true}) {
      const Assembled kernel(KernelSource{
          .body = std::string(begin) + "v_mov_b32 v3, 0\nglobal_load_b32 v4, v1, s[6:7]\ns_wait_loadcnt 0x0\n" +
                  "ds_store_b32 v1, v4\ns_wait_dscnt 0x0\n" + (high_first ? high : low) + "\n" +
                  (high_first ? low : high) + "\n" + wait + "\nglobal_store_b32 v1, v3, s[6:7] offset:512",
          .target = "gfx1201",
          .kernarg_bytes = 16,
          .lds_bytes = 512});
      for (const Arrival arrival : {Arrival::early, Arrival::late, Arrival::random}) {
        Buffer<std::uint32_t> memory(256);
        for (unsigned i = 0; i < 32; ++i) memory[i] = 0x10000 * (2 * i + 1) + 2 * i;
        const Checked checked =
            run_checked(kernel, {memory.address(), 0}, {.arrival = arrival, .threads = 32, .rules = Rules::strict});
        EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
        for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(memory[128 + i], memory[i]) << i;
      }
    }
  }
}

// VCC's halves have one state in LLVM: a vector instruction that writes one of them takes the place of a scalar one
// that wrote the other. Strict rules ask for the other half's writer as well.
TEST(Rdna4Hazard, HalvesOfVccHaveOneStateUnlessRulesAreStrict) {
  struct Way {
    const char* wait;
    bool compiler;
    bool strict;
  };
  for (const auto& [wait, compiler, strict] :
       {Way{"s_nop 0", false, false}, Way{"s_wait_alu depctr_va_vcc(0)", true, false},
        Way{"s_wait_alu depctr_sa_sdst(0)", false, false},
        Way{"s_wait_alu depctr_va_vcc(0) depctr_sa_sdst(0)", true, true}, Way{"s_mov_b32 s8, vcc_lo", true, false}}) {
    const Assembled kernel(KernelSource{.body = std::string(begin) + R"(
  s_mov_b32 vcc_lo, -1
  v_cndmask_b32 v2, 0, 1, vcc_lo
  s_mov_b32 vcc_hi, 7
  v_cmp_ge_i32 vcc_lo, v2, v2
  )" + wait + R"(
  v_add_nc_u32 v3, vcc_hi, v2
  global_store_b32 v1, v3, s[6:7])",
                                        .target = "gfx1201",
                                        .kernarg_bytes = 16});
    for (const auto& [rules, right] : {std::pair{Rules::compiler, compiler}, {Rules::strict, strict}}) {
      SCOPED_TRACE(std::string(wait) + (rules == Rules::strict ? ", strict" : ", compiler"));
      Buffer<std::uint32_t> memory(64, 7);
      const Checked checked = run_checked(kernel, {memory.address(), 0}, {.threads = 32, .rules = rules});
      EXPECT_EQ(checked.findings.empty(), right) << checked.text();
      if (!right) EXPECT_THAT(checked.names(), ::testing::Each("hazards"));
    }
  }
}

TEST(Rdna4Hazard, APermuteRightBehindAMaskOfExec) {
  const Assembled kernel(KernelSource{.body = std::string(begin) + R"(
  s_mov_b32 s8, 0x76543210
  s_mov_b32 s9, 0xfedcba98
  v_mov_b32 v3, 0
  v_cmpx_le_u32 0, v1
  v_permlanex16_b32 v3, v1, s8, s9
  global_store_b32 v1, v3, s[6:7])",
                                      .target = "gfx1201",
                                      .kernarg_bytes = 16});
  Buffer<std::uint32_t> memory(64, 7);
  const Checked checked = run_checked(kernel, {memory.address(), 0}, {.threads = 32});
  ASSERT_THAT(checked.names(), ElementsAre("hazards"));
  EXPECT_THAT(checked.text(), HasSubstr("permutes lanes right behind 'v_cmpx_le_u32"));
}

// A scalar instruction that reads waits by itself for all that vector instructions write, whatever it reads; one that
// reads nothing does not.
TEST(Rdna4Hazard, AScalarReaderWaitsByItself) {
  for (const auto& [between, waits] :
       {std::pair{"s_add_co_i32 s10, s8, 1", true}, {"s_ashr_i32 s12, s13, 31", true}, {"s_mov_b32 s10, 1", false}}) {
    SCOPED_TRACE(between);
    const Assembled kernel(KernelSource{.body = std::string(begin) + R"(
  s_mov_b32 s13, 3
  s_mov_b32 s8, 1
  v_mov_b32 v2, s8
  v_readfirstlane_b32 s8, v2
  )" + between + R"(
  v_mov_b32 v3, s8
  global_store_b32 v1, v3, s[6:7])",
                                        .target = "gfx1201",
                                        .kernarg_bytes = 16});
    Buffer<std::uint32_t> memory(64, 7);
    const Checked checked = run_checked(kernel, {memory.address(), 0}, {.threads = 32});
    EXPECT_EQ(checked.findings.empty(), waits) << checked.text();
  }
}

// Accesses to buffers and scalar loads wait as s_wait_alu does; others do not. A scratch store between was taken for
// one that does.
TEST(Rdna4Hazard, OfAccessesToMemoryThoseToBuffersAndScalarLoadsWait) {
  for (const auto& [between, waits] : {std::pair{"buffer_load_b32 v4, v1, s[12:15], null offen", true},
                                       {"s_load_b32 s16, s[6:7], 0x0", true},
                                       {"global_load_b32 v4, v1, s[6:7]", false},
                                       {"global_store_b32 v1, v1, s[6:7]", false},
                                       {"scratch_store_b32 off, v1, off", false},
                                       {"ds_store_b32 v1, v1", false}}) {
    for (const char* reader : {"v_mov_b32 v3, s8", "s_add_co_i32 s9, s8, 1"}) {
      SCOPED_TRACE(std::string(between) + ", " + reader);
      const Assembled kernel(KernelSource{.body = std::string(begin) + R"(
  s_mov_b32 s12, s6
  s_and_b32 s13, s7, 0xffff
  s_mov_b32 s14, 0x80
  s_mov_b32 s15, 0x31004000
  v_mov_b32 v3, 0
  s_mov_b32 s8, 1
  v_mov_b32 v2, s8
  s_mov_b32 s8, 2
  )" + between + "\n" + reader + "\nglobal_store_b32 v1, v3, s[6:7] offset:512",
                                          .target = "gfx1201",
                                          .kernarg_bytes = 16,
                                          .lds_bytes = 512,
                                          .private_bytes = 16});
      Buffer<std::uint32_t> memory(256, 7);
      const Checked checked = run_checked(kernel, {memory.address(), 0}, {.threads = 32});
      EXPECT_EQ(checked.findings.empty(), waits) << checked.text();
      if (!waits) EXPECT_THAT(checked.text(), HasSubstr("no s_wait_alu with sa_sdst 0 since"));
    }
  }
}

// The neighbour's value through LDS: with the store in front of the signal all is well, behind it is a race.
KernelSource exchange(bool right) {
  const std::string store = "ds_store_b32 v1, v1\ns_wait_dscnt 0x0\n";
  return {.body = std::string(begin) + "v_xor_b32 v2, 0x80, v1\n" + (right ? store : "") + "s_barrier_signal -1\n" +
                  (right ? "" : store) +
                  "s_barrier_wait -1\nds_load_b32 v3, v2\ns_wait_dscnt 0x0\nglobal_store_b32 v1, v3, s[6:7]",
          .target = "gfx1201",
          .kernarg_bytes = 16,
          .lds_bytes = 512};
}
TEST(Rdna4Races, WhatStandsBetweenSignalAndWaitIsNotBehindTheBarrier) {
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    Buffer<std::uint32_t> memory(64, 7);
    const CheckedRun how{.checks = static_cast<std::uint32_t>(Check::races), .schedule = schedule, .threads = 64};
    EXPECT_THAT(run_checked(Assembled(exchange(true)), {memory.address(), 0}, how).findings, IsEmpty());
    const Checked checked = run_checked(Assembled(exchange(false)), {memory.address(), 0}, how);
    ASSERT_FALSE(checked.findings.empty());
    EXPECT_THAT(checked.names().front(), "races");
  }
}

// The wave that signals last finds that all have, but is not behind the barrier before it waits: the other waves may as
// well be late. Wave 1 stores, signals and ends; then comes wave 0, which reads what wave 1 stored.
TEST(Rdna4Races, WhoSignalsLastWaitsAsWell) {
  struct Way {
    const char* store;
    const char* wait;
    const char* load;
  };
  const Way lds = {"ds_store_b32 v1, v1", "s_wait_dscnt 0x0", "ds_load_b32 v3, v2"};
  const Way device = {"global_store_b32 v1, v1, s[6:7]", "s_wait_storecnt 0x0", "global_load_b32 v3, v2, s[6:7]"};
  for (const Way& way : {lds, device}) {
    for (const bool right : {true, false}) {
      SCOPED_TRACE(std::string(way.store) + (right ? ", waits" : ", does not wait"));
      const Assembled kernel(
          KernelSource{.body = std::string(begin) + "v_xor_b32 v2, 0x80, v1\nv_readfirstlane_b32 s8, v0\n" + way.store +
                               "\n" + way.wait + "\ns_barrier_signal -1\n" + (right ? "s_barrier_wait -1\n" : "") +
                               "s_cmp_lg_u32 s8, 0\ns_cbranch_scc1 .Lout\n" + way.load +
                               "\ns_wait_loadcnt_dscnt 0x0\nv_add_nc_u32 v3, v3, v3\n.Lout:",
                       .target = "gfx1201",
                       .kernarg_bytes = 16,
                       .lds_bytes = 512});
      Buffer<std::uint32_t> memory(64, 7);
      const CheckedRun how{
          .checks = static_cast<std::uint32_t>(Check::races), .schedule = Schedule::reverse, .threads = 64};
      const Checked checked = run_checked(kernel, {memory.address(), 0}, how);
      EXPECT_EQ(checked.findings.empty(), right) << checked.text();
    }
  }
}

TEST(Rdna4Uninitialised, BothHalvesOfAPairAreFollowed) {
  for (const bool right : {true, false}) {
    const Assembled kernel(
        KernelSource{.body = std::string(begin) + (right ? "v_mov_b32 v5, 3\n" : "") +
                             "v_dual_mov_b32 v2, v1 :: v_dual_add_nc_u32 v3, 1, v5\nglobal_store_b32 v2, v3, s[6:7]",
                     .target = "gfx1201",
                     .kernarg_bytes = 16});
    Buffer<std::uint32_t> memory(64, 7);
    const Checked checked = run_checked(kernel, {memory.address(), 0}, {.threads = 32});
    if (right) {
      EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
    } else {
      EXPECT_THAT(checked.names(), ElementsAre("uninitialised"));
    }
  }
}

TEST(Rdna4Uninitialised, ARowOfAMatrixSpoilsARowOfTheProduct) {
  // Lane 3 of A holds nothing: row 3, which is register 3 of the lower lanes.
  const auto kernel = [](unsigned stored) {
    return Assembled(KernelSource{.body = std::string(begin) + zeros + R"(
  v_mov_b32 v12, 0
  v_mov_b32 v13, 0
  v_mov_b32 v14, 0
  s_mov_b32 exec_lo, 0xfffffff7
  v_mov_b32 v15, 0
  s_mov_b32 exec_lo, -1
  v_wmma_f32_16x16x16_f16 v[16:23], v[12:15], v[8:11], 0
  global_store_b32 v1, v)" + std::to_string(16 + stored) +
                                          ", s[6:7]",
                                  .target = "gfx1201",
                                  .kernarg_bytes = 16});
  };
  Buffer<std::uint32_t> memory(64, 7);
  EXPECT_THAT(run_checked(kernel(2), {memory.address(), 0}, {.threads = 32}).findings, IsEmpty());
  EXPECT_THAT(run_checked(kernel(3), {memory.address(), 0}, {.threads = 32}).names(), ElementsAre("uninitialised"));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
