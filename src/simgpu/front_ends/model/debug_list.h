// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of kernels and lines of their source: this front end is not told where ROCr lists its loaded code objects, but ROCr
// exports the list for debuggers.
#pragma once

#include <cstdint>
#include <optional>

#include "simgpu/machine/loader/resident_code.h"

namespace wavejit::simgpu::model {

std::optional<CodeImage> find_loaded_image(std::uint64_t address);

}  // namespace wavejit::simgpu::model
