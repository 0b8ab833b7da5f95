// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many workgroups of a kernel stand on one compute unit at a time, and what limits them. Compute units that share
// their waves (boards::compute_units_of_place) are one here and in all of the clock.
#pragma once

#include <cstdint>
#include <string_view>

namespace wavejit::boards {
struct Board;
}

namespace wavejit::simgpu::clock {

struct Occupancy {
  unsigned workgroups = 0;      // of a compute unit; 0: not even one
  unsigned waves_per_simd = 0;  // that its registers allow
  std::string_view limit;       // "registers", "LDS", "waves", "barriers"
};

// `vgprs`: architectural and accumulation registers of a wave together.
Occupancy occupancy_of(const boards::Board& target, unsigned vgprs, unsigned lds_bytes, unsigned waves_of_workgroup);

}  // namespace wavejit::simgpu::clock
