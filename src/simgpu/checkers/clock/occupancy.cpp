// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/clock/occupancy.h"

#include <algorithm>

#include "boards/board.h"
#include "boards/lds_allocation.h"

namespace wavejit::simgpu::clock {

Occupancy occupancy_of(const boards::Board& target, unsigned vgprs, unsigned lds_bytes, unsigned waves_of_workgroup) {
  const auto granule = static_cast<unsigned>(target.vgpr_granule);
  const auto together = static_cast<unsigned>(boards::compute_units_of_place(target));
  const auto simds = static_cast<unsigned>(target.simds_per_compute_unit) * together;
  const unsigned registers = std::max((vgprs + granule - 1) / granule * granule, granule);
  Occupancy occupancy;
  occupancy.waves_per_simd = std::min(static_cast<unsigned>(target.vgprs_per_simd_lane) / registers,
                                      static_cast<unsigned>(target.waves_per_simd));
  // Waves of a workgroup go round the SIMDs: the SIMD with most of them decides.
  const unsigned per_simd = std::max((waves_of_workgroup + simds - 1) / simds, 1U);
  occupancy.workgroups = waves_of_workgroup < simds && waves_of_workgroup != 0
                             ? occupancy.waves_per_simd * simds / waves_of_workgroup
                             : occupancy.waves_per_simd / per_simd;
  occupancy.limit = occupancy.waves_per_simd == static_cast<unsigned>(target.waves_per_simd) ? "waves" : "registers";
  const auto lower = [&](unsigned most, std::string_view by) {
    if (most >= occupancy.workgroups) return;
    occupancy.workgroups = most;
    occupancy.limit = by;
  };
  if (lds_bytes != 0)
    lower(static_cast<unsigned>(target.lds_bytes) * together / boards::lds_allocation(target, lds_bytes), "LDS");
  constexpr unsigned barriers = 16;  // of a compute unit, for workgroups of more than one wave (LLVM, isa documents)
  if (waves_of_workgroup > 1) lower(barriers * together, "barriers");
  return occupancy;
}

}  // namespace wavejit::simgpu::clock
