// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What one workgroup sees of another one's accesses while both run, on many host threads: values that the ISA moves as
// one are whole, and a message that is published as LLVM's memory model says arrives with its flag.
#include <cstdint>
#include <format>
#include <string>
#include <vector>

#include "assembled.h"
#include "gtest/gtest.h"

namespace wavejit::simgpu::testing {
namespace {

constexpr std::uint32_t rounds = 20'000;
constexpr std::uint32_t workgroups = 8;
// A lane each its own 16 bytes.
constexpr std::size_t words = 64 * 4;

// s[6:7] and v[2:3]: the memory of the lane, s[8:9] with v1: the same; s[8:11]: a buffer of all of it.
constexpr const char* start = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_load_dwordx2 s[16:17], s[0:1], 0x8
  v_lshlrev_b32 v1, 4, v0
  s_waitcnt lgkmcnt(0)
  s_mov_b64 s[8:9], s[6:7]
  s_movk_i32 s10, 0x1000
  s_mov_b32 s11, 0x27000
  v_mov_b32 v3, s7
  v_add_co_u32 v2, vcc, s6, v1
  s_nop 1
  v_addc_co_u32 v3, vcc, 0, v3, vcc
  s_mov_b64 s[20:21], 0
  s_mov_b32 s18, 0
)";

// Workgroups that meet at nothing: 0 stores, the others load and keep the lanes for which `good` does not hold in
// s[20:21]. Both do so for as many rounds.
KernelSource litmus(const std::string& mask, const std::string& publish, const std::string& observe,
                    const std::string& target) {
  return {.body = std::format(R"({}
  s_mov_b64 exec, {}
  s_cmp_lg_u32 s2, 0
  s_cbranch_scc1 .Lobserve
.Lpublish:
  s_add_u32 s18, s18, 1
  v_mov_b32 v10, s18
  v_mul_u32_u24 v11, 3, v10
  v_mul_u32_u24 v12, 5, v10
  v_mul_u32_u24 v13, 15, v10
  {}
  s_cmp_lt_u32 s18, {}
  s_cbranch_scc1 .Lpublish
  s_endpgm
.Lobserve:
  s_add_u32 s18, s18, 1
  {}
  s_cmp_lt_u32 s18, {}
  s_cbranch_scc1 .Lobserve
  v_mov_b32 v4, 0
  v_mov_b32 v5, 1
  s_and_b64 exec, exec, s[20:21]
  global_atomic_add v4, v5, s[16:17])",
                              start, mask, publish, rounds, observe, rounds),
          .target = target,
          .kernarg_bytes = 16,
          .lds_bytes = 1024};
}

// Lanes, over all workgroups, that saw what was never stored.
std::uint32_t torn(const std::string& mask, const std::string& publish, const std::string& observe,
                   const std::string& target = "gfx950") {
  const ScopedSettings scope;
  Settings settings = scope.before();
  settings.threads = workgroups;
  scope.set(settings);
  const Assembled kernel(litmus(mask, publish, observe, target));
  Buffer<std::uint32_t> memory(words);
  Buffer<std::uint32_t> bad(1);
  const Status status = kernel.run({memory.address(), bad.address()}, {workgroups, 1, 1});
  EXPECT_TRUE(status.ok()) << status.text;
  return bad[0];
}

// v11 is 3 · v10, and v13 is 3 · v12.
constexpr const char* first_pair = R"(
  v_mul_u32_u24 v14, 3, v10
  v_cmp_ne_u32 vcc, v11, v14
  s_or_b64 s[20:21], s[20:21], vcc)";
// v12 is 5 · v10 as well.
constexpr const char* all_four = R"(
  v_mul_u32_u24 v14, 5, v10
  v_cmp_ne_u32 vcc, v12, v14
  s_or_b64 s[20:21], s[20:21], vcc
  v_mul_u32_u24 v14, 3, v10
  v_cmp_ne_u32 vcc, v11, v14
  s_or_b64 s[20:21], s[20:21], vcc
  v_mul_u32_u24 v14, 3, v12
  v_cmp_ne_u32 vcc, v13, v14
  s_or_b64 s[20:21], s[20:21], vcc)";

struct Pairs {
  const char* name;
  const char* mask;  // EXEC: instructions take another way where all lanes are on
  const char* publish;
  const char* load;
  bool four = false;  // words, by one access
};
void PrintTo(const Pairs& pairs, std::ostream* to) { *to << pairs.name; }

class WholeValues : public ::testing::TestWithParam<Pairs> {};

TEST_P(WholeValues, AreNeverHalfOld) {
  const Pairs& pairs = GetParam();
  const std::string observe =
      std::string(pairs.load) + "\n  s_waitcnt vmcnt(0) lgkmcnt(0)" + (pairs.four ? all_four : first_pair);
  EXPECT_EQ(torn(pairs.mask, pairs.publish, observe), 0u);
}

