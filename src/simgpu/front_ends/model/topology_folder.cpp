// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/model/topology_folder.h"

#include <format>
#include <fstream>
#include <system_error>

#include "boards/board.h"
#include "boards/known_products.h"
#include "simgpu/machine/device/device.h"
#include "simgpu/process/device_names.h"

namespace wavejit::simgpu::model {
namespace {

// libhsakmt keeps paths in 256 characters; "/nodes/1/mem_banks/0/properties" and a little more come behind the
// folder's.
constexpr std::size_t longest_folder = 200;
constexpr const char* name_of_device_file = "wavejit_device";

}  // namespace

std::vector<TopologyFile> topology_files(std::string_view device) {
  std::vector<TopologyFile> files = thunk::topology_files(thunk::TopologyReader::model);
  // Last: a folder that has it is whole.
  files.push_back({.path = name_of_device_file, .text = std::format("{}\n", device)});
  return files;
}

std::expected<void, std::string> check_one_device(std::string_view device) {
  const auto named = devices_named(device);
  if (named && !named->ordinal && named->count == 1) return {};
  return std::unexpected(
      std::format("'{}' is not one GPU, and ROCr's interface for models takes one; it takes {}, or a board of one",
                  device, boards::known_products()));
}

std::expected<void, std::string> write_topology(std::string_view device, const std::filesystem::path& folder) {
  if (auto right = check_one_device(device); !right) return right;
  const auto named = devices_named(device);
  if (const auto opened = Device::open(named->target, 1); !opened) return std::unexpected(opened.error().text);
  if (folder.native().size() > longest_folder) {
    return std::unexpected(std::format("{}: a path of {} characters; ROCr takes up to {}", folder.string(),
                                       folder.native().size(), longest_folder));
  }
  std::error_code error;
  if (std::filesystem::exists(folder, error) && !std::filesystem::is_empty(folder, error) &&
      !std::filesystem::exists(folder / name_of_device_file, error)) {
    return std::unexpected(folder.string() + " holds other things; an empty folder or a new one would do");
  }
  return thunk::write_files(topology_files(named->target), folder);
}

std::expected<std::string, std::string> device_of_topology(const std::filesystem::path& folder) {
  const std::string advice = ": 'wavejit sim --write-topology FOLDER --target <target>' writes such a folder";
  if (folder.empty()) return std::unexpected("HSA_MODEL_TOPOLOGY is not set" + advice);
  std::ifstream stream(folder / name_of_device_file);
  std::string device;
  if (!std::getline(stream, device)) {
    return std::unexpected(std::format("HSA_MODEL_TOPOLOGY={}: a folder without '{}' was not written by this library{}",
                                       folder.string(), name_of_device_file, advice));
  }
  if (check_one_device(device)) return device;
  return std::unexpected(std::format("HSA_MODEL_TOPOLOGY={}: '{}' says '{}', which names no single GPU{}",
                                     folder.string(), name_of_device_file, device, advice));
}

}  // namespace wavejit::simgpu::model
