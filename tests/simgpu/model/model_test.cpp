// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The model's queues, which nobody rings, and its memory.
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "assembled.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/front_ends/model/memory.h"
#include "simgpu/front_ends/model/queues.h"
#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/machine/allocations/memory.h"
#include "support/idle_cost.h"

namespace wavejit::simgpu::model {
namespace {

using simgpu::queues::packet_bytes;
using simgpu::queues::PacketType;
using simgpu::queues::QueueFields;
using simgpu::queues::Signal;
using ::testing::HasSubstr;

Device& model_device() { return *Device::find(Device::open("gfx950", 1).value().front()); }

// A queue as ROCr registers one: a ring of empty packets, indices, and nothing that rings.
class SilentRing {
 public:
  SilentRing() {
    for (auto& packet : ring_) packet[0] = static_cast<std::uint64_t>(PacketType::invalid);
  }
  QueueInfo info(QueueType type = QueueType::aql) {
    return {.ring = reinterpret_cast<std::uint64_t>(ring_.data()),
            .write_pointer = reinterpret_cast<std::uint64_t>(&fields_.write_index),
            .read_pointer = reinterpret_cast<std::uint64_t>(&fields_.read_index),
            .ring_bytes = sizeof ring_,
            .type = type};
  }
  void claim() { std::atomic_ref(fields_.write_index).fetch_add(1); }
  void write(std::uint64_t index, Signal& completion) {
    auto& place = ring_[index % ring_.size()];
    place[7] = reinterpret_cast<std::uint64_t>(&completion);
    std::atomic_ref(place[0]).store(static_cast<std::uint64_t>(PacketType::barrier_and), std::memory_order_release);
  }

 private:
  alignas(packet_bytes) std::array<std::array<std::uint64_t, packet_bytes / 8>, 16> ring_{};
  QueueFields fields_;
};

bool becomes_zero(Signal& signal) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (std::atomic_ref(signal.value).load(std::memory_order_acquire) != 0) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

// Rings and signals stand before the queues that read them: what a queue's thread looks at must outlive it.
TEST(ModelQueues, TakePacketsThatNobodyRingsFor) {
  SilentRing ring;
  std::array<Signal, 40> done{};  // around the ring
  Queues queues;
  Queue* const queue = queues.add(model_device(), ring.info(), nullptr, nullptr);
  ASSERT_NE(queue, nullptr);
  for (std::uint64_t i = 0; i < done.size(); ++i) {
    done[i].value = 1;
    ring.claim();
    ring.write(i, done[i]);
    ASSERT_TRUE(becomes_zero(done[i])) << i;
  }
  queues.remove(queue);
}

TEST(ModelQueues, ComeBackToAPacketThatWasClaimedAndNotWritten) {
  SilentRing ring;
  Signal done{.value = 1};
  Queues queues;
  ASSERT_NE(queues.add(model_device(), ring.info(), nullptr, nullptr), nullptr);
  ring.claim();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  ring.write(0, done);
  EXPECT_TRUE(becomes_zero(done));
}

TEST(ModelQueues, StopBeforeTheyAreGone) {
  auto ring = std::make_unique<SilentRing>();
  SilentRing stays;
  Signal done{.value = 1};
  Queues queues;
  Queue* const queue = queues.add(model_device(), ring->info(), nullptr, nullptr);
  ASSERT_NE(queues.add(model_device(), stays.info(), nullptr, nullptr), nullptr);
  queues.remove(queue);
  std::memset(static_cast<void*>(ring.get()), 0xff, sizeof(SilentRing));  // the owner's again: nobody may read it
  ring.reset();
  stays.claim();
  stays.write(0, done);
  EXPECT_TRUE(becomes_zero(done));
}

TEST(ModelQueues, CostLittleWhenNothingComes) {
  SilentRing ring;
  Queues queues;
  ASSERT_NE(queues.add(model_device(), ring.info(), nullptr, nullptr), nullptr);
  EXPECT_LT(tests::idle_cost(0.2), 0.2);
}

// A copy engine's ring with one packet: FENCE (5) writes 37 to an address.
class FenceRing {
 public:
  explicit FenceRing(std::uint64_t to)
      : words_{5, static_cast<std::uint32_t>(to), static_cast<std::uint32_t>(to >> 32), 37} {}
  QueueInfo info() {
    return {.ring = reinterpret_cast<std::uint64_t>(words_.data()),
            .write_pointer = reinterpret_cast<std::uint64_t>(&write_),
            .read_pointer = reinterpret_cast<std::uint64_t>(&read_),
            .ring_bytes = sizeof words_,
            .type = QueueType::sdma};
  }
  void submit() { std::atomic_ref(write_).store(16, std::memory_order_release); }
  bool is_done() { return std::atomic_ref(read_).load(std::memory_order_acquire) == 16; }

