// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Two waves and one byte of LDS.
#include <bit>
#include <format>
#include <string>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::HasSubstr;

// v1: 4 × thread in the workgroup of two waves; v2: the same place seen from the other wave.
constexpr const char* two_waves = R"(
  v_xor_b32 v2, 0x100, v1
)";

Assembled kernel(const std::string& body) {
  return Assembled(KernelSource{.body = std::string(prologue) + two_waves + body, .lds_bytes = 512});
}

void expect(const Assembled& kernel, bool race, const std::string& text = "") {
  expect_race(kernel, {.threads = 128}, race, text);
}

TEST(Races, WrittenThenReadWithoutABarrier) {
  expect(kernel("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"), true,
         "LDS byte");
}
TEST(Races, ABarrierBetweenThemIsEnough) {
  expect(kernel("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"),
         false);
}
TEST(Races, ABarrierDoesNotWaitForWrites) {
  expect(kernel("ds_write_b32 v1, v0\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"), true,
         "a barrier does not order what is on its way");
}
TEST(Races, ReadThenOverwritten) {
  expect(kernel("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\n"
                "ds_write_b32 v1, v3\ns_waitcnt lgkmcnt(0)"),
         true);
}
TEST(Races, ReadThenOverwrittenBehindABarrier) {
  expect(kernel("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\n"
                "s_barrier\nds_write_b32 v1, v3\ns_waitcnt lgkmcnt(0)"),
         false);
}
TEST(Races, ReadsStillOnTheirWayAtTheBarrier) {
  expect(kernel("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\n"
                "s_barrier\nds_write_b32 v1, v1\ns_waitcnt lgkmcnt(0)"),
         true);
}
TEST(Races, TwoWritersOfOneByte) { expect(kernel("v_mov_b32 v4, 8\nds_write_b8 v4, v0\ns_waitcnt lgkmcnt(0)"), true); }
// Waves that hold the same value all write it (Triton's code for what fewer waves would do for).
TEST(Races, TwoWritersOfOneValue) {
  const std::string value = "v_mov_b32 v4, 8\nv_mov_b32 v5, 7\nv_mov_b32 v6, 9\nv_mov_b32 v7, 7\n";
  for (const char* write : {"ds_write_b32 v4, v5", "ds_write_b8 v4, v5", "ds_write_b64 v4, v[6:7]",
                            "ds_write2_b32 v4, v5, v6 offset0:1 offset1:9", "ds_write_b16_d16_hi v4, v5"}) {
    expect(kernel(value + write + "\ns_waitcnt lgkmcnt(0)"), false);
  }
  // The half that is written is another one, and so is the second element.
  const std::string wave = value + "v_readfirstlane_b32 s8, v0\ns_lshl_b32 s8, s8, 10\nv_mov_b32 v6, s8\n";
  expect(kernel(wave + "ds_write_b16_d16_hi v4, v6\ns_waitcnt lgkmcnt(0)"), true);
  expect(kernel(wave + "ds_write2_b32 v4, v5, v6 offset0:1 offset1:9\ns_waitcnt lgkmcnt(0)"), true);
  // One of them reads it without a barrier: it may come before the other wave's.
  expect(kernel(value + "ds_write_b32 v4, v5\ns_waitcnt lgkmcnt(0)\nds_read_b32 v8, v4\ns_waitcnt lgkmcnt(0)"), true);
}
TEST(Races, NeighbouringBytesAreNoRace) {
  expect(kernel("v_lshrrev_b32 v4, 6, v0\nds_write_b8 v4, v0\ns_waitcnt lgkmcnt(0)"), false);
}
TEST(Races, AtomicsAmongThemselves) {
  expect(kernel("v_mov_b32 v4, 8\nds_add_u32 v4, v0\ns_waitcnt lgkmcnt(0)"), false);
}

