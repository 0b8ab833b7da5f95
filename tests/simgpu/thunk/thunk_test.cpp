// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <array>
#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "boards/board.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/front_ends/thunk/events.h"
#include "simgpu/front_ends/thunk/images.h"
#include "simgpu/front_ends/thunk/interrupts.h"
#include "simgpu/front_ends/thunk/memory.h"
#include "simgpu/front_ends/thunk/queues.h"
#include "simgpu/front_ends/thunk/runtime_version.h"
#include "simgpu/front_ends/thunk/topology.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/device/device.h"

namespace wavejit::simgpu::thunk {
namespace {

class Thunk : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(Device::open("gfx942", 2).has_value()); }
};

bool gpu_reaches(const std::vector<char>& bytes, std::size_t offset) {
  return DeviceMemory::instance().lookup(bytes.data() + offset).base != 0;
}

TEST_F(Thunk, NodesSayWhatTheTargetTableSays) {
  ASSERT_EQ(node_count(), 3U);
  NodeProperties host;
  ASSERT_TRUE(describe_node(0, host));
  EXPECT_GE(host.cpu_cores, 1U);
  EXPECT_EQ(host.simds, 0U);
  EXPECT_EQ(host.io_links, 2U);
  NodeProperties gpu;
  ASSERT_TRUE(describe_node(2, gpu));
  const boards::Board& target = *boards::find_product("gfx942");
  EXPECT_EQ(gpu.simds / gpu.simds_per_compute_unit, static_cast<std::uint32_t>(target.compute_units));
  EXPECT_EQ(gpu.engine_id >> 10 & 0x3f, 9U);
  EXPECT_EQ(gpu.engine_id >> 16 & 0xff, 4U);
  EXPECT_EQ(gpu.engine_id >> 24, 2U);
  EXPECT_EQ(gpu.lds_kib, 64U);
  EXPECT_EQ(gpu.xccs, 8U);
  EXPECT_EQ(gpu.sdma_engines, 2U);
  EXPECT_EQ(gpu.xgmi_sdma_engines, 14U);
  EXPECT_EQ(std::u16string(gpu.marketing_name.data()), u"MI300X (simulated gfx942)");
  std::vector<MemoryProperties> banks(gpu.memory_banks);
  ASSERT_TRUE(describe_memory(2, banks));
  EXPECT_EQ(banks[0].heap, Heap::frame_buffer_public);
  EXPECT_EQ(std::uint64_t{banks[0].bytes},
            target.memory_bytes);  // packed: a reference to the field would not be aligned
  std::vector<IoLinkProperties> links(gpu.io_links);
  ASSERT_TRUE(describe_links(2, links));
  EXPECT_EQ(links[0].node_to, 0U);
  EXPECT_EQ(links[1].node_to, 1U);
  EXPECT_FALSE(describe_node(3, gpu));
}

TEST_F(Thunk, MemoryComesFromTheDeviceAndGoesBack) {
  Memory& memory = Memory::instance();
  const std::uint64_t before = memory.available(1);
  void* address = nullptr;
  ASSERT_EQ(memory.allocate(1, 8192, 0, flag_host_access, &address), KmtStatus::success);
  EXPECT_EQ(memory.available(1), before - 8192);
  const std::array<std::uint32_t, 2> nodes = {1, 2};
  EXPECT_TRUE(memory.map(address, nodes));
  int mark = 0;
  EXPECT_TRUE(memory.set_user_data(address, &mark));
  PointerInfo info;
  ASSERT_TRUE(memory.describe(static_cast<char*>(address) + 5000, info));
  EXPECT_EQ(info.type, PointerType::allocated);
  EXPECT_EQ(std::uint64_t{info.bytes}, 8192U);
  EXPECT_EQ(info.mapped_nodes, 2U);
  EXPECT_TRUE(info.user_data == &mark);
  EXPECT_EQ(memory.free(address), KmtStatus::success);
  EXPECT_EQ(memory.free(address), KmtStatus::invalid_parameter);
  EXPECT_FALSE(memory.describe(address, info));
  EXPECT_EQ(memory.available(1), before);
  EXPECT_EQ(memory.allocate(1, before + 4096, 0, 0, &address), KmtStatus::no_memory);
  EXPECT_EQ(memory.allocate(7, 4096, 0, 0, &address), KmtStatus::invalid_node);
}

