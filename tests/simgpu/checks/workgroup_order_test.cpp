// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The last workgroup to arrive sums what all of them have written: right in several ways, and wrong in one thing each.
#include <string>
#include <vector>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::uint32_t workgroups = 4;
constexpr std::uint32_t threads = 128;  // two waves
constexpr std::size_t result_at = std::size_t{workgroups} * threads;
constexpr std::size_t counter_at = 768;

// The steps of a kernel, as LLVM writes them for release and acquire of agent scope.
struct Steps {
  std::string store = "global_store_dword v2, v3, s[6:7]";
  std::string each_wave = "s_waitcnt vmcnt(0)";  // behind its stores, before the barrier
  std::string release = "buffer_wbl2 sc1\ns_waitcnt vmcnt(0)";
  std::string arrive = "global_atomic_add v6, v4, v5, s[6:7] sc0";
  std::string acquire = "s_waitcnt vmcnt(0)\nbuffer_inv sc1";
  std::string last = "3";
  std::string each_merging_wave = {};
  std::string scope = {};  // of the loads of parts
  std::string reset = "v_mov_b32 v5, 0\nglobal_store_dword v4, v5, s[6:7]";
};

std::string body(const Steps& steps) {
  // v2: where the part goes, v3: a value, v4: the counter, v5: 1.
  std::string text = std::string(prologue) +
                     "s_lshl_b32 s8, s2, 9\nv_add_u32 v2, s8, v1\ns_mulk_i32 s2, 0x3e8\nv_add_u32 v3, s2, v0\n"
                     "v_mov_b32 v4, 0xc00\nv_mov_b32 v5, 1\nv_mov_b32 v7, 0\n";
  text += steps.store + "\n" + steps.each_wave + "\ns_barrier\n";
  text +=
      "v_lshrrev_b32 v20, 6, v0\ns_nop 0\nv_readfirstlane_b32 s10, v20\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 joined\n"
      "s_mov_b64 exec, 1\n";
  text += steps.release + "\n" + steps.arrive + "\n" + steps.acquire + "\ns_waitcnt vmcnt(0)\nds_write_b32 v7, v6\n";
  text += "s_waitcnt lgkmcnt(0)\ns_mov_b64 exec, -1\njoined:\ns_barrier\n";
  text += "ds_read_b32 v6, v7\ns_waitcnt lgkmcnt(0)\nv_readfirstlane_b32 s11, v6\ns_cmp_lg_u32 s11, " + steps.last +
          "\ns_cbranch_scc1 over\n" + steps.each_merging_wave + "\n";
  for (int part = 0; part < 4; ++part) {
    text += "global_load_dword v" + std::to_string(8 + part) + ", v1, s[6:7] offset:" + std::to_string(512 * part) +
            steps.scope + "\n";
  }
  text +=
      "s_waitcnt vmcnt(0)\nv_add_u32 v8, v8, v9\nv_add3_u32 v8, v8, v10, v11\n"
      "global_store_dword v1, v8, s[6:7] offset:2048\n";
  text += "s_cmp_lg_u32 s10, 0\ns_cbranch_scc1 over\ns_mov_b64 exec, 1\n" + steps.reset + "\nover:";
  return text;
}

struct Case {
  std::string name;
  Steps steps;
  std::string text = {};  // of some finding; none: there is nothing to find
};

constexpr const char* not_released = "no buffer_wbl2 sc1 behind it was waited for before the atomic that this wave saw";
constexpr const char* not_acquired = "no buffer_inv sc1 lies between the atomic that this wave saw and this access";
constexpr const char* unordered = "nothing orders the two";

const std::vector<Case>& right_ones() {
  static const std::vector<Case> all = {
      {.name = "OneWaveReleasesForAll", .steps = {}},
      {.name = "TheBarrierDoesNotWaitForStores", .steps = {.each_wave = "s_nop 0"}},
      {.name = "EachWaveReleases", .steps = {.each_wave = "buffer_wbl2 sc1\ns_waitcnt vmcnt(0)", .release = "s_nop 0"}},
      {.name = "EachMergingWaveInvalidates",
       .steps = {.acquire = "s_waitcnt vmcnt(0)", .each_merging_wave = "buffer_inv sc1"}},
      {.name = "SystemScope",
       .steps = {.release = "buffer_wbl2 sc0 sc1\ns_waitcnt vmcnt(0)",
                 .arrive = "global_atomic_add v6, v4, v5, s[6:7] sc0 sc1",
                 .acquire = "s_waitcnt vmcnt(0)\nbuffer_inv sc0 sc1"}},
      {.name = "StoresPastTheCacheNeedNoWriteBack",
       .steps = {.store = "global_store_dword v2, v3, s[6:7] sc1", .release = "s_nop 0"}},
      {.name = "LoadsPastTheCacheNeedNoInvalidate", .steps = {.acquire = "s_nop 0", .scope = " sc1"}},
      {.name = "AnAtomicResets", .steps = {.reset = "v_mov_b32 v5, 0\nglobal_atomic_swap v4, v5, s[6:7]"}},
      {.name = "ACounterThatWraps",
       .steps = {.arrive = "v_mov_b32 v5, 3\nglobal_atomic_inc v6, v4, v5, s[6:7] sc0", .reset = "s_nop 0"}}};
  return all;
}

