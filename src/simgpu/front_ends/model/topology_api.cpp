// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C function that 'wavejit sim' calls (include/wavejit/simgpu_devices.h).
#include <algorithm>
#include <cstring>
#include <string>

#include "include/wavejit/simgpu_devices.h"
#include "simgpu/front_ends/model/topology_folder.h"

extern "C" {

WAVEJIT_SIMGPU_API std::size_t wavejit_simgpu_write_topology(const char* device, const char* folder, char* text,
                                                             std::size_t capacity) {
  using namespace wavejit::simgpu::model;
  const char* const named = device == nullptr ? "" : device;
  const auto written = folder == nullptr ? check_one_device(named) : write_topology(named, folder);
  if (written) return 0;
  const std::string& problem = written.error();
  if (text != nullptr && capacity != 0) {
    const std::size_t copied = std::min(problem.size(), capacity - 1);
    std::memcpy(text, problem.data(), copied);
    text[copied] = 0;
  }
  return problem.size();
}

}  // extern "C"
