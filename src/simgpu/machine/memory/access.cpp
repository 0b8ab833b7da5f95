// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/memory/access.h"

#include <algorithm>
#include <bit>
#include <format>
#include <utility>

namespace wavejit::simgpu {

const Allocation* allocation_of(Wave& wave, std::uint64_t address, std::uint64_t bytes) {
  auto& recent = wave.recent_allocation;
  for (const Allocation*& one : recent) {
    if (one == nullptr || !one->holds(address, bytes)) continue;
    std::swap(one, recent[0]);  // where `resolve` looks
    return recent[0];
  }
  Launch& launch = *wave.workgroup->launch;
  const Allocation* holder = launch.find(address);
  if (holder == nullptr || !holder->holds(address, bytes)) {
    if (const Allocation* later = launch.find_later(address, bytes)) holder = later;
  }
  if (holder == nullptr) holder = launch.find_host(address);
  if (holder == nullptr || !holder->holds(address, bytes)) return nullptr;
  std::copy_backward(std::begin(recent), std::end(recent) - 1, std::end(recent));
  return recent[0] = holder;
}

namespace {

// Whether a read goes beyond the size that was asked for, but not beyond its page. The check `bounds` accepts what a
// compiler may make of a correct load: LLVM widens scalar loads up to the next power of two if the address is a
// multiple of it (s_load_dwordx4 for three dwords, s_load_b96 for ten bytes), since such a load stays in its page.
bool reads_on(const Wave& wave, std::uint64_t address, std::uint32_t bytes, int lane) {
  Launch& launch = *wave.workgroup->launch;
  const Allocation* holder = launch.find_readable(address);
  if (holder == nullptr || !holder->lets_read(address, bytes)) return false;
  if (!includes(launch.settings.checks, Check::bounds)) return true;
  const bool is_scalar_load = lane < 0;
  return is_scalar_load && address % std::bit_ceil(bytes) == 0 && holder->holds(address, 1);
}

}  // namespace

std::uint8_t* resolve_slowly(Wave& wave, const Instruction& instruction, std::uint64_t address, std::uint32_t bytes,
                             bool write, int lane) {
  const Allocation* const found = allocation_of(wave, address, bytes);
  if (found != nullptr && (!write || found->writable)) return host_pointer(address);
  if (!write && reads_on(wave, address, bytes, lane)) return host_pointer(address);

  Launch& launch = *wave.workgroup->launch;
  std::string text = std::format("{} {} bytes at {:#x}", write ? "writes" : "reads", bytes, address);
  const Allocation* holder = launch.find(address);
  if (found != nullptr) {
    text += ", which may only be read";
  } else if (holder != nullptr && holder->kind == MemoryKind::kernarg) {
    text += std::format(": {} bytes into the kernarg segment of {}", address - holder->base, holder->bytes);
  } else if (holder != nullptr) {
    text += std::format(": the last {} lie behind the end of the allocation [{:#x}, {:#x}) of {} bytes",
                        address + bytes - holder->end(), holder->base, holder->end(), holder->bytes);
  } else {
    const Allocation& kernarg = launch.own_memory[0];
    if (address >= kernarg.end() && address - kernarg.end() < 4096) {
      text +=
          std::format(": {} bytes behind the end of the kernarg segment of {}", address - kernarg.end(), kernarg.bytes);
    } else {
      text += ": " + launch.memory_now().describe(address);
    }
  }
  fault(wave, instruction, text, lane, hip_error_illegal_address);
  return nullptr;
}

std::uint8_t* outside_lds() {
  constexpr std::size_t widest = 16;
  alignas(widest) thread_local std::uint8_t nothing[widest];
  std::memset(nothing, 0, widest);
  return nothing;
}

void report_scratch(Wave& wave, const Instruction& instruction, std::uint64_t offset, std::uint32_t bytes, int lane) {
  fault(wave, instruction,
        std::format("{} bytes at private address {:#x}; a lane has {} bytes of private memory", bytes, offset,
                    wave.scratch_bytes_per_lane),
        lane, hip_error_illegal_address);
}

void report_unaligned(Wave& wave, const Instruction& instruction, std::uint64_t address, std::uint32_t bytes,
                      int lane) {
  fault(wave, instruction,
        std::format("address {:#x} is not a multiple of {}, which this instruction needs", address, bytes), lane,
        hip_error_illegal_address);
}

}  // namespace wavejit::simgpu
