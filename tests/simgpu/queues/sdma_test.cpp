// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Copy engines' queues: what every packet does, in both layouts, and how a queue stops.
#include <random>
#include <set>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sdma_words.h"
#include "simgpu/front_ends/queues/sdma_packets.h"
#include "simgpu/front_ends/queues/signals.h"
#include "support/idle_cost.h"

namespace wavejit::simgpu::testing {
namespace {

using boards::gfx12_sdma;
using boards::gfx9_sdma;
using boards::SdmaPackets;
using ::testing::HasSubstr;

class Sdma : public ::testing::TestWithParam<SdmaPackets> {
 protected:
  // What the runtime appends to every copy.
  void expect_done(SdmaRing& ring) {
    signal_.at<std::uint64_t>(0) = 1;
    ring.push(decrement_words(signal_.address()));
    EXPECT_TRUE(SdmaRing::happens([&] { return signal_.at<std::uint64_t>(0).load() == 0; }));
  }

  Bytes signal_{8};
};
INSTANTIATE_TEST_SUITE_P(Layouts, Sdma, ::testing::Values(gfx9_sdma, gfx12_sdma),
                         [](const auto& layout) { return layout.param.cache_control ? "gfx12" : "gfx9"; });

TEST_P(Sdma, CopiesEveryByteAndNoOther) {
  SdmaRing ring(GetParam());
  Bytes from(9000);
  from.number(1);
  for (const std::uint32_t bytes : {1U, 3U, 4U, 64U, 4095U, 4096U, 8100U}) {
    for (const std::uint64_t offset : {0U, 1U, 7U, 130U}) {
      Bytes to(9000);
      ring.push(copy_words(to.address(offset), from.address(3), bytes));
      expect_done(ring);
      for (std::uint64_t i = 0; i < to.count(); ++i) {
        const bool inside = i >= offset && i < offset + bytes;
        ASSERT_EQ(to[i], inside ? from[i - offset + 3] : 0) << bytes << " bytes to " << offset << ", byte " << i;
      }
    }
  }
}

TEST_P(Sdma, FillsBytesHalvesAndDwords) {
  SdmaRing ring(GetParam());
  for (const std::uint32_t size : {0U, 1U, 2U}) {
    const std::uint32_t element = 1U << size;
    Bytes to(4096);
    // A count is bytes less one, and ROCm's is of elements less one.
    ring.push(fill_words(to.address(64), 0xa1b2c3d4, (100 - 1) * element, size));
    expect_done(ring);
    for (std::uint32_t i = 0; i < to.count(); ++i) {
      const bool inside = i >= 64 && i < 64 + (100 - 1) * element + element;
      ASSERT_EQ(to[i], inside ? (0xa1b2c3d4U >> (i % element * 8) & 0xff) : 0) << size << ", byte " << i;
    }
  }
  Bytes whole(4096);
  ring.push(fill_words(whole.address(), 0x01020304, 4095));
  expect_done(ring);
  EXPECT_EQ(whole.at<std::uint32_t>(4092), 0x01020304U);
}

std::atomic<std::uint32_t> raised = 0;

TEST_P(Sdma, FencesTrapsAndStampsFollowEachOther) {
  SdmaRing ring(GetParam(), 4096, {}, [](std::uint32_t event) { raised = event; });
  Bytes memory(64);
  raised = 0;
  const std::uint64_t before = queues::clock_now();
  ring.push(timestamp_words(memory.address(0)));
  ring.push(nop_words(5));
  ring.push(timestamp_words(memory.address(8), 1));
  ring.push(fence_words(memory.address(20), 0x12345678));
  ring.push(trap_words(77));
  EXPECT_TRUE(SdmaRing::happens([] { return raised == 77; }));
  EXPECT_EQ(memory.at<std::uint32_t>(20), 0x12345678U);
  EXPECT_EQ(memory.at<std::uint32_t>(16), 0U);
  EXPECT_EQ(memory.at<std::uint32_t>(24), 0U);
  EXPECT_GE(memory.at<std::uint64_t>(0), before);
  EXPECT_GE(memory.at<std::uint64_t>(8), memory.at<std::uint64_t>(0));
  EXPECT_TRUE(ring.runs_until_read());
}

TEST_P(Sdma, APollWaitsForWhatItsMaskLeaves) {
  struct Case {
    std::uint32_t function, before, after;  // against 5
  };
  for (const Case& it :
       {Case{1, 0xf5, 0xf4}, {2, 0xf6, 0xf5}, {3, 0xf4, 0xf5}, {4, 0xf5, 0xf6}, {5, 0xf4, 0xf5}, {6, 0xf5, 0xf6}}) {
    SdmaRing ring(GetParam());
    Bytes memory(16);
    memory.at<std::uint32_t>(0) = it.before;
    ring.push(poll_words(memory.address(), it.function, 5, 0xf));
    ring.push(fence_words(memory.address(8), 1));
    EXPECT_TRUE(SdmaRing::happens([&] { return !ring.queue().waits_for().empty(); })) << it.function;
    EXPECT_THAT(ring.queue().waits_for(), HasSubstr("a copy engine's poll")) << it.function;
    EXPECT_EQ(memory.at<std::uint32_t>(8), 0U) << it.function;
    memory.at<std::uint32_t>(0) = it.after;
    EXPECT_TRUE(ring.runs_until_read()) << it.function;
    EXPECT_EQ(memory.at<std::uint32_t>(8), 1U);
  }
}

TEST_P(Sdma, FlushesAndAlwaysTruePollsTouchNothing) {
  SdmaRing ring(GetParam());
  ring.push(flush_words());
  ring.push({8 | (1U << 26) | (3U << 28), 0x40, 0, 1, 1, 0});
  ring.push(poll_words(0x10, 0, 0, 0));
  EXPECT_TRUE(ring.runs_until_read());
}

TEST_P(Sdma, APatientQueueSaysWhatItWaitsFor) {
  ::testing::internal::CaptureStderr();
  {
    SdmaRing ring(GetParam(), 4096, {.patience = std::chrono::milliseconds(20)});
    Bytes memory(16);
    ring.push(poll_words(memory.address(), 3, 9, 0xffffffff));
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_NE(ring.read(), ring.written());
  }  // and ends while it waits
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("a queue has waited for 0.02 s and waits on: a copy engine's poll"));
  EXPECT_THAT(said, HasSubstr("it must become equal to 0x9"));
}

TEST_P(Sdma, AtomicsOfBothWidths) {
  struct Case {
    std::uint32_t operation;  // of 32 bits; 32 higher of 64
    std::uint64_t old, operand, compare, result;
  };
  const std::uint64_t minus_one = ~std::uint64_t{0};
  for (const Case& it : {Case{7, 3, 9, 0, 9},
                         {8, 3, 9, 3, 9},
                         {8, 3, 9, 4, 3},
                         {15, 3, minus_one, 0, 2},
                         {16, 3, 5, 0, minus_one - 1},
                         {17, 3, minus_one, 0, minus_one},
                         {18, 3, minus_one, 0, 3},
                         {19, 3, minus_one, 0, 3},
                         {20, 3, minus_one, 0, minus_one},
                         {21, 6, 3, 0, 2},
                         {22, 6, 3, 0, 7},
                         {23, 6, 3, 0, 5},
                         {24, 6, 7, 0, 7},
                         {24, 7, 7, 0, 0},
                         {25, 6, 9, 0, 5},
                         {25, 0, 9, 0, 9},
                         {25, 12, 9, 0, 9}}) {
    SdmaRing ring(GetParam());
    Bytes memory(32);
    memory.at<std::uint64_t>(8) = it.old;
    memory.at<std::uint64_t>(16) = it.old | 0xabcdULL << 32;
    ring.push(atomic_words(memory.address(8), it.operation + 32, it.operand, it.compare));
    ring.push(atomic_words(memory.address(16), it.operation, it.operand, it.compare));
    ASSERT_TRUE(ring.runs_until_read()) << it.operation;
    EXPECT_EQ(memory.at<std::uint64_t>(8), it.result) << it.operation;
    EXPECT_EQ(memory.at<std::uint32_t>(16), low(it.result)) << it.operation;
    EXPECT_EQ(memory.at<std::uint32_t>(20), 0xabcdU) << it.operation;
  }
}

TEST_P(Sdma, ACompareAndSwapMayWait) {
  SdmaRing ring(GetParam());
  Bytes memory(8);
  ring.push(atomic_words(memory.address(), 40, 11, 5, true));
  EXPECT_TRUE(SdmaRing::happens([&] { return !ring.queue().waits_for().empty(); }));
  memory.at<std::uint64_t>(0) = 5;
  EXPECT_TRUE(ring.runs_until_read());
  EXPECT_EQ(memory.at<std::uint64_t>(0), 11U);
}

// 3 planes of 5 rows of 7 elements of 4 bytes, at x 2, y 1, z 1 of one surface to x 0, y 2 of another.
TEST_P(Sdma, CopiesRectangles) {
  const SdmaPackets& layout = GetParam();
  SdmaRing ring(layout);
  Bytes from(8192);
  Bytes to(8192);
  from.number(9);
  constexpr std::uint32_t element = 4, from_pitch = 16, from_slice = 160, to_pitch = 12, to_slice = 120;
  const auto pitch_and_z = [&](std::uint32_t pitch, std::uint32_t z) { return (pitch - 1) << layout.pitch_shift | z; };
  ring.push({1U | (4U << 8) | (2U << 29), low(from.address()), high(from.address()), 2U | (1U << 16),
             pitch_and_z(from_pitch, 1), from_slice - 1, low(to.address(4)), high(to.address(4)), 2U << 16,
             pitch_and_z(to_pitch, 0), to_slice - 1, 6U | (4U << 16), 2U});
  expect_done(ring);
  std::set<std::uint64_t> written;
  for (std::uint32_t z = 0; z < 3; ++z)
    for (std::uint32_t y = 0; y < 5; ++y)
      for (std::uint32_t byte = 0; byte < 7 * element; ++byte) {
        const std::uint64_t source = ((z + 1) * from_slice + (y + 1) * from_pitch + 2) * element + byte;
        const std::uint64_t target = 4 + (z * to_slice + (y + 2) * to_pitch) * element + byte;
        written.insert(target);
        ASSERT_EQ(to[target], from[source]) << z << ' ' << y << ' ' << byte;
      }
  for (std::uint64_t i = 0; i < to.count(); ++i)
    if (!written.contains(i)) ASSERT_EQ(to[i], 0) << i;
}

// The widest values of each field, read and not run.
TEST(SdmaPackets, LayoutsDifferInTheirWidths) {
  const auto side_of = [](const SdmaPackets& layout) {
    Words words(13, 0xffffffff);
    words[0] = 1 | (4 << 8);
    words[1] = words[6] = 0x1000;
    const auto packet = queues::read_sdma(words, layout);
    EXPECT_TRUE(packet.has_value());
    return std::get<queues::SdmaRectangle>(packet.value().command);
  };
  const auto nine = side_of(gfx9_sdma);
  EXPECT_EQ(nine.width, 1U << 14);
  EXPECT_EQ(nine.depth, 1U << 11);
  EXPECT_EQ(nine.from.pitch, 1U << 19);
  EXPECT_EQ(nine.from.slice, 1U << 28);
  const auto twelve = side_of(gfx12_sdma);
  EXPECT_EQ(twelve.height, 1U << 16);
  EXPECT_EQ(twelve.depth, 1U << 14);
  EXPECT_EQ(twelve.to.pitch, 1U << 16);
  EXPECT_EQ(twelve.to.slice, std::uint64_t{1} << 32);
}

TEST(SdmaPackets, CacheControlIsOfTheLaterLayout) {
  EXPECT_TRUE(queues::read_sdma(cache_words(), gfx12_sdma).has_value());
  const auto refused = queues::read_sdma(cache_words(), gfx9_sdma);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error(), HasSubstr("GCR (17): this target's engines have no cache control"));
}

