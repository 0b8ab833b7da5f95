#include "simgpu/memory/access.h"

#include <algorithm>
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
  const Allocation* const holder = wave.workgroup->launch->find(address);
  if (holder == nullptr || !holder->holds(address, bytes)) return nullptr;
  std::copy_backward(std::begin(recent), std::end(recent) - 1, std::end(recent));
  return recent[0] = holder;
}

std::uint8_t* resolve_slowly(Wave& wave, const Instruction& instruction, std::uint64_t address, std::uint32_t bytes,
                             bool write, int lane) {
  const Allocation* const found = allocation_of(wave, address, bytes);
  if (found != nullptr && (!write || found->writable)) return host_pointer(address);

  const Launch& launch = *wave.workgroup->launch;
  std::string text = std::format("{} {} bytes at {:#x}", write ? "writes" : "reads", bytes, address);
  const Allocation* holder = launch.find(address);
  if (found != nullptr) {
    text += ", which may only be read";
  } else if (holder != nullptr && holder->kind == MemoryKind::kernarg) {
    text += std::format(": {} bytes into the kernarg segment of {}", address - holder->base, holder->bytes);
  } else {
    const Allocation& kernarg = launch.own_memory[0];
    if (address >= kernarg.end() && address - kernarg.end() < 4096) {
      text +=
          std::format(": {} bytes behind the end of the kernarg segment of {}", address - kernarg.end(), kernarg.bytes);
    } else {
      text += ": " + launch.memory->describe(address);
    }
  }
  fault(wave, instruction, text, lane, hip_error_illegal_address);
  return nullptr;
}

void report_lds(Wave& wave, const Instruction& instruction, std::uint64_t offset, std::uint32_t bytes, int lane) {
  fault(wave, instruction,
        std::format("{} bytes at LDS address {:#x}; the workgroup has {} bytes of LDS", bytes, offset, wave.lds_bytes),
        lane, hip_error_illegal_address);
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
