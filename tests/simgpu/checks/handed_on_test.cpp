// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values that the waves of a workgroup hand on through device memory. A compute unit's vector memory is in order, so
// LLVM puts no wait for it in front of a barrier, unless waves may run on several compute units.
#include <format>
#include <string>
#include <vector>

#include "checked.h"

namespace wavejit::simgpu::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr unsigned threads = 256;
constexpr std::uint32_t races = static_cast<std::uint32_t>(Check::races);
constexpr const char* tg_split = "  .amdhsa_tg_split 1";

// s[6:7]: memory; v1: 4 × thread; v2: the same place seen from the wave behind this one, of four. What clang 22 makes
// of HIP: no vmcnt between the access and the barrier.
constexpr const char* others_place = R"(
  v_add_u32 v2, 0x100, v1
  v_and_b32 v2, 0x3ff, v2
)";

struct HandOn {
  std::string name;
  std::string body;
  std::vector<std::uint32_t> expected;  // from byte 2048 on
};
void PrintTo(const HandOn& which, std::ostream* out) { *out << which.name; }

std::vector<std::uint32_t> each(std::uint32_t (*value)(std::uint32_t thread)) {
  std::vector<std::uint32_t> all(threads);
  for (std::uint32_t i = 0; i < threads; ++i) all[i] = value(i);
  return all;
}

// Memory begins as 0, 1, 2, …
const HandOn hand_ons[] = {
    {"StoredThenLoaded",
     "v_mul_u32_u24 v3, 3, v0\nglobal_store_dword v1, v3, s[6:7]\ns_barrier\nglobal_load_dword v4, v2, s[6:7]\n"
     "s_waitcnt vmcnt(0)\nglobal_store_dword v1, v4, s[6:7] offset:2048",
     each([](std::uint32_t i) { return 3 * ((i + 64) % threads); })},
    {"LoadedThenOverwritten",
     "v_mov_b32 v3, 5\nglobal_load_dword v4, v1, s[6:7]\ns_barrier\nglobal_store_dword v2, v3, s[6:7]\n"
     "s_waitcnt vmcnt(1)\nglobal_store_dword v1, v4, s[6:7] offset:2048",
     each([](std::uint32_t i) { return i; })},
    {"StoredThenOverwritten",
     "v_mov_b32 v3, 5\nglobal_store_dword v1, v0, s[6:7] offset:2048\ns_barrier\n"
     "global_store_dword v2, v3, s[6:7] offset:2048",
     each([](std::uint32_t) { return 5U; })},
    {"StoredThenAddedTo",
     "v_mov_b32 v3, 5\nglobal_store_dword v1, v0, s[6:7] offset:2048\ns_barrier\n"
     "global_atomic_add v2, v3, s[6:7] offset:2048",
     each([](std::uint32_t i) { return i + 5; })},
    {"ThroughFlatPointers",
     "v_mul_u32_u24 v3, 3, v0\nv_mov_b32 v7, s7\nv_add_co_u32 v6, vcc, s6, v1\ns_nop 1\n"
     "v_addc_co_u32 v7, vcc, 0, v7, vcc\nv_mov_b32 v9, s7\nv_add_co_u32 v8, vcc, s6, v2\ns_nop 1\n"
     "v_addc_co_u32 v9, vcc, 0, v9, vcc\nflat_store_dword v[6:7], v3\ns_waitcnt lgkmcnt(0)\ns_barrier\n"
     "flat_load_dword v4, v[8:9]\ns_waitcnt vmcnt(0) lgkmcnt(0)\nglobal_store_dword v1, v4, s[6:7] offset:2048",
     each([](std::uint32_t i) { return 3 * ((i + 64) % threads); })},
};

Assembled kernel(const std::string& body, const std::string& target = "gfx942", const std::string& directives = "",
                 unsigned lds_bytes = 0) {
  return Assembled(KernelSource{.body = std::string(prologue) + others_place + body,
                                .target = target,
                                .lds_bytes = lds_bytes,
                                .directives = directives});
}

