// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One compute unit at work on one of our kernels as it stands in the middle of a large launch: what the clock says.
#pragma once

#include <expected>
#include <string>

#include "simgpu/checkers/clock/compute_unit.h"
#include "simgpu/checkers/clock/occupancy.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::bench {

struct SteadyRequest {
  attention_forward::ForwardKernel spec;
  int keys = 8192;
  // Every tile's maximum is so far above the one before that all rows are rescaled; else none after the first.
  bool growing_scores = false;
  // Workgroups of the die work at one head; else each at another.
  bool common_head = true;
};

struct SteadyRun {
  simgpu::clock::Occupancy occupancy;
  simgpu::clock::ComputeUnitResult unit;
  int tiles = 0;
  double port = 0;           // vector issue port: part of the time, 0 to 1
  double beside_matrix = 0;  // of the port's other instructions, what ran beside a matrix instruction
  // Cycles of the compute unit for a tile of keys of a resident workgroup.
  double tile_cycles() const;
  double tile_matrix_cycles() const;  // of one SIMD's pipe
  double tile_lds_cycles() const;     // of the banks
};

std::expected<SteadyRun, std::string> run_steady(const SteadyRequest& request);

}  // namespace wavejit::bench
