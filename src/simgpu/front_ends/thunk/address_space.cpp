// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/address_space.h"

#include <sys/resource.h>

#include <atomic>
#include <format>
#include <string>

#include "simgpu/front_ends/queues/queue_thread.h"
#include "simgpu/front_ends/thunk/topology.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::thunk {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30;
// ROCr's reservation for private memory, of each GPU, and what else it allocates at its start.
constexpr std::uint64_t needed_for_gpu = 36 * gib;

std::string limit() {
  rlimit most{};
  if (::getrlimit(RLIMIT_AS, &most) != 0 || most.rlim_cur == RLIM_INFINITY) return "the address space is not limited";
  return std::format("the address space is limited to {} KiB (ulimit -v)", most.rlim_cur / 1024);
}

}  // namespace

bool has_address_space() {
  const std::uint64_t gpus = node_count() - 1;
  const std::uint64_t there = DeviceMemory::instance().reserved_bytes();
  const std::uint64_t needed = gpus * needed_for_gpu;
  if (there >= needed) return true;
  queues::print({.code = 1,
                 .text = std::format("{}: {} GiB could be reserved for memory of GPUs, and {} of them need {} GiB at "
                                     "least; raise the limit to several times as much",
                                     limit(), there / gib, gpus, needed / gib)});
  return false;
}

void say_no_address_space(std::uint64_t bytes) {
  static std::atomic<bool> has_said = false;
  if (has_said.exchange(true)) return;
  queues::print({.code = 1,
                 .text = std::format("no room for {} bytes in the {} GiB that are reserved for memory of GPUs; {}",
                                     bytes, DeviceMemory::instance().reserved_bytes() / gib, limit())});
}

}  // namespace wavejit::simgpu::thunk
