// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/model/memory.h"

#include <charconv>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/machine/allocations/memory.h"

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

struct Mapping {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool is_readable = false;
  bool is_writable = false;
};

// "7f1200000000-7f1200021000 rw-p 00000000 …": a line of /proc/self/maps, which are in the order of addresses.
std::optional<Mapping> mapping_of(std::string_view line) {
  Mapping mapping;
  const auto start = std::from_chars(line.data(), line.data() + line.size(), mapping.start, 16);
  if (start.ec != std::errc{} || !std::string_view(start.ptr, line.data() + line.size()).starts_with('-')) return {};
  const auto end = std::from_chars(start.ptr + 1, line.data() + line.size(), mapping.end, 16);
  const std::string_view rights(end.ptr, line.data() + line.size());
  if (end.ec != std::errc{} || rights.size() < 3) return {};
  mapping.is_readable = rights[1] == 'r';
  mapping.is_writable = rights[2] == 'w';
  return mapping;
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
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const auto mapping = mapping_of(line);
    if (!mapping || !mapping->is_readable) continue;
    // Neighbours with the same rights are one range.
    const bool goes_on = found.bytes != 0 && found.end() == mapping->start && found.writable == mapping->is_writable;
    if (goes_on) {
      found.bytes += mapping->end - mapping->start;
    } else if (address < mapping->start) {
      break;
    } else {
      found.base = mapping->start;
      found.bytes = mapping->end - mapping->start;
      found.writable = mapping->is_writable;
    }
  }
  if (!found.holds(address, 1)) found.bytes = 0;
  return found;
}

}  // namespace wavejit::simgpu::model
