// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "ring.h"

#include <atomic>
#include <bit>
#include <cstring>
#include <thread>

#include "gtest/gtest.h"
#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/machine/loader/code_object.h"

namespace wavejit::simgpu::testing {
namespace {

std::uint64_t host_memory(std::uint64_t bytes) {
  return reinterpret_cast<std::uint64_t>(DeviceMemory::instance().allocate(bytes, MemoryKind::host_pinned, 0));
}

}  // namespace

TestSignal::TestSignal(std::int64_t value)
    : fields_(new (host_pointer<void>(host_memory(sizeof(queues::Signal)))) queues::Signal{.kind = 1, .value = value}) {
}

TestSignal::~TestSignal() { DeviceMemory::instance().free(fields_); }

std::int64_t TestSignal::value() const { return queues::value_of(address()); }

void TestSignal::set(std::int64_t value) { queues::set_value(address(), value); }

void TestSignal::wait_for(std::int64_t value) const {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (this->value() != value && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  EXPECT_EQ(this->value(), value);
}

CodeInMemory::CodeInMemory(const KernelSource& source) : assembled_(source) {
  const Allocation holder = DeviceMemory::instance().lookup(host_pointer<void>(descriptor()));
  base_ = holder.base;
  bytes_ = holder.bytes;
  queues::CodeMap::instance().add(base_, bytes_, device());
}

CodeInMemory::~CodeInMemory() { queues::CodeMap::instance().remove(base_); }

std::uint64_t CodeInMemory::entry() const {
  std::int64_t offset = 0;
  std::memcpy(&offset, host_pointer(descriptor() + 16), sizeof offset);
  return descriptor() + static_cast<std::uint64_t>(offset);
}

Ring::Ring(Device& device, std::uint64_t packets, std::uint64_t error_reason, QueueConfig config)
    : packets_(packets), ring_(host_memory(packets * 64)) {
  for (std::uint64_t i = 0; i < packets; ++i) {
    *host_pointer<std::uint16_t>(ring_ + (i * 64)) = static_cast<std::uint16_t>(queues::PacketType::invalid);
  }
  fields_ = new (host_pointer<void>(host_memory(sizeof(queues::QueueFields)))) queues::QueueFields{};
  fields_->ring = ring_;
  fields_->packets = static_cast<std::uint32_t>(packets);
  fields_->inactive_signal = inactive_.address();
  const queues::QueuePlace place{.fields = reinterpret_cast<std::uint64_t>(fields_),
                                 .ring = ring_,
                                 .packets = packets,
                                 .error_reason = error_reason,
                                 .config = config};
  queue_ = std::make_unique<queues::AqlQueue>(device, place, nullptr);
}

Ring::~Ring() {
  queue_.reset();
  DeviceMemory::instance().free(fields_);
  DeviceMemory::instance().free(host_pointer<void>(ring_));
}

void Ring::push_raw(const queues::RawPacket& packet) {
  const std::uint64_t index = std::atomic_ref(fields_->write_index).load();
  const std::uint64_t place = ring_ + (index % packets_ * 64);
  std::memcpy(host_pointer(place + 4), std::bit_cast<const std::byte*>(packet.data()) + 4, 60);
  std::atomic_ref(fields_->write_index).store(index + 1);
  std::atomic_ref(*host_pointer<std::uint32_t>(place)).store(static_cast<std::uint32_t>(packet[0]));
  queue_->ring_doorbell();
}

std::uint64_t Ring::read_index() const { return std::atomic_ref(fields_->read_index).load(); }

std::uint16_t Ring::header(std::uint64_t index) const {
  return std::atomic_ref(*host_pointer<std::uint16_t>(ring_ + (index * 64))).load();
}

DispatchPacket dispatch_of(const CodeInMemory& code, std::uint64_t kernarg, std::uint64_t completion,
                           std::uint32_t work_items, std::uint16_t workgroup) {
  constexpr std::uint16_t system_fences = 0x1400;
  return {.header = system_fences | static_cast<std::uint16_t>(queues::PacketType::kernel_dispatch),
          .setup = 1,
          .workgroup_size = {workgroup, 1, 1},
          .grid = {work_items, 1, 1},
          .kernel_object = code.descriptor(),
          .kernarg = kernarg,
          .completion_signal = completion};
}

queues::BarrierPacket barrier_of(queues::PacketType type, const std::vector<std::uint64_t>& dependencies,
                                 std::uint64_t completion) {
  queues::BarrierPacket packet{.header = static_cast<std::uint16_t>(type), .completion_signal = completion};
  for (std::size_t i = 0; i < dependencies.size(); ++i) packet.dependencies[i] = dependencies[i];
  return packet;
}

}  // namespace wavejit::simgpu::testing
