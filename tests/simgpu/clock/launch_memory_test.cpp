// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What launches find in caches that launches before have left there.
#include "simgpu/checkers/clock/launch_memory.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "clocked.h"
#include "gtest/gtest.h"
#include "simgpu/checkers/clock/launch_clock.h"

namespace wavejit::simgpu::testing {
namespace {

using clock::LaunchMemory;
using clock::left_in_l2;
using clock::LineRange;

// All that an equal launch read is in L2 afterwards, if it fits, but for what may have been written on another die.
TEST(LaunchMemory, LeavesInL2WhatAnEqualLaunchRead) {
  const clock::PartsByLine lines = {{1, 1}, {2, 1}, {3, 1}, {4, 1}};
  const clock::ReadersByLine sharers = {{3, 100}, {4, 100}};
  EXPECT_TRUE(left_in_l2({}, lines, sharers, 1, 1000).empty());
  LaunchMemory warm;
  warm.warm = true;
  EXPECT_EQ(left_in_l2(warm, lines, sharers, 100, 1000), (std::unordered_set<std::uint64_t>{1, 2, 3, 4}));
  EXPECT_TRUE(left_in_l2(warm, lines, sharers, 1000, 1000).empty());
  warm.written = {{.first = 2, .end = 4}};
  EXPECT_EQ(left_in_l2(warm, lines, sharers, 100, 1000), (std::unordered_set<std::uint64_t>{1, 4}));
}

TEST(LaunchMemory, HasOfTheLatestWritesWhatFits) {
  timing::MemoryRules rules;
  rules.line.value = 128;
  rules.mall_bytes.value = 128 * 100;
  const Allocation first{.base = 0, .bytes = std::uint64_t{128} * 1000, .serial = 1};
  const Allocation second{.base = first.end(), .bytes = std::uint64_t{128} * 1000, .serial = 2};
  const auto find = [&](std::uint64_t address) { return address < first.end() ? &first : &second; };
  clock::WriteLog log;
  log.add({{.allocation = 1, .lines = {.first = 200, .end = 211}}});
  log.add({{.allocation = 1, .lines = {.first = 50, .end = 60}},
           {.allocation = 2, .lines = {.first = 1000, .end = 1040}},
           {.allocation = 2, .device = 1, .lines = {.first = 1500, .end = 1600}}});
  // Launches that write nothing, or the same again and again, leave what was there.
  for (int again = 0; again < 20; ++again) {
    log.add({{.allocation = 1, .lines = {.first = 10, .end = 50}}});
    log.add({});
  }
  const std::vector<LineRange> fits = {{.first = 10, .end = 60}, {.first = 1000, .end = 1040}};
  EXPECT_EQ(log.left_in_last_level(0, rules, find), fits);
  const std::vector<LineRange> of_other = {{.first = 1500, .end = 1600}};
  EXPECT_EQ(log.left_in_last_level(1, rules, find), of_other);
  // What lies at the address now is another allocation.
  const Allocation other{.base = 0, .bytes = first.bytes, .serial = 3};
  const auto find_other = [&](std::uint64_t address) { return address < first.end() ? &other : &second; };
  const std::vector<LineRange> of_second = {{.first = 1000, .end = 1040}};
  EXPECT_EQ(log.left_in_last_level(0, rules, find_other), of_second);
}

// Launches of 64 lanes a workgroup, which store or load a dword each.
class Launches : public ::testing::Test {
 protected:
  static constexpr std::uint32_t workgroups = 64;
  Launches() { clock::ClockLog::instance().set_sample(16); }
  ~Launches() override {
    clock::ClockLog::instance().set_sample(0);
    clock::ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
  }
  static nlohmann::json run(const std::string& work, const Buffer<std::uint32_t>& memory) {
    const Assembled kernel(
        {.body = "s_load_dwordx2 s[6:7], s[0:1], 0x0\ns_lshl_b32 s2, s2, 8\nv_lshlrev_b32 v2, 2, v0\n"
                 "v_add_u32 v2, s2, v2\ns_waitcnt lgkmcnt(0)\n" +
                 work});
    const Status status = kernel.run({memory.address()}, {workgroups, 1, 1}, {64, 1, 1});
    EXPECT_TRUE(status.ok()) << status.text;
    return nlohmann::json::parse(clock::ClockLog::instance().take(std::numeric_limits<std::size_t>::max()));
  }
  static constexpr const char* stores = "global_store_dword v2, v0, s[6:7]\n";
  static constexpr const char* adds = "global_atomic_add v2, v0, s[6:7]\n";
  static constexpr const char* loads = "global_load_dword v1, v2, s[6:7]\ns_waitcnt vmcnt(0)\n";
};

TEST_F(Launches, FindWhatTheOneBeforeWroteInTheLastLevelCache) {
  for (const char* writes : {stores, adds}) {
    const Buffer<std::uint32_t> memory(std::size_t{workgroups} * 64, 0);
    const auto cold = run(loads, memory);
    EXPECT_EQ(cold.at("memory").at("last_level_hits").get<int>(), 0) << cold;
    run(writes, memory);
    const auto behind = run(loads, memory);
    EXPECT_EQ(behind.at("memory").at("memory").get<int>(), 0) << behind;
    EXPECT_LT(behind.at("cycles").get<int>(), cold.at("cycles").get<int>());
  }
}

// One workgroup writes the first and the last word of an array: what lies between is in no cache.
TEST_F(Launches, LeaveNoMoreThanTheyWrote) {
  const Buffer<std::uint32_t> memory(std::size_t{workgroups} * 64, 0);
  run("s_cmp_lg_u32 s2, 0\ns_cbranch_scc1 done\nv_mul_u32_u24 v2, 16380, v0\nv_cmp_gt_u32 vcc, 2, v0\n"
      "s_and_saveexec_b64 s[10:11], vcc\nglobal_store_dword v2, v0, s[6:7]\ndone:\n",
      memory);
  const auto behind = run(loads, memory);
  EXPECT_GT(behind.at("memory").at("memory").get<int>(), 0) << behind;
}

// The traced workgroups stand in the middle of a launch: as many lines as all of them write are counted, wherever they are.
TEST_F(Launches, LeaveAllThatTheyWroteBesideTracedWorkgroups) {
  clock::ClockLog::instance().set_sample(2);
  const Buffer<std::uint32_t> memory(std::size_t{workgroups} * 64, 0);
  run(stores, memory);
  clock::ClockLog::instance().set_sample(16);
  EXPECT_EQ(run(loads, memory).at("memory").at("memory").get<int>(), 0);
}

// Atomics of LDS write nothing that a later launch could read.
TEST_F(Launches, WriteNothingByAtomicsOfLds) {
  const Buffer<std::uint32_t> memory(std::size_t{workgroups} * 64, 0);
  run("v_mov_b32 v3, 0\nds_add_u32 v3, v0\ns_waitcnt lgkmcnt(0)\n", memory);
  EXPECT_EQ(run(loads, memory).at("memory").at("last_level_hits").get<int>(), 0);
}

TEST_F(Launches, ForgetWhatWasFreed) {
  std::uint64_t address = 0;
  {
    const Buffer<std::uint32_t> memory(std::size_t{workgroups} * 64, 0);
    address = memory.address();
    run(stores, memory);
  }
  const Buffer<std::uint32_t> memory(std::size_t{workgroups} * 64, 0);
  ASSERT_EQ(memory.address(), address);
  EXPECT_EQ(run(loads, memory).at("memory").at("last_level_hits").get<int>(), 0);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
