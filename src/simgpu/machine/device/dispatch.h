// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A launch as a queue's packet asks for it: everything by address.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "simgpu/machine/device/device.h"
#include "simgpu/machine/loader/resident_code.h"
#include "simgpu/process/simulated_time.h"

namespace wavejit::simgpu {

// hsa_kernel_dispatch_packet_t (HSA runtime specification 1.2, section 2.9.6).
struct DispatchPacket {
  std::uint16_t header = 0;
  std::uint16_t setup = 0;  // bits 1..0: dimensions
  std::array<std::uint16_t, 3> workgroup_size{};
  std::uint16_t reserved0 = 0;
  std::array<std::uint32_t, 3> grid{};  // work-items
  std::uint32_t private_bytes = 0;      // of a lane
  std::uint32_t group_bytes = 0;
  std::uint64_t kernel_object = 0;
  std::uint64_t kernarg = 0;
  std::uint64_t reserved1 = 0;
  std::uint64_t completion_signal = 0;
};
static_assert(sizeof(DispatchPacket) == 64);

struct DispatchRequest {
  DispatchPacket packet;
  std::shared_ptr<ResidentCode> code;
  std::shared_ptr<const ResidentKernel> kernel;
  std::uint64_t queue = 0;  // the address of the amd_queue_t, which kernels may read
  std::uint64_t queue_bytes = 0;
  bool cooperative = false;                  // of a queue for launches whose workgroups wait for each other
  std::optional<LaunchBegin> begin = {};     // nothing: the queue keeps the host's time
  const std::atomic<bool>* stops = nullptr;  // becomes true when its queue is destroyed: the kernel ends where it is
};

// What a packet processor writes to a queue's inactive signal (ROCr's amd_aql_queue.cpp reads these bits).
enum class QueueError : std::uint64_t {
  none = 0,
  dimensions = 0x2,
  group_memory = 0x4,
  code = 0x8,
  unsupported_packet = 0x20,
  workgroup_size = 0x40,
  registers = 0x80,
  vendor_packet = 0x100,
  memory_violation = 0x2000'0000,
  illegal_instruction = 0x4000'0000,
  exception = 0x8000'0000,
};

struct DispatchResult {
  QueueError error = QueueError::none;
  Status status;
  std::optional<LaunchTime> time = {};  // where the clock runs
};

}  // namespace wavejit::simgpu
