#pragma once
// Where a memory instruction's lanes point, worked out from its registers before it runs.

#include <cstdint>

#include "simgpu/checks/effects.h"
#include "simgpu/wave/wave.h"

namespace wavejit::simgpu::checks {

struct LaneAddresses {
  uint64_t lanes = 0;  ///< that take part
  /// Bytes into LDS, or device addresses.
  uint64_t first[wave_lanes];
  uint64_t second[wave_lanes];  ///< two-address LDS instructions
  /// How many bytes from `first` on exist as far as the descriptor says, at most the element's size (buffers only).
  uint8_t available[wave_lanes];
};

/// LDS instructions and the LDS side of LDS DMA.
void local_addresses(const Wave& wave, const Instruction& instruction, const Effects& effects, LaneAddresses& to);
/// Vector memory instructions: the device memory side.
void device_addresses(const Wave& wave, const Instruction& instruction, const Effects& effects, LaneAddresses& to);

}  // namespace wavejit::simgpu::checks
