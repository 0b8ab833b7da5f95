// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The values of topology.h as the kernel driver's files say them (/sys/class/kfd/kfd/topology), one "name value" a
// line.
#pragma once

#include <cstdint>
#include <expected>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace wavejit::simgpu::thunk {

struct TopologyFile {
  std::string path;  // below the folder
  std::string text;
};

// The reader of the files: programs that look for GPUs before they load ROCr, or ROCr at its interface for models,
// which knows less.
enum class TopologyReader : std::uint8_t { program, model };

// The files of the host and of all devices of the process.
std::vector<TopologyFile> topology_files(TopologyReader reader);
std::expected<void, std::string> write_files(std::span<const TopologyFile> files, const std::filesystem::path& folder);

}  // namespace wavejit::simgpu::thunk