// What the kernel leaves, and what was found.
struct Left {
  std::vector<std::uint32_t> values;
  Checked checked;
};
Left run(const Assembled& kernel, CheckedRun how) {
  Buffer<std::uint32_t> memory(1024);
  for (std::uint32_t i = 0; i < threads; ++i) memory[i] = i;
  how.threads = threads;
  Left left{.values = {}, .checked = run_checked(kernel, {memory.address()}, how)};
  const std::vector<std::uint32_t> all = memory.copy();
  left.values.assign(all.begin() + 512, all.begin() + 512 + threads);
  return left;
}

class HandedOn : public ::testing::TestWithParam<HandOn> {};

TEST_P(HandedOn, IsRightInEveryOrder) {
  for (const char* target : {"gfx942", "gfx950"}) {
    const Assembled right = kernel(GetParam().body, target);
    for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random, Schedule::timed}) {
      for (const Arrival arrival : {Arrival::early, Arrival::late, Arrival::random}) {
        SCOPED_TRACE(
            std::format("{} schedule {} arrival {}", target, static_cast<int>(schedule), static_cast<int>(arrival)));
        const Left left = run(right, {.checks = races, .arrival = arrival, .schedule = schedule, .seed = 3});
        EXPECT_THAT(left.checked.findings, IsEmpty()) << left.checked.text();
        EXPECT_THAT(left.values, ElementsAreArray(GetParam().expected));
      }
    }
  }
}
// Our own kernels are held to the wait; so is everybody whose waves may run on several compute units.
TEST_P(HandedOn, IsARaceUnderStrictRulesAndInSplitMode) {
  const Left strict = run(kernel(GetParam().body), {.checks = races, .rules = Rules::strict});
  EXPECT_THAT(strict.checked.names(), Contains("races"));
  EXPECT_THAT(strict.checked.text(), HasSubstr("with no barrier in between that it was waited for before"));
  const Left split = run(kernel(GetParam().body, "gfx942", tg_split), {.checks = races});
  EXPECT_THAT(split.checked.names(), Contains("races"));
}
TEST_P(HandedOn, WithTheWaitIsRightUnderStrictRulesAndInSplitMode) {
  std::string body = GetParam().body;
  body.replace(body.find("s_barrier"), 0, "s_waitcnt vmcnt(0)\n");
  for (const Arrival arrival : {Arrival::early, Arrival::late, Arrival::random}) {
    for (const Left& left : {run(kernel(body), {.checks = races, .arrival = arrival, .rules = Rules::strict}),
                             run(kernel(body, "gfx942", tg_split), {.checks = races, .arrival = arrival})}) {
      EXPECT_THAT(left.checked.findings, IsEmpty()) << left.checked.text();
      EXPECT_THAT(left.values, ElementsAreArray(GetParam().expected));
    }
  }
}
TEST_P(HandedOn, WithoutABarrierIsARace) {
  std::string body = GetParam().body;
  body.replace(body.find("s_barrier"), 9, "s_nop 0");
  const Left left = run(kernel(body), {.checks = races});
  EXPECT_THAT(left.checked.names(), Contains("races"));
  EXPECT_THAT(left.checked.text(), HasSubstr("with no barrier in between"));
}
INSTANTIATE_TEST_SUITE_P(Each, HandedOn, ::testing::ValuesIn(hand_ons),
                         [](const auto& info) { return info.param.name; });

// A flag in LDS orders waves as a barrier does, and LLVM waits for no vector memory in front of it either. `races` does
// not follow such flags, so this is about values.
TEST(HandedOnByAFlag, IsRightInEveryOrder) {
  const Assembled right = kernel(
      "v_mov_b32 v5, 0\nv_mov_b32 v6, 1\nv_mul_u32_u24 v3, 3, v0\nv_readfirstlane_b32 s8, v0\nds_write_b32 v5, v5\n"
      "s_waitcnt lgkmcnt(0)\ns_barrier\ns_cmp_lt_u32 s8, 64\ns_cbranch_scc0 .Lothers\n"
      "global_store_dword v1, v3, s[6:7]\nds_write_b32 v5, v6\ns_branch .Lend_of_all\n"
      ".Lothers:\nds_read_b32 v7, v5\ns_waitcnt lgkmcnt(0)\nv_readfirstlane_b32 s9, v7\ns_cmp_eq_u32 s9, 0\n"
      "s_cbranch_scc1 .Lothers\nv_and_b32 v8, 0xff, v1\nglobal_load_dword v4, v8, s[6:7]\ns_waitcnt vmcnt(0)\n"
      "global_store_dword v1, v4, s[6:7] offset:2048\n.Lend_of_all:",
      "gfx942", "", 512);
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    for (const Arrival arrival : {Arrival::late, Arrival::random}) {
      const Left left = run(right, {.checks = 0, .arrival = arrival, .schedule = schedule});
      EXPECT_TRUE(left.checked.status.ok()) << left.checked.status.text;
      for (std::uint32_t i = 64; i < threads; ++i) ASSERT_EQ(left.values[i], 3 * (i % 64)) << i;
    }
  }
}

