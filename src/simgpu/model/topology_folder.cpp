// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/model/topology_folder.h"

#include <algorithm>
#include <cstdint>
#include <format>
#include <fstream>
#include <initializer_list>
#include <system_error>
#include <utility>

#include "simgpu/device/device.h"
#include "simgpu/device_names.h"
#include "simgpu/thunk/topology.h"
#include "targets/targets.h"

namespace wavejit::simgpu::model {
namespace {

using thunk::CacheProperties;
using thunk::Heap;
using thunk::IoLinkProperties;
using thunk::MemoryProperties;
using thunk::NodeProperties;

// The thunk's aperture ends at 256 GiB of addresses, of which 32 are scratch memory's and some the host's memory.
constexpr std::uint64_t most_memory = std::uint64_t{192} << 30;
// libhsakmt keeps paths in 256 characters; "/nodes/1/mem_banks/0/properties" and a little more come behind the
// folder's.
constexpr std::size_t longest_folder = 200;
constexpr const char* name_of_device_file = "wavejit_device";

using Property = std::pair<std::string_view, std::uint64_t>;

std::string lines_of(std::initializer_list<Property> properties) {
  std::string text;
  for (const auto& [name, value] : properties) text += std::format("{} {}\n", name, value);
  return text;
}

// HSA_ENGINE_ID → 90500
std::uint64_t target_version(std::uint32_t engine_id) {
  constexpr std::uint64_t major = 10000;
  constexpr std::uint64_t minor = 100;
  return ((engine_id >> 10 & 0x3f) * major) + ((engine_id >> 16 & 0xff) * minor) + (engine_id >> 24);
}

std::string text_of(const NodeProperties& node, std::uint64_t memory_banks) {
  return lines_of({
      {"cpu_cores_count", node.cpu_cores},
      {"simd_count", node.simds},
      {"mem_banks_count", memory_banks},
      {"caches_count", node.caches},
      {"io_links_count", node.io_links},
      {"cpu_core_id_base", node.cpu_id_low},
      {"simd_id_base", node.simd_id_low},
      {"capability", node.capability},
      {"max_waves_per_simd", node.waves_per_simd},
      {"lds_size_in_kb", node.lds_kib},
      {"gds_size_in_kb", node.gds_kib},
      {"wave_front_size", node.wave_size},
      {"array_count", std::uint64_t{node.shader_engines} * node.arrays_per_engine},
      {"simd_arrays_per_engine", node.arrays_per_engine},
      {"cu_per_simd_array", node.compute_units_per_array},
      {"simd_per_cu", node.simds_per_compute_unit},
      {"max_slots_scratch_cu", node.scratch_slots_per_compute_unit},
      {"gfx_target_version", target_version(node.engine_id)},
      {"fw_version", node.engine_id & 0x3ff},
      {"sdma_fw_version", node.sdma_firmware},
      {"vendor_id", node.vendor_id},
      {"device_id", node.device_id},
      {"location_id", node.location_id},
      {"domain", node.pci_domain},
      {"drm_render_minor", static_cast<std::uint64_t>(node.drm_render_minor)},
      {"hive_id", node.hive_id},
      {"unique_id", node.unique_id},
      {"num_sdma_engines", node.sdma_engines},
      // Those between GPUs are a kind of queue that this door does not know; there is one GPU.
      {"num_sdma_xgmi_engines", 0},
      {"num_sdma_queues_per_engine", node.sdma_queues_per_engine},
      {"num_cp_queues", node.compute_queues},
      // Cooperative launches need a call of the driver that this door does not have.
      {"num_gws", 0},
      {"num_xcc", node.xccs},
      {"family_id", node.family_id},
      {"max_engine_clk_fcompute", node.gpu_clock_mhz},
      {"max_engine_clk_ccompute", node.cpu_clock_mhz},
      {"local_mem_size", std::min(node.local_memory_bytes + 0, most_memory)},
  });
}

std::string text_of(const MemoryProperties& bank) {
  return lines_of({{"heap_type", static_cast<std::uint64_t>(bank.heap)},
                   {"size_in_bytes", std::min(bank.bytes + 0, most_memory)},
                   {"flags", bank.flags},
                   {"width", bank.width},
                   {"mem_clk_max", bank.clock_mhz}});
}

std::string text_of(const CacheProperties& cache) {
  return lines_of({{"processor_id_low", cache.processor_id_low},
                   {"level", cache.level},
                   {"size", cache.kib},
                   {"cache_line_size", cache.line_bytes},
                   {"cache_lines_per_tag", cache.lines_per_tag},
                   {"association", cache.associativity},
                   {"latency", cache.latency},
                   {"type", cache.type}});
}

std::string text_of(const IoLinkProperties& link) {
  return lines_of({{"type", link.type},
                   {"version_major", link.version_major},
                   {"version_minor", link.version_minor},
                   {"node_from", link.node_from},
                   {"node_to", link.node_to},
                   {"weight", link.weight},
                   {"min_latency", link.minimum_latency},
                   {"max_latency", link.maximum_latency},
                   {"min_bandwidth", link.minimum_bandwidth},
                   {"max_bandwidth", link.maximum_bandwidth},
                   {"recommended_transfer_size", link.recommended_transfer},
                   {"flags", link.flags}});
}

template <typename Row>
void add_rows(std::vector<TopologyFile>& files, const std::string& folder, const std::vector<Row>& rows) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    files.push_back({.path = std::format("{}/{}/properties", folder, i), .text = text_of(rows[i])});
  }
}

