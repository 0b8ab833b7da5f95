// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dispatch loop of the compiled engine.
#pragma once

#include <cstdint>

#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::compile {

// Runs `instructions` of a wave, or fewer if it stops: block by block where host code exists, one by one elsewhere.
// Slices end at the same instructions as the interpreter's, so schedules are the same. A block is translated when it
// has been entered more than `threshold` times.
void run_slice(Wave& wave, std::int64_t instructions, std::uint32_t threshold);

}  // namespace wavejit::simgpu::compile
