// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A piece of a compute unit's time as Chrome's trace format, which chrome://tracing and Perfetto show: a process for
// each SIMD, a track for each wave and one for the matrix pipe. One cycle stands as one microsecond.
#pragma once

#include <string>

#include "simgpu/checkers/clock/result.h"

namespace wavejit::simgpu::clock {

std::string chrome_trace(const std::string& kernel, const ComputeUnitResult& unit, const Program& program);

}  // namespace wavejit::simgpu::clock
