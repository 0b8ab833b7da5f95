// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C function that 'wavejit sim' calls (include/wavejit/simgpu_devices.h) for what driver_files.cpp shows.
#include <algorithm>
#include <cstring>
#include <expected>
#include <string>

#include "include/wavejit/simgpu_devices.h"
#include "simgpu/front_ends/thunk/topology_files.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/process/device_names.h"

namespace {

using namespace wavejit::simgpu;

std::expected<void, std::string> write(std::string_view devices, const std::string& folder) {
  const auto named = devices_named(devices);
  if (!named || named->ordinal) return std::unexpected(std::string(devices) + " names no GPUs");
  if (const auto opened = Device::open(named->target, named->count); !opened) {
    return std::unexpected(opened.error().text);
  }
  const auto files = thunk::topology_files(thunk::TopologyReader::program);
  return thunk::write_files(files, folder + "/kfd/topology");
}

}  // namespace

extern "C" {

WAVEJIT_SIMGPU_API std::size_t wavejit_simgpu_write_driver_files(const char* devices, const char* folder, char* text,
                                                                 std::size_t capacity) {
  const auto written = write(devices, folder);
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