void add_node(std::vector<TopologyFile>& files, std::uint32_t node) {
  NodeProperties properties;
  thunk::describe_node(node, properties);
  std::vector<MemoryProperties> banks(properties.memory_banks);
  thunk::describe_memory(node, banks);
  // LDS and private memory are added by the thunk itself.
  std::erase_if(banks,
                [](const MemoryProperties& bank) { return bank.heap == Heap::group || bank.heap == Heap::scratch; });
  std::vector<CacheProperties> caches(properties.caches);
  thunk::describe_caches(node, caches);
  std::vector<IoLinkProperties> links(properties.io_links);
  thunk::describe_links(node, links);

  const std::string folder = std::format("nodes/{}", node);
  // This door wants a GPU's number to be its node's and one more, and 0 of the host.
  files.push_back({.path = folder + "/gpu_id", .text = std::format("{}\n", node == 0 ? 0 : node + 1)});
  files.push_back({.path = folder + "/name", .text = std::format("{}\n", properties.amd_name.data())});
  files.push_back({.path = folder + "/properties", .text = text_of(properties, banks.size())});
  add_rows(files, folder + "/mem_banks", banks);
  add_rows(files, folder + "/caches", caches);
  add_rows(files, folder + "/io_links", links);
}

}  // namespace

std::vector<TopologyFile> topology_files(std::string_view device) {
  std::vector<TopologyFile> files;
  files.push_back({.path = "generation_id", .text = "1\n"});
  files.push_back(
      {.path = "system_properties", .text = lines_of({{"platform_oem", 0}, {"platform_id", 0}, {"platform_rev", 0}})});
  for (std::uint32_t node = 0; node < thunk::node_count(); ++node) add_node(files, node);
  // Last: a folder that has it is whole.
  files.push_back({.path = name_of_device_file, .text = std::format("{}\n", device)});
  return files;
}

std::expected<void, std::string> check_one_device(std::string_view device) {
  const auto named = devices_named(device);
  if (named && !named->ordinal && named->count == 1) return {};
  return std::unexpected(
      std::format("'{}' is not one GPU, and ROCr's door for models has room for one; it takes {}, or a board of one",
                  device, targets::known_targets()));
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
  for (const TopologyFile& file : topology_files(named->target)) {
    const std::filesystem::path path = folder / file.path;
    std::filesystem::create_directories(path.parent_path(), error);
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream << file.text;
    stream.close();
    if (!stream) return std::unexpected(path.string() + " cannot be written");
  }
  return {};
}

std::expected<std::string, std::string> device_of_topology(const std::filesystem::path& folder) {
  const std::string advice = ": 'wavejit sim --write-topology FOLDER --target <target>' writes such a folder";
  if (folder.empty()) return std::unexpected("HSA_MODEL_TOPOLOGY is not set" + advice);
  std::ifstream stream(folder / name_of_device_file);
  std::string device;
  if (!std::getline(stream, device)) {
    return std::unexpected(std::format("HSA_MODEL_TOPOLOGY={}: a folder without '{}' is none of this library's{}",
                                       folder.string(), name_of_device_file, advice));
  }
  if (check_one_device(device)) return device;
  return std::unexpected(std::format("HSA_MODEL_TOPOLOGY={}: '{}' says '{}', which is no one GPU{}", folder.string(),
                                     name_of_device_file, device, advice));
}

}  // namespace wavejit::simgpu::model