 private:
  alignas(64) std::array<std::uint32_t, 64> words_;
  std::uint64_t read_ = 0;
  std::uint64_t write_ = 0;
};

template <typename IsMet>
bool comes_true(IsMet is_met) {
  for (int i = 0; i < 10'000 && !is_met(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return is_met();
}

TEST(ModelQueues, RunCopyEngines) {
  Signal target;
  ASSERT_TRUE(DeviceMemory::instance().adopt(&target, sizeof target, MemoryKind::host_pinned, 0));
  FenceRing ring(reinterpret_cast<std::uint64_t>(&target));
  Queues queues;
  Queue* const queue = queues.add(model_device(), ring.info(), nullptr, nullptr);
  ASSERT_NE(queue, nullptr);
  ring.submit();
  EXPECT_TRUE(comes_true([&] { return ring.is_done(); }));
  queues.remove(queue);
  DeviceMemory::instance().forget(&target);
  EXPECT_EQ(static_cast<std::uint32_t>(target.kind), 37U);
}

TEST(ModelQueues, StopCopyEnginesBeforeTheyWriteWhatMayOnlyBeRead) {
  constexpr std::size_t page = 4096;
  void* const constant = mmap(nullptr, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(constant, MAP_FAILED);
  DeviceMemory::instance().reach_host(find_host_memory);
  static std::atomic<bool> has_stopped = false;
  FenceRing ring(reinterpret_cast<std::uint64_t>(constant));
  ::testing::internal::CaptureStderr();
  {
    Queues queues;
    ASSERT_NE(queues.add(model_device(), ring.info(), nullptr, [] { has_stopped = true; }), nullptr);
    ring.submit();
    EXPECT_TRUE(comes_true([] { return has_stopped.load(); }));
  }
  DeviceMemory::instance().reach_host(nullptr);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("may only be read"));
  EXPECT_FALSE(ring.is_done());
  munmap(constant, page);
}

TEST(ModelQueues, RefuseOtherKindsByNumber) {
  SilentRing ring;
  Queues queues;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(queues.add(model_device(), ring.info(static_cast<QueueType>(7)), nullptr, nullptr), nullptr);
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("a queue of type 7"));
}

Allocation known(std::uint64_t address) { return DeviceMemory::instance().lookup(host_pointer(address)); }

TEST(ModelMemory, KnowsWhatKernelsReachAndTouchesNothing) {
  // Addresses at which nothing is mapped: reading one would end the test.
  constexpr std::uint64_t host = 0x20'0000'0000;
  constexpr std::uint64_t vram = 0x21'0000'0000;
  constexpr std::uint64_t code = 0x22'0000'0000;
  constexpr std::uint64_t hidden = 0x23'0000'0000;
  constexpr std::uint64_t doorbell = 0x24'0000'0000;
  constexpr std::uint64_t bytes = 0x2000;
  add_memory(model_device(), host, bytes, allocation_host | allocation_write);
  add_memory(model_device(), vram, bytes, allocation_vram | allocation_public | allocation_write);
  add_memory(model_device(), code, bytes, allocation_host | allocation_write | allocation_execute);
  add_memory(model_device(), hidden, bytes, allocation_vram | allocation_write | allocation_execute);
  add_memory(model_device(), doorbell, bytes, allocation_host | allocation_doorbell | allocation_write);
  EXPECT_EQ(known(host).bytes, bytes);
  EXPECT_EQ(known(host).kind, MemoryKind::host_pinned);
  EXPECT_EQ(known(vram + bytes - 1).base, vram);
  EXPECT_EQ(known(vram + bytes).base, 0U);
  EXPECT_EQ(known(code).kind, MemoryKind::code);
  EXPECT_EQ(known(hidden).base, 0U);
  EXPECT_EQ(known(doorbell).base, 0U);
  EXPECT_TRUE(queues::CodeMap::instance().find(code).has_value());
  EXPECT_FALSE(queues::CodeMap::instance().find(hidden).has_value());
  for (const std::uint64_t address : {host, vram, code, hidden, doorbell}) remove_memory(address);
  EXPECT_EQ(known(host).base, 0U);
  EXPECT_FALSE(queues::CodeMap::instance().find(code).has_value());
}

TEST(ModelMemory, HostMemoryIsWhatTheProcessHasMapped) {
  constexpr std::size_t page = 4096;
  void* const mapped = mmap(nullptr, 3 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  const auto base = reinterpret_cast<std::uint64_t>(mapped);
  EXPECT_TRUE(find_host_memory(base).holds(base, 3 * page));
  ASSERT_EQ(mprotect(host_pointer(base + page), page, PROT_NONE), 0);
  EXPECT_TRUE(find_host_memory(base).holds(base, page));
  EXPECT_FALSE(find_host_memory(base).holds(base, page + 1));
  EXPECT_EQ(find_host_memory(base + page).bytes, 0U);
  ASSERT_EQ(mprotect(host_pointer(base + page), page, PROT_READ), 0);
  EXPECT_FALSE(find_host_memory(base + page).writable);
  EXPECT_TRUE(find_host_memory(base + (2 * page)).writable);
  munmap(mapped, 3 * page);
  EXPECT_FALSE(find_host_memory(base).holds(base, 1));
  EXPECT_EQ(find_host_memory(0x20'0000'0000).bytes, 0U) << "an address of the GPU's";
}

// Without the thunk's word, a kernel reads and writes what the host has.
TEST(ModelMemory, KernelsReachTheHostsMemory) {
  const testing::Assembled kernel(R"(
    s_load_dwordx2 s[6:7], s[0:1], 0x0
    v_lshlrev_b32 v1, 2, v0
    s_waitcnt lgkmcnt(0)
    global_load_dword v2, v1, s[6:7]
    s_waitcnt vmcnt(0)
    v_add_u32 v2, 5, v2
    global_store_dword v1, v2, s[6:7])");
  std::vector<std::uint32_t> numbers(64, 37);
  const auto address = reinterpret_cast<std::uint64_t>(numbers.data());
  EXPECT_FALSE(kernel.run({address}).ok()) << "no allocation, no interface for models";
  DeviceMemory::instance().reach_host(find_host_memory);
  const Status reached = kernel.run({address});
  const Status astray = kernel.run({0x20'0000'0000});
  DeviceMemory::instance().reach_host(nullptr);
  EXPECT_TRUE(reached.ok()) << reached.text;
  EXPECT_THAT(numbers, ::testing::Each(42U));
  EXPECT_THAT(astray.text, HasSubstr("reads 4 bytes at 0x2000000000"));
}

}  // namespace
}  // namespace wavejit::simgpu::model