// Programs pin the same buffer twice, and parts of what is pinned already.
TEST_F(Thunk, RegisteredRangesMayOverlap) {
  Memory& memory = Memory::instance();
  std::vector<char> bytes(10000);
  memory.register_host(bytes.data(), 4000);
  memory.register_host(bytes.data() + 3000, 4000);
  memory.register_host(bytes.data(), 4000);
  EXPECT_TRUE(gpu_reaches(bytes, 6999));
  EXPECT_FALSE(gpu_reaches(bytes, 7001));
  EXPECT_TRUE(memory.deregister_host(bytes.data()));
  EXPECT_TRUE(gpu_reaches(bytes, 0));
  EXPECT_TRUE(memory.deregister_host(bytes.data()));
  EXPECT_FALSE(gpu_reaches(bytes, 0));
  EXPECT_TRUE(gpu_reaches(bytes, 3000));
  EXPECT_TRUE(memory.deregister_host(bytes.data() + 3000));
  EXPECT_FALSE(gpu_reaches(bytes, 3000));
  EXPECT_FALSE(memory.deregister_host(bytes.data()));
}

TEST_F(Thunk, EventsWakeWhoeverWaits) {
  Events& events = Events::instance();
  Event* const one = events.create({}, false, false);
  Event* const two = events.create({}, true, false);
  const std::array<Event*, 2> both = {one, two};
  // Without a mailbox that it may write to, a copy engine raises nothing.
  const std::uint64_t mailbox = one->mailbox;
  EXPECT_TRUE(DeviceMemory::instance().lookup(host_pointer(mailbox)).holds(mailbox, 8));
  EXPECT_EQ(events.wait(both, false, 1), KmtStatus::wait_timeout);
  std::thread setter([&] { events.set(two->id); });
  EXPECT_EQ(events.wait(both, false, 10'000), KmtStatus::success);
  setter.join();
  EXPECT_EQ(events.wait(both, true, 1), KmtStatus::wait_timeout);
  events.set(one->id);
  EXPECT_EQ(events.wait(both, true, 0), KmtStatus::success);
  EXPECT_EQ(events.wait({&one, 1}, false, 0), KmtStatus::wait_timeout);  // it reset itself
  EXPECT_EQ(events.wait({&two, 1}, false, 0), KmtStatus::success);       // this one did not
  const auto gone = one->id;
  EXPECT_TRUE(events.destroy(one));
  EXPECT_TRUE(events.destroy(two));
  EXPECT_FALSE(events.set(gone));
}

// Two threads wait for one event that resets itself: each looks at its age, and none sleeps on.
TEST_F(Thunk, AnEventThatAgedIsOverForEveryoneWhoHasNotSeenIt) {
  Events& events = Events::instance();
  Event* const event = events.create({}, false, false);
  std::uint64_t one = 1;
  std::uint64_t two = 1;
  EXPECT_EQ(events.wait({&event, 1}, false, 0, &one), KmtStatus::wait_timeout);
  events.set(event->id);
  EXPECT_EQ(events.wait({&event, 1}, false, 0, &one), KmtStatus::success);
  EXPECT_EQ(events.wait({&event, 1}, false, 0, &two), KmtStatus::success) << "the other took it";
  EXPECT_EQ(one, two);
  EXPECT_EQ(events.wait({&event, 1}, false, 0, &one), KmtStatus::wait_timeout);
  EXPECT_TRUE(events.destroy(event));
}

TEST(Interrupts, TheSwitchIsTheOnlyByteThatWasCleared) {
  const std::vector<std::uint8_t> before = {0, 1, 7, 1, 1, 0};
  EXPECT_EQ(only_cleared_byte(before, std::vector<std::uint8_t>{3, 1, 0, 0, 1, 1}), 3U);
  EXPECT_EQ(only_cleared_byte(before, before), std::nullopt);
  EXPECT_EQ(only_cleared_byte(before, std::vector<std::uint8_t>{0, 0, 7, 0, 1, 0}), std::nullopt) << "two of them";
}

TEST_F(Thunk, QueuesOfOtherKindsAreRefused) {
  QueueResource resource;
  std::array<std::uint64_t, 64> ring{};
  EXPECT_EQ(Queues::instance().create(1, QueueType::compute, ring.data(), sizeof ring, resource),
            KmtStatus::not_supported);
  EXPECT_EQ(Queues::instance().create(0, QueueType::compute_aql, ring.data(), sizeof ring, resource),
            KmtStatus::invalid_node);
  EXPECT_EQ(Queues::instance().create(1, QueueType::compute_aql, nullptr, sizeof ring, resource),
            KmtStatus::invalid_parameter);
  EXPECT_EQ(Queues::instance().destroy(99), KmtStatus::invalid_handle);
  EXPECT_FALSE(Queues::instance().ring_doorbell(99));
}

// A copy engine's queue brings its own pointers; its doorbell is memory.
TEST_F(Thunk, CopyEnginesRunWhatIsWrittenToTheirRings) {
  Memory& memory = Memory::instance();
  void* place = nullptr;
  ASSERT_EQ(memory.allocate(0, 8192, 0, flag_host_access, &place), KmtStatus::success);
  auto* const words = static_cast<std::uint32_t*>(place);
  for (const QueueType type : {QueueType::sdma, QueueType::sdma_xgmi, QueueType::sdma_by_engine}) {
    auto* const fence = static_cast<std::uint64_t*>(place) + 512;
    *fence = 0;
    QueueResource resource;
    ASSERT_EQ(Queues::instance().create(1, type, place, 4096, resource), KmtStatus::success);
    ASSERT_NE(std::uint64_t{resource.read_pointer}, 0U);
    const auto address = reinterpret_cast<std::uint64_t>(fence);
    words[0] = 5;  // FENCE
    words[1] = static_cast<std::uint32_t>(address);
    words[2] = static_cast<std::uint32_t>(address >> 32);
    words[3] = 99;
    std::atomic_ref(*host_pointer<std::uint64_t>(resource.write_pointer)).store(16);
    const std::atomic_ref done(*reinterpret_cast<std::uint32_t*>(fence));
    for (int i = 0; i < 10'000 && done.load() != 99; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(done.load(), 99U);
    EXPECT_TRUE(Queues::instance().ring_doorbell(resource.id));
    EXPECT_EQ(Queues::instance().destroy(resource.id), KmtStatus::success);
  }
  EXPECT_EQ(memory.free(place), KmtStatus::success);
}

TEST(RuntimeVersion, IsReadFromTheFilesName) {
  EXPECT_TRUE(knows_runtime("/usr/lib/x86_64-linux-gnu/libhsa-runtime64.so.1.18.0"));
  EXPECT_TRUE(knows_runtime("/opt/rocm-7.2.4/lib/libhsa-runtime64.so.1.18.70204"));
  EXPECT_FALSE(knows_runtime("/opt/rocm/lib/libhsa-runtime64.so.1.15.60304"));
  EXPECT_FALSE(knows_runtime("/opt/rocm/lib/libhsa-runtime64.so.1"));
  EXPECT_FALSE(knows_runtime(""));
  // As wheels have it.
  EXPECT_TRUE(knows_runtime("/venv/x.libs/libhsa-runtime64-0ba78719.so.1.18.70204"));
  EXPECT_FALSE(knows_runtime("/venv/x.libs/libhsa-runtime64-0ba78719.so.1.21.0"));
}

TEST(Images, AUriNamesMemoryOrAFile) {
  const auto memory = parse_image_uri("memory://1234#offset=0x7f00aa00&size=5120");
  ASSERT_TRUE(memory.has_value());
  EXPECT_EQ(memory->file, "");
  EXPECT_EQ(memory->offset, 0x7f00aa00U);
  EXPECT_EQ(memory->bytes, 5120U);
  const auto file = parse_image_uri("file:///opt/kernel.co#offset=64&size=128");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->file, "/opt/kernel.co");
  EXPECT_EQ(file->offset, 64U);
  EXPECT_EQ(parse_image_uri("file:///opt/kernel.co")->bytes, 0U);
  for (const char* wrong : {"", "memory://1", "memory://1#offset=4096", "file://", "http://x#offset=1&size=1"}) {
    EXPECT_FALSE(parse_image_uri(wrong).has_value()) << wrong;
  }
  EXPECT_FALSE(find_image(0x1000).has_value());  // no list yet
}

}  // namespace
}  // namespace wavejit::simgpu::thunk
