// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The code objects that ROCr has loaded, as it tells debuggers: for the names of kernels and the lines of their source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simgpu/machine/loader/resident_code.h"

namespace wavejit::simgpu::thunk {

// ROCr's list of loaded code objects (an r_debug, link.h).
void set_debug_list(const void* list);
// The code object loaded around an address. Everything is read as another process would, so that a list that changes
// meanwhile costs a name and no more.
std::optional<CodeImage> find_image(std::uint64_t address);

// "memory://<pid>#offset=0x1000&size=5120" or "file:///path[#offset=…&size=…]".
struct ImagePlace {
  std::string file;  // empty: memory of this process
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // 0: all of the file
};
std::optional<ImagePlace> parse_image_uri(std::string_view uri);

}  // namespace wavejit::simgpu::thunk