constexpr const char* store_2 = "global_store_dwordx2 v[2:3], v[10:11], off sc1";
constexpr const char* store_4 = "global_store_dwordx4 v[2:3], v[10:13], off sc1";
constexpr const char* load_2 = "global_load_dwordx2 v[10:11], v[2:3], off sc1";
constexpr const char* load_4 = "global_load_dwordx4 v[10:13], v[2:3], off sc1";
INSTANTIATE_TEST_SUITE_P(
    Each, WholeValues,
    ::testing::Values(
        Pairs{"Global", "1", store_2, load_2}, Pairs{"AllLanes", "-1", store_2, load_2},
        Pairs{"Flat", "7", "flat_store_dwordx2 v[2:3], v[10:11] sc1", "flat_load_dwordx2 v[10:11], v[2:3] sc1"},
        Pairs{"Three", "7", "global_store_dwordx3 v[2:3], v[10:12], off", "global_load_dwordx3 v[10:12], v[2:3], off"},
        Pairs{"Four", "7", store_4, load_4, true},
        Pairs{"Buffer", "7", "buffer_store_dwordx2 v[10:11], v1, s[8:11], 0 offen sc1",
              "buffer_load_dwordx2 v[10:11], v1, s[8:11], 0 offen sc1"},
        Pairs{"BufferOfAllLanes", "-1", "buffer_store_dwordx2 v[10:11], v1, s[8:11], 0 offen sc1",
              "buffer_load_dwordx2 v[10:11], v1, s[8:11], 0 offen sc1"},
        Pairs{"BufferThreeOfAllLanes", "-1", "buffer_store_dwordx3 v[10:12], v1, s[8:11], 0 offen",
              "buffer_load_dwordx3 v[10:12], v1, s[8:11], 0 offen"},
        Pairs{"BufferFourOfAllLanes", "-1", "buffer_store_dwordx4 v[10:13], v1, s[8:11], 0 offen",
              "buffer_load_dwordx4 v[10:13], v1, s[8:11], 0 offen", true},
        Pairs{"ToLds", "7", store_4,
              "s_mov_b32 m0, 0\n  s_nop 0\n  global_load_lds_dwordx4 v[2:3], off\n  s_waitcnt vmcnt(0)\n"
              "  ds_read_b128 v[10:13], v1",
              true},
        Pairs{"BufferToLds", "-1", store_4,
              "s_mov_b32 m0, 0\n  s_nop 0\n  buffer_load_dwordx4 v1, s[8:11], 0 offen lds\n  s_waitcnt vmcnt(0)\n"
              "  ds_read_b128 v[10:13], v1",
              true},
        // The first lane's, which scalar loads see.
        Pairs{
            "Scalar", "1", store_2,
            "s_load_dwordx2 s[22:23], s[6:7], 0x0\n  s_waitcnt lgkmcnt(0)\n  v_mov_b32 v10, s22\n  v_mov_b32 v11, s23"},
        // An atomic that changes all of it, and a plain load.
        Pairs{"Swapped", "7", "global_atomic_swap_x2 v[2:3], v[10:11], off", load_2}),
    [](const auto& info) { return std::string(info.param.name); });

// Two words by two stores: whoever sees the second one's value, by a load of the scope, sees the first one's too.
struct Message {
  const char* name;
  const char* data;     // stores v10 to the lane's first word
  const char* release;  // between the two
  const char* flag;     // stores v10 to its second word
  const char* see;      // loads it into v15
  const char* acquire;  // between the two
  const char* read;     // loads the first one into v16
};
void PrintTo(const Message& message, std::ostream* to) { *to << message.name; }

class Messages : public ::testing::TestWithParam<Message> {};

TEST_P(Messages, WhoSeesTheFlagSeesTheData) {
  const Message& message = GetParam();
  const std::string publish =
      std::format("{}\n  {}\n  s_waitcnt vmcnt(0) lgkmcnt(0)\n  {}", message.data, message.release, message.flag);
  const std::string observe = std::format(R"({}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  {}
  {}
  s_waitcnt vmcnt(0) lgkmcnt(0)
  v_cmp_lt_u32 vcc, v16, v15
  s_or_b64 s[20:21], s[20:21], vcc)",
                                          message.see, message.acquire, message.read);
  EXPECT_EQ(torn("7", publish, observe), 0u);
}

