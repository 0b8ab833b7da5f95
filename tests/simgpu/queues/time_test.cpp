// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Simulated time of packets: what the clock says of kernels, in the order that queues and signals make.
#include <nlohmann/json.hpp>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ring.h"
#include "simgpu/checkers/clock/launch_clock.h"
#include "simgpu/front_ends/queues/queue_time.h"
#include "targets/targets.h"

namespace wavejit::simgpu::testing {
namespace {

using queues::PacketType;
using queues::QueueTime;
using queues::Stamps;

constexpr const char* store_seven = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  v_lshlrev_b32 v2, 2, v0
  v_mov_b32 v1, 7
  s_waitcnt lgkmcnt(0)
  global_store_dword v2, v1, s[6:7])";

constexpr QueueConfig simulated{.simulated_time = true};
constexpr std::uint16_t barrier_bit = 0x100;

class SimulatedTime : public ::testing::Test {
 protected:
  SimulatedTime() { clock::ClockLog::instance().set_sample(4); }
  ~SimulatedTime() override {
    clock::ClockLog::instance().set_sample(0);
    clock::ClockLog::instance().take(1 << 24);
  }
  static const CodeInMemory& code() {
    static const CodeInMemory store(KernelSource{.body = store_seven});
    return store;
  }
  // What the clock said of the last launch.
  static nlohmann::json last_launch() {
    const std::string lines = clock::ClockLog::instance().take(1 << 24);
    return nlohmann::json::parse(lines.substr(lines.rfind('\n', lines.size() - 2) + 1));
  }
  static std::uint64_t ticks(std::uint64_t cycles) {
    return cycles * (queues::clock_hz / 1000) / static_cast<std::uint64_t>(code().device().target().clock_khz);
  }
  static std::uint64_t taken(const TestSignal& signal) {
    const auto& fields = const_cast<TestSignal&>(signal).fields();
    return fields.end - fields.start;
  }

