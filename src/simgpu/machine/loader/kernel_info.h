// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel as its code object describes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace wavejit::simgpu {

// One explicit or hidden argument, from the metadata note.
struct KernelArgument {
  std::string name;
  std::string value_kind;  // "by_value", "global_buffer", "hidden_block_count_x", …
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
  bool hidden() const { return value_kind.starts_with("hidden_"); }
};

// What is known of a kernel without running it.
struct KernelInfo {
  std::string name;                          // as written in the source's symbol: "_Z3addPf"
  std::uint32_t kernarg_bytes = 0;           // explicit and hidden arguments
  std::uint32_t explicit_kernarg_bytes = 0;  // end of the last explicit argument
  std::uint32_t static_lds_bytes = 0;
  std::uint32_t private_bytes = 0;  // per lane
  std::uint32_t max_threads_per_workgroup = 1024;
  std::array<std::uint32_t, 3> required_workgroup = {0, 0, 0};
  std::uint32_t vgprs = 0;
  std::uint32_t agprs = 0;
  std::uint32_t sgprs = 0;
  bool uses_dynamic_stack = false;
  std::vector<KernelArgument> arguments;  // in order of offset; hidden ones included
};

}  // namespace wavejit::simgpu
