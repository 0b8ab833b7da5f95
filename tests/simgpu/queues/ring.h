// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A queue as AMD's runtime makes one, for tests: a ring, an amd_queue_t, signals; and kernels in executable memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "assembled.h"
#include "simgpu/front_ends/queues/aql_queue.h"
#include "simgpu/front_ends/queues/packets.h"
#include "simgpu/machine/device/dispatch.h"

namespace wavejit::simgpu::testing {

// A signal in memory that the GPU may touch.
class TestSignal {
 public:
  explicit TestSignal(std::int64_t value);
  ~TestSignal();
  TestSignal(const TestSignal&) = delete;
  TestSignal& operator=(const TestSignal&) = delete;
  std::uint64_t address() const { return reinterpret_cast<std::uint64_t>(fields_); }
  queues::Signal& fields() { return *fields_; }
  std::int64_t value() const;
  void set(std::int64_t value);
  // Waits up to ten seconds; fails the test after that.
  void wait_for(std::int64_t value) const;

 private:
  queues::Signal* fields_;
};

// The kernel of an assembled source, in executable memory that the code map knows.
class CodeInMemory {
 public:
  explicit CodeInMemory(const KernelSource& source);
  ~CodeInMemory();
  CodeInMemory(const CodeInMemory&) = delete;
  CodeInMemory& operator=(const CodeInMemory&) = delete;
  std::uint64_t descriptor() const { return assembled_.kernel().descriptor_address(); }
  Device& device() const { return assembled_.device(); }
  std::uint64_t base() const { return base_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t entry() const;

 private:
  Assembled assembled_;
  std::uint64_t base_ = 0;
  std::uint64_t bytes_ = 0;
};

class Ring {
 public:
  explicit Ring(Device& device, std::uint64_t packets = 64, std::uint64_t error_reason = 0, QueueConfig config = {});
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  // Writes a packet as a runtime does, header last, and rings the doorbell.
  template <typename Packet>
  void push(const Packet& packet) {
    static_assert(sizeof(Packet) == queues::packet_bytes);
    queues::RawPacket raw;
    std::memcpy(raw.data(), &packet, sizeof raw);
    push_raw(raw);
  }
  std::uint64_t read_index() const;
  TestSignal& inactive() { return inactive_; }
  queues::AqlQueue& queue() { return *queue_; }
  std::uint16_t header(std::uint64_t index) const;

 private:
  void push_raw(const queues::RawPacket& packet);

  std::uint64_t packets_;
  TestSignal inactive_{0};
  std::uint64_t ring_ = 0;
  queues::QueueFields* fields_ = nullptr;
  std::unique_ptr<queues::AqlQueue> queue_;
};

DispatchPacket dispatch_of(const CodeInMemory& code, std::uint64_t kernarg, std::uint64_t completion,
                           std::uint32_t work_items = 64, std::uint16_t workgroup = 64);
queues::BarrierPacket barrier_of(queues::PacketType type, const std::vector<std::uint64_t>& dependencies,
                                 std::uint64_t completion);

}  // namespace wavejit::simgpu::testing
