// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/queues/pm4.h"

#include <format>

#include "simgpu/front_ends/queues/code_map.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::queues {
namespace {

// Commands of type 3: bits 31..30 are 3, 29..16 the number of dwords that follow less one, 15..8 the command.
constexpr std::uint32_t command_nop = 0x10;
constexpr std::uint32_t command_indirect_buffer = 0x3f;
constexpr std::uint32_t command_acquire_mem = 0x58;

constexpr std::uint32_t kind_of(std::uint32_t header) { return header >> 30; }
constexpr std::uint32_t command_of(std::uint32_t header) { return (header >> 8) & 0xff; }
constexpr std::uint32_t body_dwords(std::uint32_t header) { return ((header >> 16) & 0x3fff) + 1; }

}  // namespace

std::string run_pm4(const std::array<std::uint32_t, 4>& command) {
  if (kind_of(command[0]) != 3 || command_of(command[0]) != command_indirect_buffer) {
    return std::format("a PM4 packet that begins with {:#010x}; it takes an INDIRECT_BUFFER command", command[0]);
  }
  const std::uint64_t address = (command[1] & ~std::uint32_t{3}) | (std::uint64_t{command[2] & 0xffff} << 32);
  const std::uint32_t dwords = command[3] & 0xfffff;
  const Allocation holder = DeviceMemory::instance().lookup(host_pointer(address));
  if (!holder.holds(address, std::uint64_t{dwords} * 4)) {
    return std::format("a PM4 indirect buffer of {} dwords at {:#x}, which is no memory of the GPU", dwords, address);
  }
  const auto* const words = host_pointer<const std::uint32_t>(address);
  for (std::uint32_t at = 0; at < dwords;) {
    const std::uint32_t header = words[at];
    constexpr std::uint32_t filler = 2;  // type 2: one dword of nothing
    if (kind_of(header) == filler) {
      ++at;
      continue;
    }
    if (kind_of(header) != 3 || body_dwords(header) > dwords - at - 1) {
      return std::format("a PM4 indirect buffer with {:#010x} at dword {} of {}", header, at, dwords);
    }
    switch (command_of(header)) {
      case command_nop:
        break;
      case command_acquire_mem:
        CodeMap::instance().invalidate();
        break;
      default:
        return std::format("PM4 command {:#04x}; known are NOP, INDIRECT_BUFFER and ACQUIRE_MEM", command_of(header));
    }
    at += 1 + body_dwords(header);
  }
  return {};
}

}  // namespace wavejit::simgpu::queues
