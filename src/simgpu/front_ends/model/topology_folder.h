// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The folder of files that ROCr's interface for models reads in place of the kernel driver's (HSA_MODEL_TOPOLOGY):
// thunk/topology_files.h, and one more file that says which GPU it is.
#pragma once

#include <expected>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/front_ends/thunk/topology_files.h"

namespace wavejit::simgpu::model {

using thunk::TopologyFile;

// The files of the host and of the process's first device, which `device` names ("gfx950", "gfx942@6x38").
std::vector<TopologyFile> topology_files(std::string_view device);

// Whether this names one GPU. The text says what does.
std::expected<void, std::string> check_one_device(std::string_view device);
// Opens the device and writes its folder, which is made, empty or an earlier one. The text says what is wrong.
std::expected<void, std::string> write_topology(std::string_view device, const std::filesystem::path& folder);

// The device that a folder says it is of. The text says why it is none of ours.
std::expected<std::string, std::string> device_of_topology(const std::filesystem::path& folder);

}  // namespace wavejit::simgpu::model
