// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two waves or two workgroups and one byte of device memory.
#include <algorithm>
#include <format>
#include <set>
#include <utility>

#include "checked.h"
#include "support/part.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

// s[6:7]: memory. v1: 4 × thread in the workgroup; v2: the same place seen from the other of two waves. s2: workgroup.
constexpr const char* other_wave = "v_xor_b32 v2, 0x100, v1\n";

Assembled kernel(const std::string& body) {
  return Assembled(KernelSource{.body = std::string(prologue) + other_wave + body});
}

constexpr CheckedRun two_waves{.threads = 128};
constexpr CheckedRun two_workgroups{.workgroups = {2, 1, 1}};

TEST(MemoryRaces, WrittenThenReadByAnotherWave) {
  expect_race(kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_load_dword v3, v2, s[6:7]\n"
                     "s_waitcnt vmcnt(0)"),
              two_waves, true, "of device memory");
}
TEST(MemoryRaces, ABarrierBetweenThemIsEnough) {
  expect_race(
      kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\ns_barrier\nglobal_load_dword v3, v2, s[6:7]\n"
             "s_waitcnt vmcnt(0)"),
      two_waves, false);
}
TEST(MemoryRaces, ABarrierDoesNotWaitForStores) {
  expect_race(
      kernel("global_store_dword v1, v0, s[6:7]\ns_barrier\nglobal_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)"),
      {.threads = 128, .rules = Rules::strict}, true, "with no barrier in between that it was waited for before");
}
TEST(MemoryRaces, ReadThenOverwrittenByAnotherWave) {
  expect_race(kernel("global_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[6:7]"),
              two_waves, true);
}
TEST(MemoryRaces, ReadThenOverwrittenBehindABarrier) {
  expect_race(
      kernel("global_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)\ns_barrier\nglobal_store_dword v1, v3, s[6:7]"),
      two_waves, false);
}
TEST(MemoryRaces, ALoadOfSomethingElseStillOnItsWayDisturbsNobody) {
  expect_race(
      kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_load_dword v4, v1, s[6:7] offset:1024\n"
             "s_barrier\nglobal_load_dword v3, v2, s[6:7]\ns_waitcnt vmcnt(0)"),
      two_waves, false);
}
TEST(MemoryRaces, WhatAWaveDoesAloneIsItsOwn) {
  expect_race(kernel("global_store_dword v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\nglobal_load_dword v3, v1, s[6:7]\n"
                     "s_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[6:7]"),
              two_waves, false);
}

