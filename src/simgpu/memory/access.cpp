#include "simgpu/memory/access.h"

#include <algorithm>
#include <format>

namespace wavejit::simgpu {

uint8_t* resolve_slowly(Wave& wave, const Instruction& instruction, uint64_t address, uint32_t bytes, bool write,
                        int lane) {
  auto& recent = wave.recent_allocation;
  const Allocation* found = nullptr;
  for (unsigned i = 1; i < std::size(recent) && found == nullptr; ++i) {
    if (recent[i] != nullptr && recent[i]->holds(address, bytes)) {
      found = recent[i];
      std::swap(recent[0], recent[i]);
    }
  }
  const Launch& launch = *wave.workgroup->launch;
  if (found == nullptr) {
    const Allocation* holder = launch.find(address);
    if (holder != nullptr && holder->holds(address, bytes)) {
      found = holder;
      std::copy_backward(std::begin(recent), std::end(recent) - 1, std::end(recent));
      recent[0] = found;
    }
  }
  if (found != nullptr && (!write || found->writable)) return host_pointer(address);

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

void report_lds(Wave& wave, const Instruction& instruction, uint64_t offset, uint32_t bytes, int lane) {
  fault(wave, instruction,
        std::format("{} bytes at LDS address {:#x}; the workgroup has {} bytes of LDS", bytes, offset, wave.lds_bytes),
        lane, hip_error_illegal_address);
}

void report_scratch(Wave& wave, const Instruction& instruction, uint64_t offset, uint32_t bytes, int lane) {
  fault(wave, instruction,
        std::format("{} bytes at private address {:#x}; a lane has {} bytes of private memory", bytes, offset,
                    wave.scratch_bytes_per_lane),
        lane, hip_error_illegal_address);
}

void report_unaligned(Wave& wave, const Instruction& instruction, uint64_t address, uint32_t bytes, int lane) {
  fault(wave, instruction,
        std::format("address {:#x} is not a multiple of {}, which this instruction needs", address, bytes), lane,
        hip_error_illegal_address);
}

}  // namespace wavejit::simgpu
