// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the clock found out, as JSON for programs: docs/timing-model.md says what the fields mean.
#pragma once

#include <string>
#include <vector>

#include "simgpu/checkers/clock/grid.h"
#include "simgpu/machine/loader/kernel_info.h"

namespace wavejit::simgpu::clock {

// Instructions that run one after the other: from the function's entry, a jump's target, or behind a branch or a
// barrier, to the next of these.
struct Cluster {
  std::uint32_t first = 0;  // places in the program
  std::uint32_t last = 0;   // included
};
std::vector<Cluster> clusters_of(const Program& program);

std::string grid_json(const KernelInfo& kernel, const GridShape& shape, const GridResult& grid, const Program& program);
// For a launch that could not be timed.
std::string refusal_json(const std::string& kernel, const boards::Board& target, const std::string& reason);

}  // namespace wavejit::simgpu::clock
