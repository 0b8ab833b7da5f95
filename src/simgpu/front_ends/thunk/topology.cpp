// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/topology.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <format>
#include <string>
#include <thread>
#include <vector>

#include "boards/board.h"
#include "isa/instruction_set.h"
#include "simgpu/machine/launch/launch.h"

namespace wavejit::simgpu::thunk {
namespace {

constexpr std::uint32_t kib = 1024;

// HSA_CAPABILITY: doorbells of 64 bits, without which ROCr takes no agent; SRAM with ECC, which is the "sramecc+" of
// the ISA's name; ranges of host memory given to the GPU by address.
constexpr std::uint32_t capability_doorbell_64 = 2U << 12;
constexpr std::uint32_t capability_sram_ecc = 1U << 26;
constexpr std::uint32_t capability_svm = 1U << 27;

constexpr std::uint32_t link_pci_express = 2;
constexpr std::uint32_t link_xgmi = 11;
constexpr std::uint32_t weight_pci_express = 20;
constexpr std::uint32_t weight_xgmi = 15;

constexpr std::uint32_t cache_data = 1;
constexpr std::uint32_t cache_gpu = 8;
constexpr std::uint32_t cache_line_bytes = 128;
constexpr std::uint32_t vector_l1_kib = 32;  // AMD's CDNA3 and CDNA4 white papers

constexpr std::uint32_t engines_per_xcd = 4;
constexpr std::uint32_t bus_of_first = 3;  // as the HIP front numbers them
constexpr std::uint16_t vendor_amd = 0x1002;
constexpr std::uint32_t family_ai = 141;
constexpr std::uint32_t family_gc_12 = 152;  // Linux, AMDGPU_FAMILY_GC_12_0_0

std::uint32_t unsigned_of(int value) { return static_cast<std::uint32_t>(value); }

// "gfx942" → 9, 4, 2, as HSA_ENGINE_ID has them.
std::uint32_t engine_id(const boards::Board& target) {
  const std::string_view digits = target.id.substr(3);
  std::uint32_t stepping = 0;
  std::from_chars(digits.data() + digits.size() - 1, digits.data() + digits.size(), stepping, 16);
  return (unsigned_of(target.isa_major) << 10) | (unsigned_of(target.isa_minor) << 16) | (stepping << 24);
}

std::uint64_t host_memory_bytes() {
  return static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::vector<IoLinkProperties> links_of(std::uint32_t node) {
  std::vector<IoLinkProperties> links;
  for (std::uint32_t other = 0; other < node_count(); ++other) {
    if (other == node) continue;
    const bool with_host = node == 0 || other == 0;
    links.push_back({.type = with_host ? link_pci_express : link_xgmi,
                     .node_from = node,
                     .node_to = other,
                     .weight = with_host ? weight_pci_express : weight_xgmi});
  }
  return links;
}

std::vector<MemoryProperties> banks_of(std::uint32_t node) {
  const Device* device = device_of(node);
  if (device == nullptr) return {{.heap = Heap::system, .bytes = host_memory_bytes(), .width = 64}};
  const boards::Board& target = device->target();
  return {{.heap = Heap::frame_buffer_public,
           .bytes = target.memory_bytes,
           .width = unsigned_of(target.memory_bus_bits),
           .clock_mhz = unsigned_of(target.memory_clock_khz / 1000)},
          {.heap = Heap::group, .bytes = unsigned_of(target.lds_bytes), .virtual_base = shared_aperture},
          {.heap = Heap::scratch, .bytes = aperture_bytes, .virtual_base = private_aperture}};
}

std::vector<CacheProperties> caches_of(std::uint32_t node) {
  const Device* device = device_of(node);
  if (device == nullptr) return {};
  const auto cache = [](std::uint32_t level, std::uint32_t size_kib) {
    return CacheProperties{
        .level = level, .kib = size_kib, .line_bytes = cache_line_bytes, .type = cache_data | cache_gpu};
  };
  return {cache(1, vector_l1_kib), cache(2, unsigned_of(device->target().l2_bytes) / kib)};
}

template <typename Row>
void fill(std::span<Row> rows, const std::vector<Row>& from) {
  std::copy_n(from.begin(), std::min(rows.size(), from.size()), rows.begin());
}

}  // namespace

std::uint32_t node_count() { return 1 + unsigned_of(Device::count()); }

Device* device_of(std::uint32_t node) {
  return node == 0 || node >= node_count() ? nullptr : Device::find(static_cast<int>(node) - 1);
}

bool describe_node(std::uint32_t node, NodeProperties& properties) {
  if (node >= node_count()) return false;
  properties = {};
  properties.memory_banks = static_cast<std::uint32_t>(banks_of(node).size());
  properties.caches = static_cast<std::uint32_t>(caches_of(node).size());
  properties.io_links = static_cast<std::uint32_t>(links_of(node).size());
  const Device* device = device_of(node);
  if (device == nullptr) {
    properties.cpu_cores = std::max(1U, std::thread::hardware_concurrency());
    std::ranges::copy(std::u16string_view(u"host"), properties.marketing_name.begin());
    return true;
  }
  const boards::Board& target = device->target();
  const std::uint32_t gpu = node - 1;
  properties.simds = unsigned_of(target.compute_units * target.simds_per_compute_unit);
  properties.simd_id_low = 0x8000'0000 + (gpu * 0x1'0000);
  const bool is_rdna4 = isa::instruction_set(target) == isa::InstructionSet::rdna4;
  properties.capability = capability_doorbell_64 | (is_rdna4 ? 0 : capability_sram_ecc) | capability_svm;
  properties.waves_per_simd = unsigned_of(target.waves_per_simd);
  properties.lds_kib = unsigned_of(target.lds_bytes) / kib;
  properties.wave_size = unsigned_of(target.wave_size);
  properties.shader_engines = unsigned_of(target.xcds) * engines_per_xcd;
  properties.arrays_per_engine = 1;
  properties.compute_units_per_array =
      (unsigned_of(target.compute_units) + properties.shader_engines - 1) / properties.shader_engines;
  properties.simds_per_compute_unit = unsigned_of(target.simds_per_compute_unit);
  properties.scratch_slots_per_compute_unit = unsigned_of(target.waves_per_simd * target.simds_per_compute_unit);
  properties.engine_id = engine_id(target);
  properties.vendor_id = vendor_amd;
  properties.location_id = (bus_of_first + gpu) << 8;
  properties.local_memory_bytes = target.memory_bytes;
  properties.gpu_clock_mhz = unsigned_of(target.clock_khz / 1000);
  constexpr int first_render_minor = 128;
  properties.drm_render_minor = first_render_minor + static_cast<int>(gpu);
  const std::string name = std::format("{} (simulated {})", target.product, target.id);
  std::copy_n(name.begin(), std::min(name.size(), properties.marketing_name.size() - 1),
              properties.marketing_name.begin());
  std::ranges::copy(target.id, properties.amd_name.begin());
  properties.hive_id = 1;
  properties.sdma_engines = unsigned_of(target.sdma_engines);
  properties.xgmi_sdma_engines = unsigned_of(target.sdma_peer_engines);
  properties.sdma_queues_per_engine = 8;
  properties.compute_queues = 24;
  // Barriers among workgroups, of hardware: that there are any says that a queue can be cooperative. Code for these
  // targets meets in memory (device-libs, AVOID_GWS).
  properties.gws = 64;
  properties.unique_id = 0x57a7e'0000ULL + gpu;
  properties.vgpr_bytes_per_compute_unit =
      unsigned_of(target.vgprs_per_simd_lane * target.wave_size * 4 * target.simds_per_compute_unit);
  constexpr std::uint32_t sgprs_per_simd = 800;
  properties.sgpr_bytes_per_compute_unit = sgprs_per_simd * 4 * unsigned_of(target.simds_per_compute_unit);
  properties.xccs = unsigned_of(target.xcds);
  properties.kfd_gpu_id = node;
  properties.family_id = is_rdna4 ? family_gc_12 : family_ai;
  return true;
}

bool describe_memory(std::uint32_t node, std::span<MemoryProperties> banks) {
  if (node >= node_count()) return false;
  fill(banks, banks_of(node));
  return true;
}

bool describe_caches(std::uint32_t node, std::span<CacheProperties> caches) {
  if (node >= node_count()) return false;
  fill(caches, caches_of(node));
  return true;
}

bool describe_links(std::uint32_t node, std::span<IoLinkProperties> links) {
  if (node >= node_count()) return false;
  fill(links, links_of(node));
  return true;
}

}  // namespace wavejit::simgpu::thunk