TEST_P(Sdma, PacketsMayLieAroundTheRingsEnd) {
  SdmaRing ring(GetParam(), 64);
  Bytes from(256);
  Bytes to(256);
  from.number(5);
  for (std::uint64_t i = 0; i < 40; ++i) {
    ring.push(copy_words(to.address(i * 4), from.address(i * 4), 4));
    ASSERT_TRUE(ring.runs_until_read());
  }
  for (std::uint64_t i = 0; i < 256; ++i) ASSERT_EQ(to[i], i < 160 ? from[i] : 0) << i;
  EXPECT_EQ(ring.read(), 40 * 28U);
}

// The doorbell is memory that nobody rings: a write pointer is found without it.
TEST_P(Sdma, AWritePointerIsFoundWithoutADoorbell) {
  Bytes ring(4096);
  Bytes pointers(16);
  Bytes memory(16);
  const queues::SdmaQueue queue({.ring = ring.address(),
                                 .bytes = ring.count(),
                                 .read_pointer = pointers.address(0),
                                 .write_pointer = pointers.address(8),
                                 .layout = GetParam()},
                                nullptr);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const Words words = fence_words(memory.address(), 3);
  std::memcpy(&ring[0], words.data(), words.size() * 4);
  pointers.at<std::uint64_t>(8) = words.size() * 4;
  EXPECT_TRUE(SdmaRing::happens([&] { return memory.at<std::uint32_t>(0) == 3; }));
}

