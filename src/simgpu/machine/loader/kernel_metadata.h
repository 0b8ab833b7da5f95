// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What AMD's metadata note says: the processor, and of each kernel its arguments and sizes.
#pragma once

#include <expected>
#include <string>

#include "simgpu/machine/loader/bytes.h"
#include "simgpu/machine/loader/code_object.h"

namespace wavejit::simgpu {

// Adds what a note says to target_id and kernels. The text says what is wrong with it.
std::expected<void, std::string> read_kernel_metadata(const Bytes& content, CodeObject& object);

}  // namespace wavejit::simgpu
