// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS DMA that lands in any order: a count says how many are on their way and not which.
#include <string>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// One wave loads eight tiles of 256 bytes each straight into LDS.
constexpr const char* eight_loads = R"(
  s_mov_b32 s8, s6
  s_mov_b32 s9, s7
  s_mov_b32 s10, 0x1000
  s_mov_b32 s11, 0x27000
  s_mov_b32 m0, 0
  s_nop 0
  buffer_load_dword v1, s[8:11], 0 offen lds
  buffer_load_dword v1, s[8:11], 0 offen offset:256 lds
  buffer_load_dword v1, s[8:11], 0 offen offset:512 lds
  buffer_load_dword v1, s[8:11], 0 offen offset:768 lds
  buffer_load_dword v1, s[8:11], 0 offen offset:1024 lds
  buffer_load_dword v1, s[8:11], 0 offen offset:1280 lds
  buffer_load_dword v1, s[8:11], 0 offen offset:1536 lds
  buffer_load_dword v1, s[8:11], 0 offen offset:1792 lds
)";
// Stores what lies in the first tile.
std::string first_tile_behind(const std::string& wait) {
  return std::string(prologue) + eight_loads + wait +
         "\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[6:7] offset:2048\n";
}

struct Left {
  Checked checked;
  std::uint32_t value;
};
Left run(const std::string& body, CheckedRun how) {
  Buffer<std::uint32_t> memory(1024, 7);
  Checked checked = run_checked(Assembled(KernelSource{.body = body, .lds_bytes = 2048}), {memory.address()}, how);
  return {std::move(checked), memory[512]};
}

TEST(UnorderedArrival, ACountOfLdsDmaSaysNotWhichHaveLanded) {
  const std::string counted = first_tile_behind("s_waitcnt vmcnt(7)");
  EXPECT_THAT(run(counted, {.arrival = Arrival::late}).checked.findings, IsEmpty());
  const Checked checked = run(counted, {.arrival = Arrival::unordered}).checked;
  ASSERT_THAT(checked.names(), AllOf(Contains("waits"), Each("waits")));
  EXPECT_THAT(checked.text(), HasSubstr("reads LDS byte 0x0, which 'buffer_load_dword v1, s[8:11], 0 offen lds'"));
  // Without checks it shows in what the kernel leaves: the newest has landed, and the first tile is still noise.
  EXPECT_EQ(run(counted, {.checks = 0, .arrival = Arrival::late}).value, 7U);
  EXPECT_NE(run(counted, {.checks = 0, .arrival = Arrival::unordered}).value, 7U);
}

TEST(UnorderedArrival, ZeroWaitsForAllOfThem) {
  for (const std::uint32_t checks : {0U, all_checks}) {
    const Left left = run(first_tile_behind("s_waitcnt vmcnt(0)"), {.checks = checks, .arrival = Arrival::unordered});
    EXPECT_THAT(left.checked.findings, IsEmpty()) << left.checked.text();
    EXPECT_EQ(left.value, 7U);
  }
}

// What goes to registers comes in order, however the loads beside it land.
TEST(UnorderedArrival, LoadsIntoRegistersKeepTheirOrder) {
  const std::string loads = std::string(prologue) +
                            "global_load_dword v4, v1, s[6:7]\nglobal_load_dword v5, v1, s[6:7] offset:256\n" +
                            eight_loads + "s_waitcnt vmcnt(";
  const std::string end = "\ns_waitcnt vmcnt(0)\nglobal_store_dword v1, v3, s[6:7] offset:2048\n";
  const auto found = [&](int count, const std::string& use) {
    return run(loads + std::to_string(count) + ")\n" + use + end, {.arrival = Arrival::unordered}).checked.names();
  };
  EXPECT_THAT(found(1, "v_mov_b32 v3, v4"), IsEmpty());
  EXPECT_THAT(found(1, "v_mov_b32 v3, v5"), Contains("waits"));
  EXPECT_THAT(found(2, "v_mov_b32 v3, v4"), Contains("waits"));
}

// A loop that never waits for all of its loads holds no more of them than the counter does.
TEST(UnorderedArrival, ALoopThatNeverWaitsForAllEnds) {
  const Left left = run(std::string(prologue) + "s_movk_i32 s20, 200\n.Lagain:\n" + eight_loads +
                            "s_waitcnt vmcnt(4)\ns_sub_u32 s20, s20, 1\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 .Lagain\n"
                            "s_waitcnt vmcnt(0)\nds_read_b32 v3, v1\ns_waitcnt lgkmcnt(0)\n"
                            "global_store_dword v1, v3, s[6:7] offset:2048\n",
                        {.arrival = Arrival::unordered});
  EXPECT_THAT(left.checked.findings, IsEmpty()) << left.checked.text();
  EXPECT_EQ(left.value, 7U);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
