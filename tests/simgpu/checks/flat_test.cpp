// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS reached through flat pointers: as compilers do without optimisation, and where a function got the pointer.
#include <format>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// Two waves swap values. v[2:3] is each thread's own place in LDS as a flat pointer, v[4:5] the other wave's.
Assembled swap(const std::string& store, const std::string& between, const std::string& load) {
  return Assembled(KernelSource{.body = std::format(R"({}
  s_mov_b64 s[8:9], src_shared_base
  v_mov_b32 v2, v1
  v_mov_b32 v3, s9
  v_xor_b32 v4, 0x100, v1
  v_mov_b32 v5, s9
  {}
  {}
  {}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v6, s[6:7])",
                                                    prologue, store, between, load),
                                .lds_bytes = 512});
}
constexpr const char* flat_store = "flat_store_dword v[2:3], v0";
constexpr const char* local_store = "ds_write_b32 v1, v0";
constexpr const char* flat_load = "flat_load_dword v6, v[4:5]";
constexpr const char* local_load = "ds_read_b32 v6, v4";
constexpr const char* wait = "s_waitcnt vmcnt(0) lgkmcnt(0)";
constexpr const char* wait_and_barrier = "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_barrier";

TEST(FlatIntoLds, RacesWithEverythingThatReachesLds) {
  for (const char* store : {flat_store, local_store}) {
    for (const char* load : {flat_load, local_load}) {
      expect_race(swap(store, wait, load), {.threads = 128}, true, "LDS byte");
      expect_race(swap(store, wait_and_barrier, load), {.threads = 128}, false);
    }
  }
}

// A barrier does not order what is on its way; of a flat instruction both counters say when it is over.
TEST(FlatIntoLds, CountsUntilItWasWaitedFor) {
  expect_race(swap(flat_store, "s_barrier", flat_load), {.threads = 128}, true, "is on its way");
  expect_race(swap(flat_store, "s_waitcnt vmcnt(0)\ns_barrier", flat_load), {.threads = 128}, true, "is on its way");
}

// The wave that reads waits for nothing before the barrier behind which the other one writes again.
TEST(FlatIntoLds, LoadsOnTheirWayRaceToo) {
  const auto rewritten = [](const char* between) {
    return swap(flat_store, std::string(wait_and_barrier) + "\n" + flat_load + "\n" + between, local_store);
  };
  expect_race(rewritten("s_barrier"), {.threads = 128}, true, "LDS byte");
  expect_race(rewritten(wait_and_barrier), {.threads = 128}, false);
}

TEST(FlatIntoLds, AtomicsDoNotRaceWithAtomics) {
  const char* flat_add = "flat_atomic_add v[4:5], v0";
  expect_race(swap("ds_add_u32 v1, v0", wait, flat_add), {.threads = 128}, false);
  expect_race(swap(local_store, wait, flat_add), {.threads = 128}, true, "LDS byte");
}

TEST(FlatIntoLds, WhatWasNeverWrittenIsFollowed) {
  Buffer<std::uint32_t> out(128);
  const CheckedRun how{.checks = static_cast<std::uint32_t>(Check::uninitialised), .threads = 128};
  const Checked fresh = run_checked(swap("", wait, flat_load), {out.address()}, how);
  EXPECT_THAT(fresh.names(), AllOf(Not(IsEmpty()), Each(Eq("uninitialised"))));
  EXPECT_THAT(fresh.text(), HasSubstr("what is stored comes from memory that was never written, loaded by 'flat_load"));
  // Storing nothing is no fault; reading it is.
  const Checked copied =
      run_checked(swap("flat_store_dword v[2:3], v9", wait_and_barrier, flat_load), {out.address()}, how);
  EXPECT_THAT(copied.names(), AllOf(Not(IsEmpty()), Each(Eq("uninitialised"))));
  EXPECT_THAT(copied.text(), HasSubstr("what is stored comes from memory that was never written"));
  EXPECT_THAT(run_checked(swap(flat_store, wait_and_barrier, local_load), {out.address()}, how).findings, IsEmpty());
  EXPECT_THAT(run_checked(swap("flat_store_dword v[2:3], v9", "", "v_mov_b32 v6, 0"), {out.address()}, how).findings,
              IsEmpty());
}

// One instruction: the lower half of the wave points to LDS, the upper one to device memory.
constexpr const char* mixed = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v1, 2, v0
  s_mov_b64 s[8:9], src_shared_base
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v4, s7
  v_add_co_u32 v5, vcc, s6, v1
  s_nop 1
  v_addc_co_u32 v4, vcc, 0, v4, vcc
  v_mov_b32 v6, s9
  s_mov_b32 vcc_lo, -1
  s_mov_b32 vcc_hi, 0
  s_nop 4
  v_cndmask_b32 v2, v5, v1, vcc
  v_cndmask_b32 v3, v4, v6, vcc
  flat_store_dword v[2:3], v{}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  flat_load_dword v7, v[2:3]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v7, s[6:7] offset:256)";

TEST(FlatIntoLds, LanesOfOneInstructionGoWhereTheyPoint) {
  Buffer<std::uint32_t> memory(128);
  const Checked right =
      run_checked(Assembled(KernelSource{.body = std::format(mixed, 0), .lds_bytes = 256}), {memory.address()});
  EXPECT_THAT(right.findings, IsEmpty()) << right.text();
  for (std::uint32_t i = 0; i < 64; ++i) EXPECT_EQ(memory[64 + i], i);
  const Checked undefined =
      run_checked(Assembled(KernelSource{.body = std::format(mixed, 9), .lds_bytes = 256}), {memory.address()},
                  {.checks = static_cast<std::uint32_t>(Check::uninitialised)});
  ASSERT_THAT(undefined.findings, Not(IsEmpty()));
  // Lane 32 is the first that stores what it has not to device memory.
  EXPECT_EQ(undefined.findings.front().lane, 32);
  EXPECT_THAT(undefined.findings.front().instruction, HasSubstr("flat_store_dword"));
}

// A compiler that does not optimise keeps everything there, what holds nothing as well.
TEST(FlatIntoPrivateMemory, IsTakenAsWritten) {
  Buffer<std::uint32_t> out(64);
  const Checked checked = run_checked(Assembled(KernelSource{.body = std::string(prologue) + R"(
  s_mov_b64 s[10:11], src_private_base
  v_mov_b32 v2, 8
  v_mov_b32 v3, s11
  flat_store_dword v[2:3], v9
  s_waitcnt vmcnt(0) lgkmcnt(0)
  flat_load_dword v4, v[2:3]
  s_waitcnt vmcnt(0) lgkmcnt(0)
  global_store_dword v1, v4, s[6:7])",
                                                             .private_bytes = 32}),
                                      {out.address()});
  EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
}

}  // namespace
}  // namespace wavejit::simgpu::testing
