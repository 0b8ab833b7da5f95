// Two waves or two workgroups and one byte of device memory.
#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// s[6:7]: memory. v1: 4 × thread in the workgroup; v2: the same place seen from the other of two waves. s2: workgroup.
constexpr const char* other_wave = "v_xor_b32 v2, 0x100, v1\n";

Assembled kernel(const std::string& body) {
  return Assembled(KernelSource{.body = std::string(prologue) + other_wave + body});
}

struct Shape {
  uint32_t workgroups = 1;
  uint32_t threads = 128;
};

// In every schedule, on one thread and on several: who runs first must not decide whether a race is seen.
void expect(const Assembled& kernel, Shape shape, bool race, const std::string& text = "") {
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    for (const Arrival arrival : {Arrival::early, Arrival::late}) {
      Buffer<uint32_t> memory(1024, 7);
      const Checked checked = run_checked(kernel, {memory.address()},
                                          {.checks = static_cast<uint32_t>(Check::races),
                                           .arrival = arrival,
                                           .schedule = schedule,
                                           .workgroups = {shape.workgroups, 1, 1},
                                           .threads = shape.threads});
      if (race) {
        EXPECT_THAT(checked.names(), AllOf(Contains("races"), Each(Eq("races"))));
        EXPECT_THAT(checked.text(), HasSubstr(text));
      } else {
        EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
        EXPECT_TRUE(checked.status.ok()) << checked.status.text;
      }
    }
  }
}

constexpr Shape two_waves{.workgroups = 1, .threads = 128};
constexpr Shape two_workgroups{.workgroups = 2, .threads = 64};

TEST(MemoryRaces, WrittenThenReadByAnotherWave) {
  expect(kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_load_dword v3, v2, s[6:7]\n"
                "s_waitcnt vmcnt(0)"),
         two_waves, true, "of device memory");
}
TEST(MemoryRaces, ABarrierBetweenThemIsEnough) {
  expect(kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\ns_barrier\nglobal_load_dword v3, v2, s[6:7]\n"
                "s_waitcnt vmcnt(0)"),
         two_waves, false);
}
TEST(MemoryRaces, ABarrierDoesNotWaitForStores) {
  expect(kernel("global_store_dword v1, v0, s[6:7]\ns_barrier\nglobal_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)"),
         two_waves, true, "with no barrier in between that it was waited for before");
}
TEST(MemoryRaces, ReadThenOverwrittenByAnotherWave) {
  expect(kernel("global_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[6:7]"), two_waves,
         true);
}
TEST(MemoryRaces, ReadThenOverwrittenBehindABarrier) {
  expect(kernel("global_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)\ns_barrier\nglobal_store_dword v1, v3, s[6:7]"),
         two_waves, false);
}
TEST(MemoryRaces, ALoadOfSomethingElseStillOnItsWayDisturbsNobody) {
  expect(kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_load_dword v4, v1, s[6:7] offset:1024\n"
                "s_barrier\nglobal_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)"),
         two_waves, false);
}
TEST(MemoryRaces, WhatAWaveDoesAloneIsItsOwn) {
  expect(kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_load_dword v3, v1, s[6:7]\n"
                "s_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[6:7]"),
         two_waves, false);
}

