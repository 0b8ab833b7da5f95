// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The check `hazards` on paths that no run need take.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace wavejit::tests {

// Wait states that a kernel lacks, and instructions that were reported to go wrong on its GPU, as the check words them
// by its strict rules: along every way that leads to an instruction within the longest wait. LLVM 22 leaves out the
// wait behind a hazard exactly 19 states back (llvm/llvm-project#222040), and where it has counted a longer way first
// (docs/simulated-gpu.md). Or why the code cannot be read.
std::vector<std::string> static_hazards(std::span<const std::byte> code_object);

}  // namespace wavejit::tests
