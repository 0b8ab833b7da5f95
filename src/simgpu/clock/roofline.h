// Where a launch stands between what its matrix instructions could do and what memory could bring: operations and bytes
// of the sampled compute units beside the rates that the clock counts with.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "simgpu/clock/grid.h"

namespace wavejit::simgpu::clock {

// Multiplications and additions of one matrix instruction of a wave, by its name ("v_mfma_f32_32x32x16_bf16",
// "v_mfma_f32_4x4x4_16b_f16"); 0 for a name without a shape. Sparse ones count what they stand for.
std::uint64_t matrix_operations(std::string_view mnemonic);

// `steps`: of all sampled compute units, by place in the program.
nlohmann::json roofline_json(const GridResult& grid, std::span<const StepCount> steps, const Program& program);

}  // namespace wavejit::simgpu::clock
