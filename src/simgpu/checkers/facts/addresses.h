// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a memory instruction's lanes point, worked out from its registers before it runs.
#pragma once

#include <cstdint>

#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::checks {

// In device memory.
struct LaneAddresses {
  std::uint64_t lanes = 0;  // that take part
  std::uint64_t first[lane_places];
  // How many bytes from `first` on exist as far as the descriptor says, at most the element's size (buffers only).
  std::uint8_t available[lane_places];
};

// Bytes into LDS.
struct LocalAddresses {
  std::uint64_t lanes = 0;  // that take part
  std::uint32_t first[lane_places];
  std::uint32_t second[lane_places];  // two-address LDS instructions
};

// Lanes next to each other whose accesses lie one behind the other in whole dwords; anything else is a lane by itself.
struct Run {
  std::uint64_t first = 0;
  std::uint32_t bytes = 0;
  std::uint16_t lane = 0;        // the lowest
  std::uint16_t lane_bytes = 0;  // of each of them

  unsigned lane_at(std::uint64_t offset) const { return lane + static_cast<unsigned>(offset / lane_bytes); }
  // Calls `body` with each lane's part.
  template <typename Body>
  void each_lane(Body&& body) const {
    for (std::uint32_t offset = 0; offset < bytes; offset += lane_bytes) {
      body(Run{.first = first + offset,
               .bytes = lane_bytes,
               .lane = static_cast<std::uint16_t>(lane_at(offset)),
               .lane_bytes = lane_bytes});
    }
  }
};
class Runs {
 public:
  // Runs of device memory that the lanes access with `bytes` bytes each. Lanes of which nothing exists are left out.
  Runs(const LaneAddresses& addresses, std::uint32_t bytes);
  const Run* begin() const { return runs_; }
  const Run* end() const { return runs_ + count_; }

 private:
  unsigned count_ = 0;
  Run runs_[lane_places];
};

// Takes the lanes of a flat instruction that point to LDS or to private memory out of `device`; `local` are those of
// LDS. Returns the lanes of either.
std::uint64_t split_flat(LaneAddresses& device, LocalAddresses& local);

// LDS instructions and the LDS side of LDS DMA.
void local_addresses(const Wave& wave, const Instruction& instruction, const Effects& effects, LocalAddresses& to);
// Vector memory instructions: the device memory side.
void device_addresses(const Wave& wave, const Instruction& instruction, const Effects& effects, LaneAddresses& to);

}  // namespace wavejit::simgpu::checks
