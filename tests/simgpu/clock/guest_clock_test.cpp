// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Clocks that kernels read while their launch is timed.
#include "simgpu/checkers/clock/guest_clock.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "clocked.h"
#include "gtest/gtest.h"
#include "simgpu/checkers/clock/launch_clock.h"

namespace wavejit::simgpu::testing {
namespace {

constexpr std::size_t first_reading = 256;  // dwords before it are zeros
constexpr std::size_t most_readings = 2048;

struct Readings {
  double predicted = 0;  // cycles of the launch
  double wait = 0;       // more of them when it waits for another one
  std::vector<std::uint32_t> of_waves;
};

class GuestClock : public ::testing::Test {
 protected:
  GuestClock() { clock::ClockLog::instance().set_sample(1); }
  ~GuestClock() override {
    clock::ClockLog::instance().set_sample(0);
    clock::ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
  }
  // Runs a kernel that leaves a dword a wave in s12.
  static Readings run(const KernelSource& source, std::uint32_t workgroups = 1, std::uint32_t waves = 1) {
    const bool rdna4 = source.target == "gfx1201";
    KernelSource whole = source;
    whole.lds_bytes = 64;
    whole.body = std::string(rdna4 ? "s_load_b64 s[6:7], s[0:1], 0x0\ns_mov_b32 s2, ttmp9\n"
                                   : "s_load_dwordx2 s[6:7], s[0:1], 0x0\n") +
                 "v_mov_b32 v1, 0\nv_mov_b32 v5, 0\nds_write_b32 v1, v1\ns_waitcnt lgkmcnt(0)\n" + source.body +
                 "s_mul_i32 s2, s2, " + std::to_string(waves * 4) +
                 "\nv_lshrrev_b32 v2, 6, v0\nv_lshlrev_b32 v2, 2, v2\nv_add_u32 v2, s2, v2\nv_mov_b32 v3, s12\n"
                 "global_store_dword v2, v3, s[6:7] offset:1024\n";
    if (rdna4) {
      whole.body = "s_load_b64 s[6:7], s[0:1], 0x0\nv_mov_b32 v5, 0\ns_wait_kmcnt 0x0\n" + source.body +
                   "v_mov_b32 v2, 0\nv_mov_b32 v3, s12\nglobal_store_b32 v2, v3, s[6:7] offset:1024\n";
    }
    const Assembled kernel(whole);
    Buffer<std::uint32_t> memory(first_reading + most_readings, 0);
    const Status status = kernel.run({memory.address()}, {workgroups, 1, 1}, {waves * 64, 1, 1});
    EXPECT_TRUE(status.ok()) << status.text;
    Readings readings;
    for (std::size_t i = 0; i < std::size_t{workgroups} * waves; ++i)
      readings.of_waves.push_back(memory[first_reading + i]);
    const std::string said = clock::ClockLog::instance().take(std::numeric_limits<std::size_t>::max());
    if (said.empty()) return readings;
    const auto json = nlohmann::json::parse(said);
    readings.predicted = json.at("cycles").get<double>();
    readings.wait = json.at("dependent_launch_cycles").get<double>();
    return readings;
  }
};

constexpr const char* read_twice[] = {"s_memtime s[10:11]\ns_waitcnt lgkmcnt(0)\n",
                                      "s_memtime s[12:13]\ns_waitcnt lgkmcnt(0)\ns_sub_u32 s12, s12, s10\n"};

std::string bracketed(const std::string& work) { return read_twice[0] + work + read_twice[1]; }

// What a kernel sees of its own time is what the clock says that time is.
TEST_F(GuestClock, BracketsTakeWhatTheClockPredicts) {
  constexpr unsigned copies = 64;
  constexpr struct {
    std::uint32_t workgroups;
    std::uint32_t waves;
  } sizes[] = {{1, 1}, {8, 4}};
  for (const std::string work : {"global_load_dword v1, v1, s[6:7]\ns_waitcnt vmcnt(0)\n",
                                 "ds_read_b32 v1, v1\ns_waitcnt lgkmcnt(0)\n", "v_fma_f32 v5, v5, v5, v5\n"}) {
    for (const auto [workgroups, waves] : sizes) {
      const auto time = [&](unsigned count) {
        return run({.body = work + bracketed(repeated(work, count))}, workgroups, waves);
      };
      const Readings without = time(0);
      const Readings with = time(copies);
      const double predicted = with.predicted - without.predicted;
      EXPECT_GE(predicted, 4 * copies);
      for (std::size_t i = 0; i < with.of_waves.size(); ++i)
        EXPECT_NEAR((with.of_waves[i] - without.of_waves[i]) / predicted, 1, 0.1) << work << waves << " " << i;
      EXPECT_EQ(time(copies).of_waves, with.of_waves);
    }
  }
}

TEST_F(GuestClock, WavesThatShareAPortTakeLonger) {
  const std::string work = repeated("v_exp_f32 v5, v5\n", 256);
  const Readings one = run({.body = bracketed(work)});
  // 16 waves on four SIMDs, which a barrier sends off together: the last of them knows of all others.
  const Readings many = run({.body = "s_barrier\n" + bracketed(work)}, 1, 16);
  EXPECT_GT(std::ranges::max(many.of_waves), one.of_waves[0] * 3);
  EXPECT_GE(std::ranges::min(many.of_waves), one.of_waves[0]);
}

TEST_F(GuestClock, Rdna4HasARegisterOfCycles) {
  const auto time = [](const std::string& work) {
    return run({.body = "s_getreg_b32 s10, hwreg(HW_REG_SHADER_CYCLES_LO)\n" + work +
                        "s_getreg_b32 s12, hwreg(HW_REG_SHADER_CYCLES_LO)\ns_sub_co_u32 s12, s12, s10\n",
                .target = "gfx1201"});
  };
  const Readings without = time("");
  const Readings with = time(repeated("v_exp_f32 v5, v5\ns_delay_alu instid0(TRANS32_DEP_1)\n", 64));
  EXPECT_NEAR((with.of_waves[0] - without.of_waves[0]) / (with.predicted - without.predicted), 1, 0.1);
}

std::string wait_for(std::uint32_t cycles) {
  return "s_memtime s[10:11]\n1:\ns_memtime s[12:13]\ns_waitcnt lgkmcnt(0)\ns_sub_u32 s12, s12, s10\ns_cmp_lt_u32 "
         "s12, " +
         std::to_string(cycles) + "\ns_cbranch_scc1 1b\n";
}

TEST_F(GuestClock, LoopsThatWaitForItEnd) {
  const double without = run({.body = bracketed("")}).predicted;
  for (const std::uint32_t cycles : {5000U, 1'000'000U}) {
    const Readings readings = run({.body = wait_for(cycles)});
    EXPECT_GE(readings.of_waves[0], cycles);
    EXPECT_LT(readings.of_waves[0], (cycles * 1.01) + 100);
    EXPECT_NEAR((readings.predicted - without) / cycles, 1, 0.1) << cycles;
  }
}

// 100 MHz: launches of one stream are one after the other, and wait for each other.
TEST_F(GuestClock, LaunchesFollowEachOtherOnTheWall) {
  const KernelSource source{.body = "s_memrealtime s[20:21]\n" + wait_for(24'000) + "s_mov_b32 s12, s20\n"};
  std::uint32_t before = run(source).of_waves[0];
  for (int i = 0; i < 3; ++i) {
    const Readings next = run(source);
    EXPECT_NEAR(next.of_waves[0] - before, (next.predicted + next.wait) / 24, 1);
    before = next.of_waves[0];
  }
}

TEST_F(GuestClock, WithoutTheClockInstructionsAreCounted) {
  clock::ClockLog::instance().set_sample(0);
  // The wait behind the first reading, the second reading and what stands between them.
  EXPECT_EQ(run({.body = bracketed(repeated("v_exp_f32 v5, v5\n", 256))}).of_waves[0], 4U * 258);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