// LLVM's AMDGPU usage document, "Memory Model gfx942": agent and system scope.
INSTANTIATE_TEST_SUITE_P(
    Each, Messages,
    ::testing::Values(Message{"AgentScope", "global_store_dword v[2:3], v10, off", "buffer_wbl2 sc1",
                              "global_store_dword v[2:3], v10, off offset:4 sc1",
                              "global_load_dword v15, v[2:3], off offset:4 sc1", "buffer_inv sc1",
                              "global_load_dword v16, v[2:3], off"},
                      Message{"SystemScope", "global_store_dword v[2:3], v10, off", "buffer_wbl2 sc0 sc1",
                              "global_store_dword v[2:3], v10, off offset:4 sc0 sc1",
                              "global_load_dword v15, v[2:3], off offset:4 sc0 sc1", "buffer_inv sc0 sc1",
                              "global_load_dword v16, v[2:3], off"},
                      Message{"FlatAgentScope", "flat_store_dword v[2:3], v10", "buffer_wbl2 sc1",
                              "flat_store_dword v[2:3], v10 offset:4 sc1", "flat_load_dword v15, v[2:3] offset:4 sc1",
                              "buffer_inv sc1", "flat_load_dword v16, v[2:3]"},
                      Message{"BufferAgentScope", "buffer_store_dword v10, v1, s[8:11], 0 offen", "buffer_wbl2 sc1",
                              "buffer_store_dword v10, v1, s[8:11], 0 offen offset:4 sc1",
                              "buffer_load_dword v15, v1, s[8:11], 0 offen offset:4 sc1", "buffer_inv sc1",
                              "buffer_load_dword v16, v1, s[8:11], 0 offen"},
                      Message{"ByAtomics", "global_store_dword v[2:3], v10, off", "buffer_wbl2 sc1",
                              "global_atomic_umax v[2:3], v10, off offset:4",
                              "v_mov_b32 v15, 0\n  global_atomic_add v15, v[2:3], v15, off offset:4 sc0",
                              "buffer_inv sc1", "global_load_dword v16, v[2:3], off"},
                      // Data that went to LDS by DMA is as new as what a register gets.
                      Message{"IntoLds", "global_store_dword v[2:3], v10, off", "buffer_wbl2 sc1",
                              "global_store_dword v[2:3], v10, off offset:4 sc1",
                              "global_load_dword v15, v[2:3], off offset:4 sc1", "buffer_inv sc1",
                              "s_mov_b32 m0, 0\n  s_nop 0\n  global_load_lds_dword v[2:3], off\n  s_waitcnt vmcnt(0)\n"
                              "  v_lshlrev_b32 v17, 2, v0\n  ds_read_b32 v16, v17"}),
    [](const auto& info) { return std::string(info.param.name); });

// Waves of one workgroup, which see each other in LDS as well.
TEST(Litmus, WavesOfAWorkgroupPassMessagesThroughLds) {
  const ScopedSettings scope;
  for (const Schedule schedule : {Schedule::in_order, Schedule::reverse, Schedule::random}) {
    Settings settings = scope.before();
    settings.schedule = schedule;
    scope.set(settings);
    // Wave 0 counts up {i, 3i} in one write of eight bytes; wave 1 waits for 100 and compares on its way.
    const Assembled kernel(KernelSource{.body = R"(
  s_load_dwordx2 s[16:17], s[0:1], 0x0
  v_readfirstlane_b32 s19, v0
  v_mov_b32 v1, 0
  v_mov_b32 v10, 0
  v_mov_b32 v11, 0
  s_mov_b32 s18, 0
  s_mov_b64 s[20:21], 0
  s_cmp_lg_u32 s19, 0
  s_cbranch_scc1 .Lwait
  ds_write_b64 v1, v[10:11]
  s_waitcnt lgkmcnt(0)
  s_barrier
.Lcount:
  s_add_u32 s18, s18, 1
  v_mov_b32 v10, s18
  v_mul_u32_u24 v11, 3, v10
  ds_write_b64 v1, v[10:11]
  s_cmp_lt_u32 s18, 100
  s_cbranch_scc1 .Lcount
  s_endpgm
.Lwait:
  s_barrier
.Lagain:
  ds_read_b64 v[10:11], v1
  s_waitcnt lgkmcnt(0)
  v_mul_u32_u24 v14, 3, v10
  v_cmp_ne_u32 vcc, v11, v14
  s_or_b64 s[20:21], s[20:21], vcc
  v_readfirstlane_b32 s18, v10
  s_cmp_lt_u32 s18, 100
  s_cbranch_scc1 .Lagain
  v_mov_b32 v4, 0
  v_mov_b32 v5, 1
  s_waitcnt lgkmcnt(0)
  global_atomic_add v4, v5, s[16:17]
  s_and_b64 exec, exec, s[20:21]
  global_atomic_add v4, v5, s[16:17] offset:4)",
                                        .lds_bytes = 64});
    Buffer<std::uint32_t> result(2);
    ASSERT_TRUE(kernel.run({result.address()}, {1, 1, 1}, {128, 1, 1}).ok());
    EXPECT_EQ(result[0], 64u);
    EXPECT_EQ(result[1], 0u);
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