// LDS DMA: the bytes are written between issue and the wait, in any of the barriers' intervals.
constexpr const char* descriptor = R"(
  s_mov_b32 s8, s6
  s_mov_b32 s9, s7
  s_mov_b32 s10, 0x200
  s_mov_b32 s11, 0x27000
  v_readfirstlane_b32 s12, v1
  s_mov_b32 m0, s12
  s_nop 4
  buffer_load_dword v1, s[8:11], 0 offen lds
)";
TEST(Races, DmaWaitedForByItsWaveAndABarrier) {
  expect(kernel(std::string(descriptor) + "s_waitcnt vmcnt(0)\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"),
         false);
}
TEST(Races, DmaReadByAnotherWaveBeforeItWasWaitedFor) {
  expect(kernel(std::string(descriptor) + "s_barrier\nds_read_b32 v3, v2\ns_waitcnt vmcnt(0) lgkmcnt(0)"), true,
         "buffer_load_dword");
}
TEST(Races, DmaReadInTheIntervalOfItsWait) {
  expect(kernel(std::string(descriptor) + "s_barrier\ns_waitcnt vmcnt(0)\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"),
         true);
}
TEST(Races, DmaOverWhatAnotherWaveStillReads) {
  expect(kernel("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\ns_barrier\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)\n" +
                std::string(descriptor) + "s_waitcnt vmcnt(0)"),
         true, "LDS byte");
}

// 64 lanes of four dwords each, by one instruction that another wave's dword lies in the middle of.
TEST(Races, OneDwordOfWhatAWaveTouchesTogether) {
  for (const int width : {1, 2, 4}) {
    const std::string name = "b" + std::to_string(32 * width);
    const std::string data = width == 1 ? "v8" : "v[8:" + std::to_string(7 + width) + "]";
    const std::string head = "s_mov_b32 s12, " + std::to_string(std::countr_zero(static_cast<unsigned>(width * 4))) +
                             "\nv_and_b32 v3, 63, v0\nv_lshlrev_b32 v4, s12, v3\nv_readfirstlane_b32 s13, v0\n"
                             "v_mov_b32 v5, " +
                             std::to_string(width * 4 * 37) + "\ns_cmp_eq_u32 s13, 0\n";
    const std::string write_one = "s_mov_b64 exec, 1\nds_write_b32 v5, v0\ns_waitcnt lgkmcnt(0)\ns_mov_b64 exec, -1\n";
    const std::string read = "ds_read_" + name + " " + data + ", v4\ns_waitcnt lgkmcnt(0)\n";
    const std::string write_all = "ds_write_" + name + " v4, " + data + "\ns_waitcnt lgkmcnt(0)\n";
    const auto run = [&](const std::string& one, const std::string& together) {
      Buffer<std::uint32_t> memory(1024, 7);
      return run_checked(Assembled(KernelSource{.body = std::string(prologue) + head + "s_cbranch_scc1 one\n" +
                                                        together + "s_endpgm\none:\n" + one,
                                                .lds_bytes = 1024}),
                         {memory.address()}, {.checks = static_cast<std::uint32_t>(Check::races), .threads = 128});
    };
    // Wave 0 comes first and has the one dword.
    for (const std::string& together : {read, write_all}) {
      const Checked checked = run(write_one, together);
      ASSERT_THAT(checked.names(), ::testing::ElementsAre("races")) << together;
      EXPECT_EQ(checked.findings.front().lane, 37);
      EXPECT_EQ(checked.findings.front().wave, 1);
      EXPECT_THAT(checked.text(), HasSubstr(std::format("LDS byte {:#x}, which wave 0 writes", width * 4 * 37)));
    }
  }
}

TEST(Races, BothSidesAreNamed) {
  Buffer<std::uint32_t> memory(128, 7);
  const Checked checked =
      run_checked(kernel("ds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nds_read_b32 v3, v2\ns_waitcnt lgkmcnt(0)"),
                  {memory.address()}, {.checks = static_cast<std::uint32_t>(Check::races), .threads = 128});
  ASSERT_FALSE(checked.findings.empty());
  const ReportedFinding& finding = checked.findings.front();
  // Wave 0 ran first and read what wave 1 then writes.
  EXPECT_EQ(finding.instruction, "ds_write_b32 v1, v0");
  EXPECT_EQ(finding.wave, 1);
  EXPECT_EQ(finding.source.instruction, "ds_read_b32 v3, v2");
  EXPECT_EQ(finding.source.wave, 0);
  EXPECT_THAT(checked.text(), HasSubstr("which wave 0 reads by 'ds_read_b32 v3, v2' at offset 0x24 of k"));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
