// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether the process has the address space that ROCr reserves for its GPUs: limits (ulimit -v) end it otherwise in
// ROCr's assertions.
#pragma once

#include <cstdint>

namespace wavejit::simgpu::thunk {

// False, and one line that says what is there and what would do.
bool has_address_space();
// An allocation found no room: one line, once a process.
void say_no_address_space(std::uint64_t bytes);

}  // namespace wavejit::simgpu::thunk
