// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What AMD's HIP wants of a code object's sections before its loader sees it. ROCr's loader itself reads segments only.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace wavejit::simgpu::hip_front {

// Why HIP refuses the image; empty when it does not.
std::string problem_of_sections(std::span<const std::byte> image);

}  // namespace wavejit::simgpu::hip_front
