// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Missing waits: each kind of memory result, with and without the s_waitcnt that covers it.
#include <string>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct Case {
  std::string name;
  std::string before;  // the operation
  std::string wait;
  std::string after;  // what needs its result; ends with the answer in v3
  std::string text;   // part of the report
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class Waits : public ::testing::TestWithParam<Case> {};

constexpr const char* end = R"(
  global_store_dword v1, v3, s[6:7])";

const Case cases[] = {
    {.name = "GlobalLoad",
     .before = "global_load_dword v2, v1, s[6:7]",
     .wait = "s_waitcnt vmcnt(0)",
     .after = "v_add_u32 v3, 1, v2",
     .text = "reads v2 while 'global_load_dword v2, v1, s[6:7]'"},
    {.name = "SecondOfTwoLoads",
     .before =
         "global_load_dword v2, v1, s[6:7]\nglobal_load_dword v3, v1, s[6:7]\ns_waitcnt vmcnt(1)\nv_add_u32 v4, 1, v2",
     .wait = "s_waitcnt vmcnt(0)",
     .after = "v_add_u32 v3, 1, v3",
     .text = "reads v3 while"},
    {.name = "Overwritten",
     .before = "global_load_dword v2, v1, s[6:7]",
     .wait = "s_waitcnt vmcnt(0)",
     .after = "v_mov_b32 v2, 5\nv_mov_b32 v3, v2",
     .text = "overwrites v2 while"},
    {.name = "ScalarLoad",
     .before = "s_load_dword s8, s[0:1], 0x0",
     .wait = "s_waitcnt lgkmcnt(0)",
     .after = "v_mov_b32 v3, s8",
     .text = "reads s8 while 's_load_dword s8, s[0:1], 0x0'"},
    {.name = "ScalarLoadsComeInAnyOrder",
     .before = "s_load_dword s8, s[0:1], 0x0\ns_load_dword s9, s[0:1], 0x4\ns_waitcnt lgkmcnt(1)",
     .wait = "s_waitcnt lgkmcnt(0)",
     .after = "v_mov_b32 v3, s8",
     .text = "no s_waitcnt lgkmcnt(0) since"},
    {.name = "LdsRead",
     .before = "ds_write_b32 v1, v0\nds_read_b32 v2, v1",
     .wait = "s_waitcnt lgkmcnt(0)",
     .after = "v_add_u32 v3, 1, v2",
     .text = "reads v2 while 'ds_read_b32 v2, v1'"},
    {.name = "Permute",
     .before = "ds_bpermute_b32 v2, v1, v0",
     .wait = "s_waitcnt lgkmcnt(0)",
     .after = "v_add_u32 v3, 1, v2",
     .text = "reads v2 while 'ds_bpermute_b32 v2, v1, v0'"},
    {.name = "AtomicWithResult",
     .before = "global_atomic_add v2, v1, v0, s[6:7] sc0",
     .wait = "s_waitcnt vmcnt(0)",
     .after = "v_add_u32 v3, 1, v2",
     .text = "reads v2 while 'global_atomic_add v2, v1, v0, s[6:7] sc0'"},
    {.name = "FlatNeedsBothCounters",
     .before = "v_mov_b32 v4, s6\nv_mov_b32 v5, s7\nflat_load_dword v2, v[4:5]\ns_waitcnt vmcnt(0)",
     .wait = "s_waitcnt lgkmcnt(0)",
     .after = "v_add_u32 v3, 1, v2",
     .text = "reads v2 while 'flat_load_dword v2, v[4:5]'"},
    {.name = "LdsDmaReadByItsOwnWave",
     .before = "s_mov_b32 s8, s6\ns_mov_b32 s9, s7\ns_mov_b32 s10, 0x100\ns_mov_b32 s11, 0x27000\n"
               "s_mov_b32 m0, 0\ns_nop 0\nbuffer_load_dword v1, s[8:11], 0 offen lds",
     .wait = "s_waitcnt vmcnt(0)",
     .after = "ds_read_b32 v2, v1\ns_waitcnt lgkmcnt(0)\nv_add_u32 v3, 1, v2",
     .text = "reads LDS byte 0x0, which 'buffer_load_dword v1, s[8:11], 0 offen lds'"},
    {.name = "LdsReadBeforeItsOwnDmaOverwrites",
     .before = "s_mov_b32 s8, s6\ns_mov_b32 s9, s7\ns_mov_b32 s10, 0x100\ns_mov_b32 s11, 0x27000\n"
               "s_mov_b32 m0, 0\nds_write_b32 v1, v0\ns_waitcnt lgkmcnt(0)\nds_read_b32 v2, v1",
     .wait = "s_waitcnt lgkmcnt(0)",
     .after = "buffer_load_dword v1, s[8:11], 0 offen lds\ns_waitcnt vmcnt(0) lgkmcnt(0)\nv_add_u32 v3, 1, v2",
     .text = "loads into LDS byte 0x0, which 'ds_read_b32 v2, v1'"},
};

Assembled kernel_of(const Case& c, bool with_wait) {
  return Assembled(KernelSource{
      .body = std::string(prologue) + c.before + "\n" + (with_wait ? c.wait : "s_nop 0") + "\n" + c.after + end,
      .kernarg_bytes = 16,
      .lds_bytes = 256});
}