TEST(MemoryRaces, TwoWorkgroupsWriteTheSame) {
  expect(kernel("global_store_dword v1, v0, s[6:7]"), two_workgroups, true,
         "in the same launch: nothing orders the two");
}
TEST(MemoryRaces, OneWorkgroupReadsWhatAnotherWrites) {
  // Workgroup 0 writes 4 × lane, workgroup 1 reads it.
  expect(kernel("s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 write\nglobal_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(0)\n"
                "s_endpgm\nwrite:\nglobal_store_dword v1, v0, s[6:7]"),
         two_workgroups, true, "in the same launch");
}
TEST(MemoryRaces, ManyWorkgroupsReadAndTheLastOneWrites) {
  // The writer has read it too, so that it is the last of the readers in some orders.
  expect(kernel("global_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(0)\ns_cmp_eq_u32 s2, 3\ns_cbranch_scc0 over\n"
                "global_store_dword v1, v3, s[6:7]\nover:"),
         {.workgroups = 4, .threads = 64}, true);
}
TEST(MemoryRaces, ReadersAmongThemselves) {
  expect(kernel("global_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(0)"), {.workgroups = 4, .threads = 128}, false);
}
TEST(MemoryRaces, AtomicsAmongThemselves) {
  expect(kernel("global_atomic_add v1, v0, s[6:7]\ns_waitcnt vmcnt(0)"), two_workgroups, false);
}
TEST(MemoryRaces, AnAtomicAndAPlainStore) {
  expect(kernel("s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 plain\nglobal_atomic_add v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\n"
                "s_endpgm\nplain:\nglobal_store_dword v1, v0, s[6:7]"),
         two_workgroups, true);
}
TEST(MemoryRaces, NeighbouringBytesAreNoRace) {
  // Byte 2 × lane of workgroup 0, the one behind it of workgroup 1.
  expect(kernel("v_lshlrev_b32 v4, 1, v0\nv_add_u32 v4, s2, v4\nglobal_store_byte v4, v0, s[6:7]"), two_workgroups,
         false);
}
TEST(MemoryRaces, OneByteOfTwoStores) {
  // Bytes 2 and 3 of each dword by workgroup 0, byte 3 by workgroup 1.
  expect(kernel("s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 two\nglobal_store_byte v1, v0, s[6:7] offset:3\ns_endpgm\ntwo:\n"
                "global_store_short v1, v0, s[6:7] offset:2"),
         two_workgroups, true);
}
// Registers of an access: one, or a pair.
std::string data(const std::string& access, int first) {
  const std::string name = std::to_string(first);
  return access == "dwordx2" ? "v[" + name + ":" + std::to_string(first + 1) + "]" : "v" + name;
}
// Workgroups on several threads of the host: a race of the kernel must not be one of the simulator's own (which
// ThreadSanitizer sees, in one run of many when two workgroups are all there are).
TEST(MemoryRaces, OfTheKernelAreNoneOfTheHost) {
  constexpr Shape crowd{.workgroups = 256, .threads = 64};
  for (const std::string access : {"byte", "short", "dword", "dwordx2"}) {
    for (const int misplaced : {0, 1, 2}) {
      const std::string offset = " offset:" + std::to_string(misplaced);
      const std::string load = access == "byte" || access == "short" ? "global_load_u" : "global_load_";
      expect(
          kernel("global_store_" + access + " v1, " + data(access, 2) + ", s[6:7]" + offset + "\ns_waitcnt vmcnt(0)\n" +
                 load + access + " " + data(access, 4) + ", v1, s[6:7]" + offset + "\ns_waitcnt vmcnt(0)"),
          crowd, true);
    }
  }
}
TEST(MemoryRaces, LdsDmaReadsDeviceMemory) {
  expect(Assembled(KernelSource{.body = std::string(prologue) + other_wave +
                                        "s_mov_b32 m0, 0\ns_nop 4\ns_mov_b32 s8, s6\ns_mov_b32 s9, s7\n"
                                        "s_mov_b32 s10, 0x400\ns_mov_b32 s11, 0x27000\n"
                                        "buffer_load_dword v1, s[8:11], 0 offen lds\ns_waitcnt vmcnt(0)\n"
                                        "global_store_dword v2, v0, s[6:7]",
                                .lds_bytes = 512}),
         two_waves, true);
}
TEST(MemoryRaces, LaunchesAreInOrder) {
  const Assembled store = kernel("global_store_dword v1, v0, s[6:7]");
  Buffer<uint32_t> memory(1024, 7);
  for (int i = 0; i < 2; ++i) {
    const Checked checked = run_checked(store, {memory.address()},
                                        {.checks = static_cast<uint32_t>(Check::races), .workgroups = {1, 1, 1}});
    EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
  }
}

TEST(MemoryRaces, BothSidesAreNamed) {
  Buffer<uint32_t> memory(1024, 7);
  const Checked checked =
      run_checked(kernel("s_add_u32 s6, s6, 16\ns_addc_u32 s7, s7, 0\nglobal_store_dword v1, v0, s[6:7]"),
                  {memory.address()}, {.checks = static_cast<uint32_t>(Check::races), .workgroups = {1, 2, 1}});
  ASSERT_EQ(checked.findings.size(), 1U);
  const nlohmann::json& finding = checked.findings.front();
  EXPECT_EQ(finding["instruction"], "global_store_dword v1, v0, s[6:7]");
  EXPECT_EQ(finding["source"]["instruction"], "global_store_dword v1, v0, s[6:7]");
  EXPECT_EQ(finding["source"]["wave"], 0);
  // Either may have been first, and the other may overtake it in any lane; the two are told apart.
  EXPECT_NE(finding["source"]["workgroup"], finding["workgroup"]);
  EXPECT_THAT(checked.text(), HasSubstr(std::format("writes byte {:#x} of device memory",
                                                    memory.address() + 16 + 4 * finding["lane"].get<uint64_t>())));
}

// Loads and stores with a scope are atomic ones in the compilers' memory model; plain ones are not.
TEST(MemoryRaces, AtomicLoadsAndStoresDoNotRaceWithAtomics) {
  const std::string update = "v_mov_b32 v4, 0\nglobal_atomic_add v4, v0, s[6:7]\ns_waitcnt vmcnt(0)\n";
  expect(kernel(update + "global_load_dword v3, v4, s[6:7] sc1\ns_waitcnt vmcnt(0)"), two_workgroups, false);
  expect(kernel(update + "global_store_dword v4, v0, s[6:7] sc0 sc1\ns_waitcnt vmcnt(0)"), two_waves, false);
  expect(kernel(update + "global_load_dword v3, v4, s[6:7]\ns_waitcnt vmcnt(0)"), two_workgroups, true);
  // Many readers, and then an atomic of a workgroup that comes later.
  expect(kernel("v_mov_b32 v4, 0\nglobal_load_dword v3, v4, s[6:7] sc1\ns_waitcnt vmcnt(0)\ns_cmp_lt_u32 s2, 3\n"
                "s_cbranch_scc1 over\nglobal_atomic_add v4, v0, s[6:7]\nover:"),
         {.workgroups = 4, .threads = 64}, false);
  // With a plain store they race as ever.
  expect(kernel("v_mov_b32 v4, 0\nglobal_store_dword v4, v0, s[6:7]\ns_waitcnt vmcnt(0)\n"
                "global_load_dword v3, v4, s[6:7] sc1\ns_waitcnt vmcnt(0)"),
         two_workgroups, true);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
