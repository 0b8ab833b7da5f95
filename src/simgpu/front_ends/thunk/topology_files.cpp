// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/topology_files.h"

#include <algorithm>
#include <cstdint>
#include <format>
#include <fstream>
#include <initializer_list>
#include <string_view>
#include <system_error>
#include <utility>

#include "simgpu/front_ends/thunk/topology.h"

namespace wavejit::simgpu::thunk {
namespace {

// The thunk's aperture ends at 256 GiB of addresses, of which 32 are scratch memory's and some the host's memory.
constexpr std::uint64_t most_memory = std::uint64_t{192} << 30;

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

std::uint64_t memory_said(std::uint64_t bytes, TopologyReader reader) {
  return reader == TopologyReader::model ? std::min(bytes, most_memory) : bytes;
}

std::string text_of(const NodeProperties& node, std::uint64_t memory_banks, TopologyReader reader) {
  const bool by_model = reader == TopologyReader::model;
  const std::uint32_t xgmi_sdma_engines = node.xgmi_sdma_engines;
  const std::uint32_t gws = node.gws;
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
      // Those between GPUs are a kind of queue that the interface for models does not know; there is one GPU.
      {"num_sdma_xgmi_engines", by_model ? 0 : xgmi_sdma_engines},
      {"num_sdma_queues_per_engine", node.sdma_queues_per_engine},
      {"num_cp_queues", node.compute_queues},
      // Cooperative launches need a call of the driver that it does not have either.
      {"num_gws", by_model ? 0 : gws},
      {"num_xcc", node.xccs},
      {"family_id", node.family_id},
      {"max_engine_clk_fcompute", node.gpu_clock_mhz},
      {"max_engine_clk_ccompute", node.cpu_clock_mhz},
      {"local_mem_size", memory_said(node.local_memory_bytes, reader)},
  });
}

std::string text_of(const MemoryProperties& bank, TopologyReader reader) {
  return lines_of({{"heap_type", static_cast<std::uint64_t>(bank.heap)},
                   {"size_in_bytes", memory_said(bank.bytes, reader)},
                   {"flags", bank.flags},
                   {"width", bank.width},
                   {"mem_clk_max", bank.clock_mhz}});
}

std::string text_of(const CacheProperties& cache, TopologyReader /*reader*/) {
  return lines_of({{"processor_id_low", cache.processor_id_low},
                   {"level", cache.level},
                   {"size", cache.kib},
                   {"cache_line_size", cache.line_bytes},
                   {"cache_lines_per_tag", cache.lines_per_tag},
                   {"association", cache.associativity},
                   {"latency", cache.latency},
                   {"type", cache.type}});
}

std::string text_of(const IoLinkProperties& link, TopologyReader /*reader*/) {
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
void add_rows(std::vector<TopologyFile>& files, const std::string& folder, const std::vector<Row>& rows,
              TopologyReader reader) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    files.push_back({.path = std::format("{}/{}/properties", folder, i), .text = text_of(rows[i], reader)});
  }
}

void add_node(std::vector<TopologyFile>& files, std::uint32_t node, TopologyReader reader) {
  NodeProperties properties;
  describe_node(node, properties);
  std::vector<MemoryProperties> banks(properties.memory_banks);
  describe_memory(node, banks);
  // LDS and private memory are added by the thunk itself.
  std::erase_if(banks,
                [](const MemoryProperties& bank) { return bank.heap == Heap::group || bank.heap == Heap::scratch; });
  std::vector<CacheProperties> caches(properties.caches);
  describe_caches(node, caches);
  std::vector<IoLinkProperties> links(properties.io_links);
  describe_links(node, links);

  const std::string folder = std::format("nodes/{}", node);
  // The interface for models wants a GPU's number to be its node's and one more; that of the host is 0.
  const std::uint32_t by_model = node == 0 ? 0 : node + 1;
  const std::uint32_t number = reader == TopologyReader::model ? by_model : properties.kfd_gpu_id;
  files.push_back({.path = folder + "/gpu_id", .text = std::format("{}\n", number)});
  files.push_back({.path = folder + "/name", .text = std::format("{}\n", properties.amd_name.data())});
  files.push_back({.path = folder + "/properties", .text = text_of(properties, banks.size(), reader)});
  add_rows(files, folder + "/mem_banks", banks, reader);
  add_rows(files, folder + "/caches", caches, reader);
  add_rows(files, folder + "/io_links", links, reader);
}

}  // namespace

std::vector<TopologyFile> topology_files(TopologyReader reader) {
  std::vector<TopologyFile> files;
  files.push_back({.path = "generation_id", .text = "1\n"});
  files.push_back(
      {.path = "system_properties", .text = lines_of({{"platform_oem", 0}, {"platform_id", 0}, {"platform_rev", 0}})});
  for (std::uint32_t node = 0; node < node_count(); ++node) add_node(files, node, reader);
  return files;
}

std::expected<void, std::string> write_files(std::span<const TopologyFile> files, const std::filesystem::path& folder) {
  std::error_code error;
  for (const TopologyFile& file : files) {
    const std::filesystem::path path = folder / file.path;
    std::filesystem::create_directories(path.parent_path(), error);
    std::ofstream stream(path, std::ios::binary | std::ios::trunc);
    stream << file.text;
    stream.close();
    if (!stream) return std::unexpected(path.string() + " cannot be written");
  }
  return {};
}

}  // namespace wavejit::simgpu::thunk