// LDS has a way of its own, LDS DMA another end, and other workgroups other compute units.
TEST(HandedOnElsewhere, TheWaitIsStillNeeded) {
  const Left through_lds = run(kernel("ds_write_b32 v1, v0\ns_barrier\nds_read_b32 v4, v2\ns_waitcnt lgkmcnt(0)\n"
                                      "global_store_dword v1, v4, s[6:7] offset:2048",
                                      "gfx950", "", 1024),
                               {.checks = races});
  EXPECT_THAT(through_lds.checked.text(), HasSubstr("a barrier does not order what is on its way"));
  const std::string dma =
      "s_mov_b32 s8, s6\ns_mov_b32 s9, s7\ns_mov_b32 s10, 0x1000\ns_mov_b32 s11, 0x27000\nv_readfirstlane_b32 s12, v1\n"
      "s_mov_b32 m0, s12\ns_nop 4\nbuffer_load_dword v1, s[8:11], 0 offen lds\n";
  const std::string overwrite = "s_barrier\nglobal_store_dword v2, v0, s[6:7]\ns_waitcnt vmcnt(0)";
  const Left by_dma = run(kernel(dma + overwrite, "gfx950", "", 1024), {.checks = races});
  EXPECT_THAT(by_dma.checked.names(), Contains("races"));
  const Left waited = run(kernel(dma + "s_waitcnt vmcnt(0)\n" + overwrite, "gfx950", "", 1024), {.checks = races});
  EXPECT_THAT(waited.checked.findings, IsEmpty()) << waited.checked.text();
  const Left two_workgroups =
      run(kernel("s_lshl_b32 s8, s2, 2\nv_mov_b32 v3, s2\nglobal_store_dword v1, v3, s[6:7]\ns_barrier\n"
                 "global_load_dword v4, v2, s[6:7]\ns_waitcnt vmcnt(0)"),
          {.checks = races, .workgroups = {2, 1, 1}});
  EXPECT_THAT(two_workgroups.checked.names(), Contains("races"));
}

// LLVM waits on RDNA4 whether a workgroup has one compute unit or two.
TEST(HandedOnOnRdna4, TheWaitIsNeededInBothModes) {
  for (const char* mode : {"  .amdhsa_workgroup_processor_mode 0", "  .amdhsa_workgroup_processor_mode 1"}) {
    for (const bool waits : {false, true}) {
      const Assembled exchange(KernelSource{
          .body = std::string("s_load_b64 s[6:7], s[0:1], 0x0\nv_and_b32 v0, 0x3ff, v0\nv_lshlrev_b32 v1, 2, v0\n"
                              "v_xor_b32 v2, 0x80, v1\ns_wait_kmcnt 0x0\nglobal_store_b32 v1, v0, s[6:7]\n") +
                  (waits ? "s_wait_storecnt 0x0\n" : "") +
                  "s_barrier_signal -1\ns_barrier_wait -1\nglobal_load_b32 v4, v2, s[6:7]\ns_wait_loadcnt 0x0\n"
                  "global_store_b32 v1, v4, s[6:7] offset:2048",
          .target = "gfx1201",
          .directives = mode});
      const Left left = run(exchange, {.checks = races});
      EXPECT_EQ(left.checked.findings.empty(), waits) << mode << left.checked.text();
      if (waits) EXPECT_EQ(left.values[0], 32U);
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