// It looks at its write pointer every few milliseconds.
TEST(SdmaQueue, IdlingCostsLittle) {
  SdmaRing ring(gfx9_sdma);
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  const double cost = tests::idle_cost(0.05);
  RecordProperty("processor_seconds", std::to_string(cost));
  EXPECT_LT(cost, 0.05);
}

struct Refused {
  Words words;
  const char* says;
};

TEST_P(Sdma, ABadPacketStopsItsQueueAndSaysWhy) {
  Bytes memory(4096);
  const std::uint64_t good = memory.address();
  const std::uint64_t nowhere = memory.address(4096 + 4096);  // in the gap between neighbours
  const std::vector<Refused> cases = {
      {{14, 0, 0}, "operation 14 (header 0x0000000e); known are NOP (0), COPY (1), FENCE (5)"},
      {{4, 0, 0, 0, 0, 0}, "operation 4"},
      {{1 | (3 << 8), 0, 0, 0, 0, 0, 0}, "COPY (1): kind 3 (bits 15..8); known is 0 (linear) and 4 (rectangle)"},
      {{1 | (1 << 27), 0, 0, 0, 0, 0, 0}, "broadcast copies are not simulated"},
      {{1, 0xffffffff, 0, 0, 0, 0, 0}, "count 0xffffffff, of which the bits from 30 on must be 0"},
      {{1, 3, 1 << 16, 0, 0, 0, 0}, "byte swaps are not simulated"},
      {{1 | (4 << 8) | (5U << 29), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, "elements of 2^5 bytes"},
      {copy_words(good, nowhere, 64), "COPY (1), linear: reads 64 bytes at"},
      {copy_words(nowhere, good, 64), "COPY (1), linear: writes 64 bytes at"},
      {copy_words(memory.address(4090), good, 64), " is no memory of the GPU: 0 bytes behind the end of"},
      {copy_words(good, 0, 4), "of which 0x0 is no memory of the GPU"},
      {fill_words(memory.address(4092), 1, 7), "CONST_FILL (11): writes 8 bytes at"},
      {fill_words(good + 2, 1, 7), "which is no multiple of 4"},
      {fill_words(good, 1, 7, 3), "a fill size of 3"},
      {fence_words(nowhere, 1), "FENCE (5): writes 4 bytes at"},
      {fence_words(good + 1, 1), "FENCE (5): address"},
      {{5 | (2 << 8), 0, 0, 0}, "FENCE (5): kind 2 (bits 15..8); known is 0"},
      {poll_words(nowhere, 3, 1, 1), "POLL_REGMEM (8): polls 4 bytes at"},
      {poll_words(good, 7, 1, 1), "comparison 7"},
      {{8 | (3U << 28), 0x1234, 0, 0, 0, 0}, "waits for register 0x1234; memory alone is polled"},
      {atomic_words(nowhere, add64, 1), "ATOMIC (10): changes 8 bytes at"},
      {atomic_words(good + 4, add64, 1), "which is no multiple of 8"},
      {atomic_words(good, 9, 1), "ATOMIC (10): operation 9 (bits 31..25)"},
      {atomic_words(good, 111, 1), "operation 111"},
      {timestamp_words(nowhere), "TIMESTAMP (13): writes 8 bytes at"},
      {timestamp_words(good, 0), "TIMESTAMP (13): kind 0"},
      {{1, 0, 0}, "COPY (1), linear: a packet of 7 dwords, of which the queue holds 3"},
      {{9 << 16, 0}, "NOP (0): 10 dwords, of which the queue holds 2"},
  };
  for (const Refused& it : cases) {
    ::testing::internal::CaptureStderr();
    SdmaRing ring(GetParam());
    ring.push(nop_words(1));
    ASSERT_TRUE(ring.runs_until_read());
    ring.push(it.words);
    EXPECT_TRUE(ring.stops()) << it.says;
    ring.push(fence_words(good, 0x55));  // runs no more
    EXPECT_EQ(ring.read(), 8U);
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_THAT(said, HasSubstr("a copy engine's queue stopped: the packet at byte 0x8 of the ring (0x"));
    EXPECT_THAT(said, HasSubstr(it.says));
  }
  for (std::uint64_t i = 0; i < memory.count(); ++i) ASSERT_EQ(memory[i], 0) << i;
}

TEST_P(Sdma, AWritePointerThatCannotBeStopsItsQueue) {
  for (const std::uint64_t write : {std::uint64_t{4100}, std::uint64_t{6}, ~std::uint64_t{3}}) {
    ::testing::internal::CaptureStderr();
    SdmaRing ring(GetParam());
    ring.set_write_pointer(write);
    EXPECT_TRUE(ring.stops());
    EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("its write pointer is"));
  }
}

