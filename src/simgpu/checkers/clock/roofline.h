// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a launch stands between what its matrix instructions could do and what memory could bring: operations and bytes
// of the sampled compute units beside the rates that the clock counts with.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>

#include "simgpu/checkers/clock/grid.h"

namespace wavejit::simgpu::clock {

// Multiplications and additions of one matrix instruction of a wave; 0 for any other instruction.
std::uint64_t matrix_operations(const Instruction& instruction);

// `steps`: the counts over all sampled compute units, by place in the program.
nlohmann::json roofline_json(const GridResult& grid, std::span<const StepCount> steps, const Program& program);

}  // namespace wavejit::simgpu::clock
