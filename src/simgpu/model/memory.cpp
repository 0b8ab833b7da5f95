// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/model/memory.h"

#include <cinttypes>
#include <cstdio>

#include "simgpu/device/memory.h"
#include "simgpu/queues/code_map.h"

namespace wavejit::simgpu::model {
namespace {

MemoryKind kind_of(std::uint32_t flags) {
  if ((flags & allocation_execute) != 0) return MemoryKind::code;
  return (flags & allocation_vram) != 0 ? MemoryKind::managed : MemoryKind::host_pinned;
}

bool is_reached_by_kernels(std::uint32_t flags) {
  const bool is_data = (flags & (allocation_doorbell | allocation_registers)) == 0;
  return is_data && (flags & (allocation_host | allocation_public)) != 0;
}

}  // namespace

void add_memory(Device& device, std::uint64_t address, std::uint64_t bytes, std::uint32_t flags) {
  if (!is_reached_by_kernels(flags)) return;
  DeviceMemory::instance().adopt(host_pointer<void>(address), bytes, kind_of(flags), device.ordinal());
  if ((flags & allocation_execute) != 0) queues::CodeMap::instance().add(address, bytes, device);
}

void remove_memory(std::uint64_t address) {
  queues::CodeMap::instance().remove(address);
  DeviceMemory::instance().forget(host_pointer<void>(address));
}

Allocation find_host_memory(std::uint64_t address) {
  Allocation found{.base = 0, .bytes = 0, .kind = MemoryKind::host_registered};
  if (address < aperture_bytes_of_model) return found;
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return found;
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  char reads = 0;
  char writes = 0;
  // One line a mapping, by address: "7f12…-7f34… rw-p …". Neighbours with the same rights are one range.
  while (std::fscanf(maps, "%" SCNx64 "-%" SCNx64 " %c%c%*[^\n]", &start, &end, &reads, &writes) == 4) {
    if (reads != 'r') continue;
    const bool goes_on = found.bytes != 0 && found.end() == start && found.writable == (writes == 'w');
    if (goes_on) {
      found.bytes += end - start;
    } else if (address < start) {
      break;
    } else {
      found.base = start;
      found.bytes = end - start;
      found.writable = writes == 'w';
    }
  }
  static_cast<void>(std::fclose(maps));
  if (!found.holds(address, 1)) found.bytes = 0;
  return found;
}

}  // namespace wavejit::simgpu::model