// Several allocations may follow each other without a gap: what was mapped piece by piece is copied at once.
TEST_P(Sdma, ACopyMayCrossFromOneAllocationIntoTheNext) {
  std::vector<std::uint8_t> both(8192);
  DeviceMemory& memory = DeviceMemory::instance();
  ASSERT_TRUE(memory.adopt(both.data(), 4096, MemoryKind::host_registered, 0));
  ASSERT_TRUE(memory.adopt(both.data() + 4096, 4096, MemoryKind::host_registered, 0));
  Bytes from(8192);
  from.number(3);
  SdmaRing ring(GetParam());
  ring.push(copy_words(reinterpret_cast<std::uint64_t>(both.data()), from.address(), 8192));
  expect_done(ring);
  for (std::uint64_t i = 0; i < both.size(); ++i) ASSERT_EQ(both[i], from[i]) << i;
  EXPECT_TRUE(memory.forget(both.data()));
  EXPECT_TRUE(memory.forget(both.data() + 4096));
}

// Whatever lies in a ring: reading it ends, with a packet of at least a dword or a text, and touches nothing.
TEST(SdmaPackets, ReadingNoiseEnds) {
  std::mt19937 random(7);  // NOLINT(bugprone-random-generator-seed): the same noise every time
  constexpr std::uint32_t known[] = {0, 1, 5, 6, 8, 10, 11, 13, 17};
  for (int i = 0; i < 20000; ++i) {
    Words words(random() % 15);
    for (std::uint32_t& word : words) word = random();
    if (!words.empty() && i % 2 == 0) words[0] = (words[0] & 0xe0000000) | (random() % 8 << 8) | known[random() % 9];
    for (const SdmaPackets& layout : {gfx9_sdma, gfx12_sdma}) {
      const auto packet = queues::read_sdma(words, layout);
      if (packet) {
        EXPECT_GE(packet->dwords, 1U);
        EXPECT_FALSE(packet->name.empty());
      } else {
        EXPECT_FALSE(packet.error().empty());
      }
    }
  }
}

}  // namespace
}  // namespace wavejit::simgpu::testing