TEST_P(Waits, TheMissingOneIsReported) {
  Buffer<std::uint32_t> memory(64, 7);
  const Checked checked = run_checked(kernel_of(GetParam(), false), {memory.address(), 0});
  ASSERT_THAT(checked.names(), ElementsAre("waits"));
  EXPECT_THAT(checked.text(), HasSubstr(GetParam().text));
  EXPECT_EQ(checked.status.code, hip_error_launch_failure);
  EXPECT_THAT(checked.status.text, AllOf(HasSubstr("kernel k"), HasSubstr(": waits: ")));
}

TEST_P(Waits, WithItThereIsSilence) {
  for (const Arrival arrival : {Arrival::early, Arrival::late, Arrival::random, Arrival::unordered}) {
    Buffer<std::uint32_t> memory(64, 7);
    const Checked checked = run_checked(kernel_of(GetParam(), true), {memory.address(), 0}, {.arrival = arrival});
    EXPECT_THAT(checked.findings, IsEmpty()) << checked.text();
    EXPECT_TRUE(checked.status.ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Waits, ::testing::ValuesIn(cases), [](const auto& info) { return info.param.name; });

TEST(LateArrival, GivesOldDataWhenNobodyWaits) {
  const Assembled kernel(std::string(prologue) +
                         "v_mov_b32 v2, 99\nglobal_load_dword v2, v1, s[6:7]\nv_mov_b32 v3, v2" + end);
  Buffer<std::uint32_t> memory(64, 7);
  EXPECT_TRUE(run_checked(kernel, {memory.address()}, {.checks = 0, .arrival = Arrival::late}).status.ok());
  EXPECT_EQ(memory[5], 99u);
  Buffer<std::uint32_t> again(64, 7);
  EXPECT_TRUE(run_checked(kernel, {again.address()}, {.checks = 0, .arrival = Arrival::early}).status.ok());
  EXPECT_EQ(again[5], 7u);
}

TEST(LateArrival, TheEndOfTheWaveCompletesEverything) {
  const Assembled kernel(std::string(prologue) + "global_store_dword v1, v0, s[6:7]");
  Buffer<std::uint32_t> memory(64, 7);
  EXPECT_TRUE(run_checked(kernel, {memory.address()}).status.ok());
  EXPECT_EQ(memory[63], 63u);
}

// Stores keep their data and addresses although the registers change before they happen.
TEST(LateArrival, OperationsRememberTheirRegisters) {
  const Assembled kernel(std::string(prologue) + R"(
  v_mov_b32 v2, v1
  v_mov_b32 v3, v0
  s_mov_b64 exec, 0xff
  global_store_dword v2, v3, s[6:7]
  s_mov_b64 exec, -1
  v_mov_b32 v2, 0
  v_mov_b32 v3, 77
  s_waitcnt vmcnt(0))");
  Buffer<std::uint32_t> memory(64, 5);
  EXPECT_TRUE(run_checked(kernel, {memory.address()}).status.ok());
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(memory[i], i < 8 ? i : 5u);
}

// One register as address and as data: the late store gives it back what it was changed to meanwhile.
TEST(LateArrival, OneRegisterTwice) {
  const Assembled kernel(std::string(prologue) + R"(
  global_store_dword v1, v1, s[6:7]
  v_mov_b32 v1, 256
  s_waitcnt vmcnt(0)
  v_mov_b32 v2, 1
  s_mov_b64 exec, 1
  global_store_dword v1, v2, s[6:7])");
  Buffer<std::uint32_t> memory(65, 1000);
  EXPECT_TRUE(run_checked(kernel, {memory.address()}).status.ok());
  for (unsigned i = 0; i < 65; ++i) EXPECT_EQ(memory[i], i < 64 ? 4 * i : 1U);
}

// A load over its own address register, with lanes off: only the active ones change.
TEST(LateArrival, LoadsOverTheirOwnAddress) {
  const Assembled kernel(std::string(prologue) + R"(
  s_mov_b64 exec, 0xf0f0
  global_load_dword v1, v1, s[6:7]
  s_mov_b64 exec, -1
  s_waitcnt vmcnt(0)
  v_lshlrev_b32 v2, 2, v0
  global_store_dword v2, v1, s[6:7])");
  Buffer<std::uint32_t> memory(64, 1000);
  EXPECT_TRUE(run_checked(kernel, {memory.address()}).status.ok());
  for (unsigned i = 0; i < 64; ++i) EXPECT_EQ(memory[i], i < 16 && i % 8 >= 4 ? 1000u : 4 * i);
}

TEST(LateArrival, RandomArrivalsFollowTheSeed) {
  // The sum of what a wave saw before and after its loads arrived, per seed.
  const Assembled kernel(std::string(prologue) + R"(
  v_mov_b32 v2, 0
  v_mov_b32 v3, 0
  global_load_dword v2, v1, s[6:7]
  global_load_dword v4, v1, s[6:7]
  v_add_u32 v3, v3, v2)" +
                         end);
  std::vector<std::uint32_t> seen;
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    Buffer<std::uint32_t> memory(64, 7);
    EXPECT_TRUE(
        run_checked(kernel, {memory.address()}, {.checks = 0, .arrival = Arrival::random, .seed = seed}).status.ok());
    seen.push_back(memory[0]);
    Buffer<std::uint32_t> again(64, 7);
    run_checked(kernel, {again.address()}, {.checks = 0, .arrival = Arrival::random, .seed = seed});
    EXPECT_EQ(again[0], memory[0]);
  }
  EXPECT_THAT(seen, AllOf(::testing::Contains(0u), ::testing::Contains(7u)));
}

}  // namespace
}  // namespace wavejit::simgpu::testing