  Buffer<std::uint32_t> out_{64, 0};
  Buffer<std::uint64_t> kernarg_{1, out_.address()};
};

TEST_F(SimulatedTime, ADispatchTakesItsCyclesAndTheNextOneFollows) {
  Ring ring(code().device(), 64, 0, simulated);
  TestSignal first(1);
  TestSignal second(1);
  TestSignal third(1);
  ring.push(dispatch_of(code(), kernarg_.address(), first.address()));
  first.wait_for(0);
  const nlohmann::json launch = last_launch();
  const auto cycles = launch.at("cycles").get<std::uint64_t>();
  ASSERT_GT(cycles, 100U);
  EXPECT_NEAR(static_cast<double>(taken(first)), static_cast<double>(ticks(cycles)), 1);
  // The host may take as long as it likes.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  ring.push(dispatch_of(code(), kernarg_.address(), second.address()));
  second.wait_for(0);
  EXPECT_EQ(second.fields().start, first.fields().end);
  // With the barrier bit it waits for the one before, which takes a little.
  DispatchPacket waiting = dispatch_of(code(), kernarg_.address(), third.address());
  waiting.header |= barrier_bit;
  ring.push(waiting);
  third.wait_for(0);
  const auto wait = launch.at("dependent_launch_cycles").get<std::uint64_t>();
  EXPECT_NEAR(static_cast<double>(third.fields().start - second.fields().end), static_cast<double>(ticks(wait)), 1);
  EXPECT_NEAR(static_cast<double>(taken(third)), static_cast<double>(ticks(cycles)), 1);
}

// wall_clock64() of a kernel lies between the stamps of its packet.
TEST_F(SimulatedTime, KernelsReadTheTimeOfTheirQueue) {
  static const CodeInMemory reads(KernelSource{.body = R"(
  s_load_dwordx2 s[6:7], s[0:1], 0x0
  s_memrealtime s[8:9]
  v_mov_b32 v1, 0
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v2, s8
  v_mov_b32 v3, s9
  global_store_dwordx2 v1, v[2:3], s[6:7])"});
  Buffer<std::uint64_t> reading(1, 0);
  Buffer<std::uint64_t> kernarg(1, reading.address());
  Ring ring(reads.device(), 64, 0, simulated);
  for (int i = 0; i < 3; ++i) {
    TestSignal done(1);
    DispatchPacket packet = dispatch_of(reads, kernarg.address(), done.address());
    packet.header |= barrier_bit;
    ring.push(packet);
    done.wait_for(0);
    EXPECT_GT(reading[0], done.fields().start);
    EXPECT_LT(reading[0], done.fields().end);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST_F(SimulatedTime, AQueueFollowsTheSignalsThatItWaitsFor) {
  Ring one(code().device(), 64, 0, simulated);
  Ring other(code().device(), 64, 0, simulated);
  TestSignal gate(1);
  TestSignal first(1);
  TestSignal waited(1);
  // Both are at work before the first kernel runs.
  one.push(barrier_of(PacketType::barrier_and, {gate.address()}, 0));
  other.push(barrier_of(PacketType::barrier_and, {first.address()}, waited.address()));
  one.push(dispatch_of(code(), kernarg_.address(), first.address()));
  gate.set(0);
  waited.wait_for(0);
  EXPECT_EQ(waited.fields().end, first.fields().end);
  EXPECT_EQ(waited.fields().start, first.fields().start);
}

TEST_F(SimulatedTime, AQueueThatBeginsWhileOthersRestGoesOnWhereTheyEnded) {
  Ring one(code().device(), 64, 0, simulated);
  Ring other(code().device(), 64, 0, simulated);
  for (int i = 0; i < 20; ++i) {  // whoever sees a signal may give work at once
    TestSignal first(1);
    TestSignal second(1);
    one.push(dispatch_of(code(), kernarg_.address(), first.address()));
    while (first.value() != 0) {
    }
    other.push(barrier_of(PacketType::barrier_and, {}, second.address()));
    second.wait_for(0);
    ASSERT_EQ(second.fields().start, first.fields().end);
  }
}

TEST_F(SimulatedTime, StampsOfOtherClocksMoveNothing) {
  Ring ring(code().device(), 64, 0, simulated);
  TestSignal before(1);
  TestSignal host(0);
  TestSignal after(1);
  ring.push(barrier_of(PacketType::barrier_and, {}, before.address()));
  before.wait_for(0);
  host.fields().end = before.fields().end + (1U << 30);
  ring.push(barrier_of(PacketType::barrier_and, {host.address()}, after.address()));
  after.wait_for(0);
  EXPECT_EQ(after.fields().end, before.fields().end);
}

TEST_F(SimulatedTime, WithoutItPacketsTakeTheHostsTime) {
  Ring ring(code().device());
  TestSignal gate(1);
  TestSignal done(1);
  ring.push(barrier_of(PacketType::barrier_and, {gate.address()}, done.address()));
  while (ring.queue().waits_for().empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  gate.set(0);
  done.wait_for(0);
  EXPECT_GE(taken(done), 4 * (queues::clock_hz / 1000));
}

// What an event costs is between it and the kernel behind it, not between kernels.
TEST(QueueTimes, AKernelBehindAnEventBeginsLater) {
  QueueTime time(true, std::chrono::nanoseconds(3100));
  constexpr std::uint64_t cost = 3100 * queues::clock_hz / 1'000'000'000;
  const auto event = [&](std::uint64_t packet) {
    time.begin(packet);
    return time.end(packet + 1);
  };
  const auto kernel = [&](std::uint64_t packet) {
    time.begin(packet);
    time.ran({.cycles = 2'000'000}, 2'000'000, false);
    return time.end(packet + 1);
  };
  const Stamps before = event(0);
  const Stamps first = kernel(1);
  EXPECT_EQ(first.start - before.end, cost);
  EXPECT_EQ(kernel(2).start, first.end);
  const Stamps after = event(3);
  EXPECT_EQ(after.end, after.start);
  EXPECT_EQ(kernel(4).start - after.end, cost);
}

// Doorbells may ring late, or for packets that are done already.
TEST(QueueTimes, ALateDoorbellBeginsNothing) {
  QueueTime one(true);
  QueueTime other(true);
  one.begin(0);
  one.ran({.cycles = 2'000'000}, 2'000'000, false);  // a millisecond
  const Stamps stamps = one.end(1);
  EXPECT_EQ(stamps.end - stamps.start, queues::clock_hz / 1000);
  one.rung(1);
  other.rung(1);
  other.begin(0);
  EXPECT_EQ(other.end(1).start, stamps.end);
}

TEST(QueueTimes, WhatRunsBesideWorkStartsWithoutIt) {
  QueueTime one(true);
  QueueTime other(true);
  QueueTime third(true);
  third.begin(0);
  const Stamps before = third.end(1);
  one.rung(1);
  other.rung(1);  // while the first is at work
  one.begin(0);
  one.ran({.cycles = 2'000'000}, 2'000'000, false);
  const Stamps first = one.end(1);
  other.begin(0);
  EXPECT_EQ(other.end(1).start, first.start);
  third.rung(2);
  third.begin(1);
  EXPECT_EQ(third.end(2).start, first.end);
  EXPECT_EQ(first.start, before.end);
}

// A queue that stopped with packets behind it is not at work.
TEST(QueueTimes, AStoppedQueueRests) {
  QueueTime one(true);
  QueueTime broken(true);
  QueueTime other(true);
  broken.rung(5);
  broken.begin(0);
  broken.stop();
  broken.rung(6);
  one.begin(0);
  one.ran({.cycles = 2'000'000}, 2'000'000, false);
  const Stamps stamps = one.end(1);
  other.rung(1);
  other.begin(0);
  EXPECT_EQ(other.end(1).start, stamps.end);
}

}  // namespace
}  // namespace wavejit::simgpu::testing
