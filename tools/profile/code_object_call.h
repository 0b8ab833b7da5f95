// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A kernel out of a file and the launch that it gets: any compiler's, by HIP's own functions on the simulated GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/exit_code.h"
#include "tools/simulated_gpu.h"

namespace wavejit::tools {

// One argument of a kernel.
struct KernelArgument {
  std::uint64_t buffer_bytes = 0;  // a pointer to this many zero bytes; 0: `bits`
  std::uint64_t bits = 0;
  std::size_t bytes = 8;  // of the argument itself
};

struct CodeObjectCall {
  std::string path;
  std::string kernel;                        // empty: the file's only one
  std::array<unsigned, 3> grid = {1, 1, 1};  // workgroups
  std::array<unsigned, 3> workgroup = {64, 1, 1};
  unsigned lds_bytes = 0;  // beside what the kernel declares
  std::vector<KernelArgument> arguments;

  // Sets what `name` names; false for a name that is none of setting_names().
  Result<bool> set(const std::string& name, const std::string& value);
  static std::vector<std::string_view> setting_names();

  // Loads, launches and waits. `engine` is on the simulated GPU.
  Result<void> run(wavejit_engine* engine, const SimulatedGpu& gpu) const;
};

}  // namespace wavejit::tools