const std::vector<Case>& wrong_ones() {
  static const std::vector<Case> all = {
      {.name = "ReleaseLeftOut", .steps = {.release = "s_nop 0"}, .text = not_released},
      {.name = "ReleaseOfWorkgroupScope",
       .steps = {.release = "buffer_wbl2 sc0\ns_waitcnt vmcnt(0)"},
       .text = not_released},
      {.name = "WaitBeforeTheAtomicLeftOut", .steps = {.release = "buffer_wbl2 sc1"}, .text = not_released},
      {.name = "WriteBackBehindTheAtomic",
       .steps = {.release = "s_nop 0", .acquire = "buffer_wbl2 sc1\ns_waitcnt vmcnt(0)\nbuffer_inv sc1"},
       .text = not_released},
      {.name = "BehindABarrierOnlyAWriteBackStandsForOthersWaits",
       .steps = {.store = "global_store_dword v2, v3, s[6:7] sc1",
                 .each_wave = "s_nop 0",
                 .release = "s_waitcnt vmcnt(0)"},
       .text = "it was not waited for before the atomic that this wave saw"},
      {.name = "NontemporalStoresStayInTheCache",
       .steps = {.store = "global_store_dword v2, v3, s[6:7] nt", .release = "s_nop 0"},
       .text = not_released},
      {.name = "StoresOfWorkgroupScopeStayInTheCache",
       .steps = {.store = "global_store_dword v2, v3, s[6:7] sc0", .release = "s_nop 0"},
       .text = not_released},
      {.name = "AcquireLeftOut", .steps = {.acquire = "s_nop 0"}, .text = not_acquired},
      {.name = "AcquireOfWorkgroupScope",
       .steps = {.acquire = "s_waitcnt vmcnt(0)\nbuffer_inv sc0"},
       .text = not_acquired},
      {.name = "InvalidatedBeforeTheAtomicIsBack", .steps = {.acquire = "buffer_inv sc1"}, .text = not_acquired},
      {.name = "OneTooEarly", .steps = {.last = "2"}, .text = unordered},
      {.name = "ACounterInPlainStores",
       .steps = {.arrive = "global_load_dword v6, v4, s[6:7]\ns_waitcnt vmcnt(0)\nv_add_u32 v5, 1, v6\n"
                           "global_store_dword v4, v5, s[6:7]"},
       .text = unordered},
      {.name = "ACounterOfWorkgroupScope",
       .steps = {.arrive = "global_load_dword v6, v4, s[6:7] sc0\ns_waitcnt vmcnt(0)\nv_add_u32 v5, 1, v6\n"
                           "global_store_dword v4, v5, s[6:7] sc0"},
       .text = unordered}};
  return all;
}

// Memory starts at 0, so that no result depends on noise.
struct Memory {
  Buffer<std::uint32_t> words{1024, 0};
  std::vector<std::uint32_t> result() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < threads; ++i) all.push_back(words[result_at + i]);
    return all;
  }
  static std::vector<std::uint32_t> expected() {
    std::vector<std::uint32_t> all;
    for (std::uint32_t i = 0; i < threads; ++i) all.push_back((4 * i) + 6000);
    return all;
  }
};

Assembled kernel_of(const Steps& steps, const std::string& target) {
  return Assembled(KernelSource{.body = body(steps), .target = target, .lds_bytes = 4});
}

class WorkgroupOrder : public ::testing::TestWithParam<std::string> {
 protected:
  // In every schedule and order of arrival, with workgroups in turn and at once.
  template <typename Look>
  void each_way(Look&& look) const {
    for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
      for (const Arrival arrival : {Arrival::early, Arrival::late, Arrival::random}) {
        for (const std::uint32_t host_threads : {1U, 4U}) {
          look(CheckedRun{.arrival = arrival,
                          .schedule = schedule,
                          .workgroups = {workgroups, 1, 1},
                          .threads = threads,
                          .host_threads = host_threads});
        }
      }
    }
  }
};

TEST_P(WorkgroupOrder, RightKernelsHaveNoFinding) {
  for (const Case& one : right_ones()) {
    SCOPED_TRACE(one.name);
    const Assembled kernel = kernel_of(one.steps, GetParam());
    each_way([&](const CheckedRun& how) {
      Memory memory;
      for (int launch = 0; launch < 2; ++launch) {
        for (std::uint32_t i = 0; i < threads; ++i) memory.words[result_at + i] = 0;
        const Checked checked = run_checked(kernel, {memory.words.address()}, how);
        EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
        EXPECT_EQ(memory.result(), Memory::expected());
        EXPECT_EQ(memory.words[counter_at], 0U);
      }
    });
  }
}

