// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From an address as the program computed it to a host pointer, or a report. Every vector and scalar memory handler
// goes through here.
#pragma once

#include <cstdint>
#include <cstring>

#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {

// What holds all of the range, or null: one that this wave used lately, or what the table says.
const Allocation* allocation_of(Wave& wave, std::uint64_t address, std::uint64_t bytes);

// Slow path: searches the table, refreshes the wave's cache; reports and returns null when nothing holds the range.
std::uint8_t* resolve_slowly(Wave& wave, const Instruction& instruction, std::uint64_t address, std::uint32_t bytes,
                             bool write, int lane);

// Returns the host's address of a range of device memory that one lane accesses.
inline std::uint8_t* resolve(Wave& wave, const Instruction& instruction, std::uint64_t address, std::uint32_t bytes,
                             bool write, int lane) {
  const Allocation* recent = wave.recent_allocation[0];
  if (recent != nullptr && recent->holds(address, bytes) && (!write || recent->writable)) {
    return host_pointer(address);
  }
  return resolve_slowly(wave, instruction, address, bytes, write, lane);
}

void report_scratch(Wave& wave, const Instruction& instruction, std::uint64_t offset, std::uint32_t bytes, int lane);
void report_unaligned(Wave& wave, const Instruction& instruction, std::uint64_t address, std::uint32_t bytes, int lane);

// Zeros, and nobody looks at what is written there. A place of the caller's until its next call.
std::uint8_t* outside_lds();

// Beyond what the workgroup was given, in whole granules, LDS reads as 0 and drops what is written (CDNA3 ISA, "Memory
// error checking": bad addresses of LDS). AMD's matrix products clear registers by such reads. The check `bounds` says
// so where somebody asks.
inline std::uint8_t* resolve_lds(const Wave& wave, std::uint32_t offset, std::uint32_t bytes) {
  if (std::uint64_t{offset} + bytes <= wave.lds_bytes) return wave.lds + offset;
  return outside_lds();
}

inline std::uint8_t* resolve_scratch(Wave& wave, const Instruction& instruction, std::uint32_t offset,
                                     std::uint32_t bytes, int lane) {
  if (std::uint64_t{offset} + bytes <= wave.scratch_bytes_per_lane) {
    return wave.scratch + (std::size_t{wave.scratch_bytes_per_lane} * static_cast<unsigned>(lane)) + offset;
  }
  report_scratch(wave, instruction, offset, bytes, lane);
  return nullptr;
}

// A flat address: LDS and private memory through their apertures, device memory otherwise.
inline std::uint8_t* resolve_flat(Wave& wave, const Instruction& instruction, std::uint64_t address,
                                  std::uint32_t bytes, bool write, int lane) {
  const std::uint64_t aperture = address & ~(aperture_bytes - 1);
  if (aperture == shared_aperture) {
    return resolve_lds(wave, static_cast<std::uint32_t>(address), bytes);
  }
  if (aperture == private_aperture) {
    return resolve_scratch(wave, instruction, static_cast<std::uint32_t>(address), bytes, lane);
  }
  return resolve(wave, instruction, address, bytes, write, lane);
}

}  // namespace wavejit::simgpu
