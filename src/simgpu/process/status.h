// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What calls of a device answer with: an error and its words, and how long a launch took.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace wavejit::simgpu {

// `code` is a HIP error number (hipError_t); 0 is success. `text` is one line.
struct Status {
  int code = 0;
  std::string text;
  std::vector<std::string> others = {};  // further lines: what else a launch's checks found
  bool ok() const { return code == 0; }
};

// What the clock says of a launch, where it runs.
struct LaunchTime {
  std::uint64_t cycles = 0;            // of the whole launch
  std::uint64_t dependent_cycles = 0;  // more of them when it waits for the launch before it
};

// The HIP numbers that the engine itself answers with (hip_runtime_api.h, HIP 7.2).
inline constexpr int hip_success = 0;
inline constexpr int hip_error_invalid_value = 1;
inline constexpr int hip_error_out_of_memory = 2;
inline constexpr int hip_error_not_initialised = 3;
inline constexpr int hip_error_invalid_configuration = 9;
inline constexpr int hip_error_invalid_device = 101;
inline constexpr int hip_error_invalid_image = 200;
inline constexpr int hip_error_no_binary_for_gpu = 209;
inline constexpr int hip_error_shared_object_init_failed = 303;
inline constexpr int hip_error_illegal_address = 700;
inline constexpr int hip_error_launch_failure = 719;

}  // namespace wavejit::simgpu