TEST_P(WorkgroupOrder, EachFaultIsSeen) {
  for (const Case& one : wrong_ones()) {
    SCOPED_TRACE(one.name);
    const Assembled kernel = kernel_of(one.steps, GetParam());
    each_way([&](CheckedRun how) {
      how.checks = static_cast<std::uint32_t>(Check::races);
      Memory memory;
      const Checked checked = run_checked(kernel, {memory.words.address()}, how);
      ASSERT_THAT(checked.names(), Not(IsEmpty()));
      std::string all;
      for (const ReportedFinding& finding : checked.findings) {
        EXPECT_EQ(finding.check, "races");
        all += finding.text + "\n";
      }
      // Without a counter that counts, nobody need come last: the counter's own race is there whoever does.
      EXPECT_THAT(all, HasSubstr(one.text));
    });
  }
}

// What a lost reset does shows in the next launch: nobody comes last.
TEST_P(WorkgroupOrder, ACounterThatIsNotResetIsSeenInTheSecondLaunch) {
  const Assembled kernel = kernel_of({.reset = "s_nop 0"}, GetParam());
  Memory memory;
  const CheckedRun how{.workgroups = {workgroups, 1, 1}, .threads = threads};
  EXPECT_THAT(run_checked(kernel, {memory.words.address()}, how).findings, IsEmpty());
  EXPECT_EQ(memory.result(), Memory::expected());
  for (std::uint32_t i = 0; i < threads; ++i) memory.words[result_at + i] = 0;
  EXPECT_THAT(run_checked(kernel, {memory.words.address()}, how).findings, IsEmpty());
  EXPECT_EQ(memory.result(), std::vector<std::uint32_t>(threads, 0));
}

// The engine that translates runs what is not checked; what is checked it leaves to the other one.
TEST_P(WorkgroupOrder, BothEnginesAgree) {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.engine = Engine::compile;
  scope.set(settings);
  for (const Case& one : right_ones()) {
    SCOPED_TRACE(one.name);
    const Assembled kernel = kernel_of(one.steps, GetParam());
    for (const std::uint32_t checks : {0U, all_checks}) {
      Memory memory;
      const CheckedRun how{
          .checks = checks, .arrival = Arrival::early, .workgroups = {workgroups, 1, 1}, .threads = threads};
      EXPECT_THAT(run_checked(kernel, {memory.words.address()}, how).findings, IsEmpty());
      EXPECT_EQ(memory.result(), Memory::expected());
    }
  }
  for (const Case& one : wrong_ones()) {
    SCOPED_TRACE(one.name);
    Memory memory;
    const CheckedRun how{.arrival = Arrival::early, .workgroups = {workgroups, 1, 1}, .threads = threads};
    EXPECT_THAT(run_checked(kernel_of(one.steps, GetParam()), {memory.words.address()}, how).names(), Not(IsEmpty()));
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, WorkgroupOrder, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& target) { return target.param; });

// A message goes through a workgroup that only looks at it: 0 tells 1, 1 tells 2. Workgroup 2 may read what 0 wrote.
TEST(WorkgroupOrders, WhatIsKnownIsPassedOn) {
  const auto relay = [](const std::string& forward) {
    const std::string wait_for =
        ":\nglobal_load_dword v6, v7, s[6:7] offset:{} sc1\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s10, v6\n"
        "s_cmp_eq_u32 s10, 0\ns_cbranch_scc1 ";
    const auto poll = [&](const std::string& label, const std::string& offset) {
      std::string text = label + wait_for + label + "\nbuffer_inv sc1\n";
      return text.replace(text.find("{}"), 2, offset);
    };
    return Assembled(std::string(prologue) +
                     "v_mov_b32 v7, 0\nv_mov_b32 v5, 1\ns_cmp_eq_u32 s2, 1\ns_cbranch_scc1 one\n" +
                     "s_cmp_eq_u32 s2, 2\ns_cbranch_scc1 two\n" +
                     "global_store_dword v1, v0, s[6:7] offset:1024\nbuffer_wbl2 sc1\ns_waitcnt vmcnt(0)\n"
                     "global_store_dword v7, v5, s[6:7] sc1\ns_endpgm\n" +
                     poll("one", "0") + forward + "global_store_dword v7, v5, s[6:7] offset:4 sc1\ns_endpgm\n" +
                     poll("two", "4") + "global_load_dword v3, v1, s[6:7] offset:1024\ns_waitcnt vmcnt(0)\n" +
                     "global_store_dword v1, v3, s[6:7] offset:2048");
  };
  for (const std::uint32_t host_threads : {1U, 3U}) {
    for (const Arrival arrival : {Arrival::early, Arrival::late}) {
      Buffer<std::uint32_t> memory(1024, 0);
      const Checked checked = run_checked(relay("buffer_wbl2 sc1\ns_waitcnt vmcnt(0)\n"), {memory.address()},
                                          {.arrival = arrival, .workgroups = {3, 1, 1}, .host_threads = host_threads});
      EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
      EXPECT_EQ(memory[512 + 63], 63U);
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