TEST(MemoryRaces, TwoWorkgroupsWriteTheSamePlace) {
  expect_race(kernel("v_add_u32 v3, s2, v0\nglobal_store_dword v1, v3, s[6:7]"), two_workgroups, true,
              "in the same launch: nothing orders the two");
}
// All who find something write the same flag.
TEST(MemoryRaces, WhoWritesTheSameValueDoesNotRace) {
  struct Store {
    const char* text;
    const char* last;  // the register of its highest byte,
    unsigned bit;      // and where that one begins
  };
  const std::string value = "v_mov_b32 v4, 8\nv_mov_b32 v6, 7\nv_mov_b32 v7, 9\nv_mov_b32 v8, 7\nv_mov_b32 v9, 9\n";
  const std::string party = value + "v_readfirstlane_b32 s8, v0\ns_add_u32 s8, s8, s2\n";
  for (const CheckedRun& how : {two_waves, two_workgroups}) {
    for (const auto& [store, last, bit] :
         {Store{"global_store_dword v4, v6, s[6:7]", "v6", 24}, Store{"global_store_byte v4, v6, s[6:7]", "v6", 0},
          Store{"global_store_short v4, v6, s[6:7] offset:1", "v6", 8},
          Store{"global_store_dwordx4 v4, v[6:9], s[6:7]", "v9", 24},
          Store{"global_store_dwordx2 v4, v[6:7], s[6:7] offset:2", "v7", 24},
          Store{"global_store_short_d16_hi v4, v6, s[6:7]", "v6", 24}}) {
      SCOPED_TRACE(store);
      expect_race(kernel(value + store), how, false);
      CheckedRun strict = how;
      strict.rules = Rules::strict;
      expect_race(kernel(value + store), strict, true);
      // With the party's number in its highest byte, nobody's is like another's.
      expect_race(kernel(party + std::format("s_lshl_b32 s8, s8, {}\nv_xor_b32 {}, s8, {}\n", bit, last, last) + store),
                  how, true);
    }
    // Nor do two that agree in the one byte that both store; two that differ there do.
    const auto overlapping = [&](int other) {
      return kernel(value + std::format("v_mov_b32 v9, {}\nv_readfirstlane_b32 s8, v0\ns_add_u32 s8, s8, s2\n"
                                        "s_cmp_eq_u32 s8, 0\ns_cbranch_scc1 .Lfirst\n"
                                        "global_store_byte v4, v9, s[6:7] offset:1\ns_endpgm\n.Lfirst:\n"
                                        "v_mov_b32 v6, 0x607\nglobal_store_short v4, v6, s[6:7]",
                                        other));
    };
    expect_race(overlapping(6), how, false);
    expect_race(overlapping(7), how, true);
    // A wave that reads it with nothing in between may come before the other's store; an atomic's value nobody knows.
    expect_race(kernel(value + "global_store_dword v4, v6, s[6:7]\ns_waitcnt vmcnt(0)\n"
                               "global_load_dword v8, v4, s[6:7]\ns_waitcnt vmcnt(0)"),
                how, true);
    expect_race(kernel(party + "s_cmp_eq_u32 s8, 0\ns_cbranch_scc1 .Lfirst\nglobal_atomic_swap v4, v6, s[6:7]\n"
                               "s_endpgm\n.Lfirst:\nglobal_store_dword v4, v6, s[6:7]"),
                how, true);
  }
}
// Workgroups on several threads of the host store one value to places where nothing was stored before: of two stores
// that meet, none may compare its value with what lay there before both. They meet a few times in 900 launches.
TEST(MemoryRaces, WorkgroupsThatMeetStoreOneValue) {
  const CheckedRun crowd{.workgroups = {4, 1, 1}, .host_threads = 2};
  std::string stores;
  for (int part = 0; part < 4; ++part)
    stores += std::format("global_store_dword v1, v3, s[6:7] offset:{}\n", 256 * part);
  const Assembled one_value = kernel("v_mov_b32 v3, 9\n" + stores);
  for (int again = 0; again < 150; ++again) expect_race(one_value, crowd, false);
  expect_race(kernel("v_mov_b32 v3, s2\n" + stores), crowd, true);
}
// A value between two others' that is another: whoever runs it, on however many threads of the host.
TEST(MemoryRaces, OneOfManyWritesAnotherValue) {
  const std::string body =
      "v_mov_b32 v4, 8\nv_mov_b32 v5, {}\ns_cmp_eq_u32 s2, 5\ns_cbranch_scc0 .Lsame\n"
      "v_mov_b32 v5, 3\n.Lsame:\nglobal_store_dword v4, v5, s[6:7]";
  const CheckedRun crowd{.workgroups = {16, 1, 1}};
  for (const char* value : {"3", "0", "4"})
    expect_race(kernel(std::string(body).replace(body.find("{}"), 2, value)), crowd, *value != '3');
}
TEST(MemoryRaces, OneWorkgroupReadsWhatAnotherWrites) {
  // Workgroup 0 writes 4 × lane, workgroup 1 reads it.
  expect_race(kernel("s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 write\nglobal_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(0)\n"
                     "s_endpgm\nwrite:\nglobal_store_dword v1, v0, s[6:7]"),
              two_workgroups, true, "in the same launch");
}
TEST(MemoryRaces, ManyWorkgroupsReadAndTheLastOneWrites) {
  // The writer has read it too, so that it is the last of the readers in some orders.
  expect_race(kernel("global_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(0)\ns_cmp_eq_u32 s2, 3\ns_cbranch_scc0 over\n"
                     "global_store_dword v1, v3, s[6:7]\nover:"),
              {.workgroups = {4, 1, 1}}, true);
}
TEST(MemoryRaces, ReadersAmongThemselves) {
  expect_race(kernel("global_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(0)"), {.workgroups = {4, 1, 1}, .threads = 128},
              false);
}
TEST(MemoryRaces, AtomicsAmongThemselves) {
  expect_race(kernel("global_atomic_add v1, v0, s[6:7]\ns_waitcnt vmcnt(0)"), two_workgroups, false);
}
TEST(MemoryRaces, AnAtomicAndAPlainStore) {
  expect_race(kernel("s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 plain\nglobal_atomic_add v1, v0, s[6:7]\ns_waitcnt vmcnt(0)\n"
                     "s_endpgm\nplain:\nglobal_store_dword v1, v0, s[6:7]"),
              two_workgroups, true);
}
TEST(MemoryRaces, NeighbouringBytesAreNoRace) {
  // Byte 2 × lane of workgroup 0, the one behind it of workgroup 1.
  expect_race(kernel("v_lshlrev_b32 v4, 1, v0\nv_add_u32 v4, s2, v4\nglobal_store_byte v4, v0, s[6:7]"), two_workgroups,
              false);
}
TEST(MemoryRaces, OneByteOfTwoStores) {
  // Bytes 2 and 3 of each dword by workgroup 0, byte 3 by workgroup 1.
  expect_race(
      kernel("s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 two\nglobal_store_byte v1, v0, s[6:7] offset:3\ns_endpgm\ntwo:\n"
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
  constexpr CheckedRun crowd{.workgroups = {256, 1, 1}};
  for (const std::string access : {"byte", "short", "dword", "dwordx2"}) {
    for (const int misplaced : {0, 1, 2}) {
      const std::string offset = " offset:" + std::to_string(misplaced);
      const std::string load = access == "byte" || access == "short" ? "global_load_u" : "global_load_";
      expect_race(
          kernel("global_store_" + access + " v1, " + data(access, 2) + ", s[6:7]" + offset + "\ns_waitcnt vmcnt(0)\n" +
                 load + access + " " + data(access, 4) + ", v1, s[6:7]" + offset + "\ns_waitcnt vmcnt(0)"),
          crowd, true);
    }
  }
}
TEST(MemoryRaces, LdsDmaReadsDeviceMemory) {
  expect_race(Assembled(KernelSource{.body = std::string(prologue) + other_wave +
                                             "s_mov_b32 m0, 0\ns_nop 4\ns_mov_b32 s8, s6\ns_mov_b32 s9, s7\n"
                                             "s_mov_b32 s10, 0x400\ns_mov_b32 s11, 0x27000\n"
                                             "buffer_load_dword v1, s[8:11], 0 offen lds\ns_waitcnt vmcnt(0)\n"
                                             "global_store_dword v2, v0, s[6:7]",
                                     .lds_bytes = 512}),
              two_waves, true);
}
TEST(MemoryRaces, LaunchesAreInOrder) {
  // What one wave of the first launch stores, the other wave of the second one stores again.
  const Assembled first = kernel("global_store_dword v1, v0, s[6:7]");
  const Assembled second = kernel("global_store_dword v2, v0, s[6:7]");
  Buffer<std::uint32_t> memory(1024, 7);
  for (const Assembled* each : {&first, &second}) {
    const Checked checked = run_checked(*each, {memory.address()}, two_waves);
    EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
    EXPECT_TRUE(checked.status.ok()) << checked.status.text;
  }
  EXPECT_EQ(memory[0], 64U);
}

// Two workgroups on two threads of the host, each round of which begins when both are there: one of the two sees the
// other, however close they are.
TEST(MemoryRaces, OfTheSameMomentAreSeen) {
  constexpr int rounds = 32;     // each may be reported from both sides, and 64 findings are kept
  constexpr int counters = 512;  // in bytes; behind the dwords that are raced for
  const auto meet = [](int round) {
    return std::format(
        "global_atomic_add v1, v5, s[6:7] offset:{0}\nmeet{1}:\n"
        "global_atomic_add v7, v1, v6, s[6:7] offset:{0} sc0\ns_waitcnt vmcnt(0)\nv_readfirstlane_b32 s8, v7\n"
        "s_cmp_lt_u32 s8, 2\ns_cbranch_scc1 meet{1}\n",
        counters + (4 * round), round);
  };
  std::string writers = "s_mov_b64 exec, 1\nv_mov_b32 v5, 1\nv_mov_b32 v6, 0\nv_mov_b32 v8, s2\n";
  std::string one_reads = writers;
  for (int round = 0; round < rounds; ++round) {
    const std::string store = std::format("global_store_dword v1, v8, s[6:7] offset:{}\n", 4 * round);
    writers += meet(round) + store;
    one_reads += meet(round) +
                 std::format(
                     "s_cmp_eq_u32 s2, 0\ns_cbranch_scc1 write{0}\n"
                     "global_load_dword v3, v1, s[6:7] offset:{1}\ns_branch over{0}\nwrite{0}:\n",
                     round, 4 * round) +
                 store + std::format("over{}:\n", round);
  }
  for (const std::string& body : {writers, one_reads}) {
    const Assembled both = kernel(body);
    const int launches = tests::sampled() ? 5 : 20;
    for (int launch = 0; launch < launches; ++launch) {
      Buffer<std::uint32_t> memory(1024, 0);
      const Checked checked = run_checked(both, {memory.address()},
                                          {.checks = static_cast<std::uint32_t>(Check::races),
                                           .arrival = Arrival::early,
                                           .workgroups = {2, 1, 1},
                                           .host_threads = 2});
      std::set<std::uint64_t> seen;
      for (const ReportedFinding& finding : checked.findings) {
        const std::string text = finding.text;
        seen.insert(std::stoull(text.substr(text.find("0x")), nullptr, 16) - memory.address());
      }
      EXPECT_EQ(seen.size(), rounds) << "launch " << launch;
    }
  }
}

TEST(MemoryRaces, BothSidesAreNamed) {
  Buffer<std::uint32_t> memory(1024, 7);
  const Checked checked = run_checked(
      kernel("s_add_u32 s6, s6, 16\ns_addc_u32 s7, s7, 0\nv_mov_b32 v2, s3\nglobal_store_dword v1, v2, s[6:7]"),
      {memory.address()}, {.checks = static_cast<std::uint32_t>(Check::races), .workgroups = {1, 2, 1}});
  ASSERT_EQ(checked.findings.size(), 1U);
  const ReportedFinding& finding = checked.findings.front();
  EXPECT_EQ(finding.instruction, "global_store_dword v1, v2, s[6:7]");
  EXPECT_EQ(finding.source.instruction, "global_store_dword v1, v2, s[6:7]");
  EXPECT_EQ(finding.source.wave, 0);
  // Either may have been first, and the other may overtake it in any lane; the two are told apart.
  EXPECT_NE(finding.source.workgroup, finding.workgroup);
  EXPECT_THAT(checked.text(),
              HasSubstr(std::format("writes byte {:#x} of device memory",
                                    memory.address() + 16 + 4 * static_cast<std::uint64_t>(finding.lane))));
}

// Lanes that read one behind the other, whole lines of memory and pieces of some: the one dword that another workgroup
// writes is found, and the lane that reads it.
TEST(MemoryRaces, OneDwordOfWhatAWaveReadsTogether) {
  const auto run = [](int begin, int written, bool reader_first) {
    Buffer<std::uint32_t> memory(1024, 7);
    const Checked checked = run_checked(
        kernel(std::format("v_lshlrev_b32 v4, 4, v0\ns_cmp_eq_u32 s2, {}\ns_cbranch_scc1 read\nv_mov_b32 v5, {}\n"
                           "s_mov_b64 exec, 1\nglobal_store_dword v5, v0, s[6:7]\ns_endpgm\nread:\n"
                           "global_load_dwordx4 v[8:11], v4, s[6:7] offset:{}\ns_waitcnt vmcnt(0)",
                           reader_first ? 0 : 1, written, begin)),
        {memory.address()},
        {.checks = static_cast<std::uint32_t>(Check::races), .workgroups = {2, 1, 1}, .host_threads = 1});
    const std::string place = std::format("byte {:#x} of device memory, which workgroup ({}, 0, 0)",
                                          memory.address() + static_cast<unsigned>(written), 0);
    return std::pair(checked, place);
  };
  for (const bool reader_first : {false, true}) {
    // From the beginning of a line, from within one, and from within a dword.
    for (const int begin : {0, 32, 48, 52, 66}) {
      const int last = begin + (16 * 64) - 1;
      for (const int offset : {begin, begin + 12, begin + 404, last}) {
        const int written = offset / 4 * 4;
        const auto [checked, place] = run(begin, written, reader_first);
        ASSERT_THAT(checked.names(), ::testing::ElementsAre("races")) << begin << ' ' << written;
        if (begin % 4 == 0) EXPECT_THAT(checked.text(), HasSubstr(place));
        const int lane = checked.findings.front().lane;
        EXPECT_EQ(lane, reader_first ? 0 : (std::max(written, begin) - begin) / 16) << begin << ' ' << written;
      }
      for (const int written : {(begin / 4 * 4) - 4, (last / 4 * 4) + 4}) {
        if (written < 0) continue;
        const auto [checked, place] = run(begin, written, reader_first);
        EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
      }
    }
  }
}
// One wave reads the dwords as whole lines, another reads them one by one; each order of the two waves is tested.
TEST(MemoryRaces, ReadersOfLinesAndOfDwords) {
  for (const int reader : {0, 1}) {
    const std::string first =
        reader == 0 ? "global_load_dwordx4 v[8:11], v4, s[6:7]" : "global_load_ubyte v8, v5, s[6:7]";
    const std::string second =
        reader == 0 ? "global_load_ubyte v8, v5, s[6:7]" : "global_load_dwordx4 v[8:11], v4, s[6:7]";
    const std::string body = "v_lshlrev_b32 v4, 4, v0\nv_mov_b32 v5, 400\n" + first +
                             "\ns_waitcnt vmcnt(0)\ns_barrier\n" + second +
                             "\ns_waitcnt vmcnt(0)\ns_cmp_eq_u32 s2, 1\ns_cbranch_scc0 over\ns_mov_b64 exec, 1\n";
    expect_race(kernel(body + "global_store_byte v5, v0, s[6:7]\nover:"), two_workgroups, true);
    expect_race(kernel(body + "global_store_byte v5, v0, s[6:7] offset:3\nover:"), two_workgroups, true);
    expect_race(kernel(body + "global_store_byte v5, v0, s[6:7] offset:2048\nover:"), two_workgroups, false);
  }
}

// Loads and stores with a scope are atomic ones in the compilers' memory model; plain ones are not.
TEST(MemoryRaces, AtomicLoadsAndStoresDoNotRaceWithAtomics) {
  const std::string update = "v_mov_b32 v4, 0\nglobal_atomic_add v4, v0, s[6:7]\ns_waitcnt vmcnt(0)\n";
  expect_race(kernel(update + "global_load_dword v3, v4, s[6:7] sc1\ns_waitcnt vmcnt(0)"), two_workgroups, false);
  expect_race(kernel(update + "global_store_dword v4, v0, s[6:7] sc0 sc1\ns_waitcnt vmcnt(0)"), two_waves, false);
  expect_race(kernel(update + "global_load_dword v3, v4, s[6:7]\ns_waitcnt vmcnt(0)"), two_workgroups, true);
  // Many readers, and then an atomic of a workgroup that comes later.
  expect_race(kernel("v_mov_b32 v4, 0\nglobal_load_dword v3, v4, s[6:7] sc1\ns_waitcnt vmcnt(0)\ns_cmp_lt_u32 s2, 3\n"
                     "s_cbranch_scc1 over\nglobal_atomic_add v4, v0, s[6:7]\nover:"),
              {.workgroups = {4, 1, 1}}, false);
  // With a plain store they race as ever.
  expect_race(kernel("v_mov_b32 v4, 0\nglobal_store_dword v4, v0, s[6:7]\ns_waitcnt vmcnt(0)\n"
                     "global_load_dword v3, v4, s[6:7] sc1\ns_waitcnt vmcnt(0)"),
              two_workgroups, true);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
