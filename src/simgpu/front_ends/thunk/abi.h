// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The C interface between AMD's ROCr and its thunk, as libhsa-runtime64 1.18 (ROCm 7.2) uses it: own declarations of
// what libhsakmt's hsakmttypes.h lays out. The library packs its structures to 4 bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace wavejit::simgpu::thunk {

enum class KmtStatus : std::int32_t {
  success = 0,
  error = 1,
  invalid_parameter = 3,
  invalid_handle = 4,
  invalid_node = 5,
  no_memory = 6,
  not_supported = 11,
  not_opened = 20,
  wait_timeout = 31,
  memory_not_registered = 36,
};

#pragma pack(push, 4)

struct VersionInfo {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
};

struct SystemProperties {
  std::uint32_t nodes = 0;
  std::uint32_t platform_oem = 0;
  std::uint32_t platform_id = 0;
  std::uint32_t platform_revision = 0;
};

// HsaNodeProperties up to what is filled. Fields behind it differ between releases of ROCm; the caller has zeroed them.
struct NodeProperties {
  std::uint32_t cpu_cores = 0;
  std::uint32_t simds = 0;
  std::uint32_t neural_cores = 0;
  std::uint32_t memory_banks = 0;
  std::uint32_t caches = 0;
  std::uint32_t io_links = 0;
  std::uint32_t cpu_id_low = 0;
  std::uint32_t simd_id_low = 0;
  std::uint32_t capability = 0;
  std::uint32_t capability2 = 0;
  std::uint32_t waves_per_simd = 0;
  std::uint32_t lds_kib = 0;
  std::uint32_t gds_kib = 0;
  std::uint32_t wave_size = 0;
  std::uint32_t shader_engines = 0;
  std::uint32_t arrays_per_engine = 0;
  std::uint32_t compute_units_per_array = 0;
  std::uint32_t simds_per_compute_unit = 0;
  std::uint32_t scratch_slots_per_compute_unit = 0;
  std::uint32_t engine_id = 0;
  std::uint32_t overridden_engine_id = 0;
  std::uint16_t vendor_id = 0;
  std::uint16_t device_id = 0;
  std::uint32_t location_id = 0;
  std::uint64_t local_memory_bytes = 0;
  std::uint32_t gpu_clock_mhz = 0;
  std::uint32_t cpu_clock_mhz = 0;
  std::int32_t drm_render_minor = 0;
  std::array<char16_t, 64> marketing_name{};
  std::array<char, 64> amd_name{};
  std::uint32_t sdma_firmware = 0;
  std::uint64_t debug_properties = 0;
  std::uint64_t hive_id = 0;
  std::uint32_t sdma_engines = 0;
  std::uint32_t xgmi_sdma_engines = 0;
  std::uint8_t sdma_queues_per_engine = 0;
  std::uint8_t compute_queues = 0;
  std::uint8_t gws = 0;
  std::uint8_t integrated = 0;
  std::uint32_t pci_domain = 0;
  std::uint64_t unique_id = 0;
  std::uint32_t vgpr_bytes_per_compute_unit = 0;
  std::uint32_t sgpr_bytes_per_compute_unit = 0;
  std::uint32_t xccs = 0;
  std::uint32_t kfd_gpu_id = 0;
  std::uint32_t family_id = 0;
};
static_assert(offsetof(NodeProperties, marketing_name) == 112);
static_assert(offsetof(NodeProperties, family_id) == 364);

enum class Heap : std::uint32_t { system = 0, frame_buffer_public = 1, group = 4, scratch = 5 };

struct MemoryProperties {
  Heap heap = Heap::system;
  std::uint64_t bytes = 0;
  std::uint32_t flags = 0;
  std::uint32_t width = 0;
  std::uint32_t clock_mhz = 0;
  std::uint64_t virtual_base = 0;
};
static_assert(sizeof(MemoryProperties) == 32);

// HsaCacheProperties up to what is filled; 7.2's structure has the map of siblings behind it.
struct CacheProperties {
  std::uint32_t processor_id_low = 0;
  std::uint32_t level = 0;
  std::uint32_t kib = 0;
  std::uint32_t line_bytes = 0;
  std::uint32_t lines_per_tag = 0;
  std::uint32_t associativity = 0;
  std::uint32_t latency = 0;
  std::uint32_t type = 0;  // 1: data, 2: instructions, 4: CPU, 8: GPU
  std::array<std::uint32_t, 256> siblings{};
};
static_assert(sizeof(CacheProperties) == 1056);

struct IoLinkProperties {
  std::uint32_t type = 0;
  std::uint32_t version_major = 0;
  std::uint32_t version_minor = 0;
  std::uint32_t node_from = 0;
  std::uint32_t node_to = 0;
  std::uint32_t weight = 0;
  std::uint32_t minimum_latency = 0;
  std::uint32_t maximum_latency = 0;
  std::uint32_t minimum_bandwidth = 0;
  std::uint32_t maximum_bandwidth = 0;
  std::uint32_t recommended_transfer = 0;
  std::uint32_t recommended_sdma_engines = 0;
  std::uint32_t flags = 0;
};
static_assert(sizeof(IoLinkProperties) == 52);

// Bits of HsaMemFlags.
enum MemoryFlag : std::uint32_t {
  flag_host_access = 1U << 6,
  flag_scratch = 1U << 9,
  flag_execute = 1U << 12,
  flag_fixed_address = 1U << 15,
  flag_no_address = 1U << 18,
  flag_only_address = 1U << 19,
};

enum class PointerType : std::uint32_t { unknown = 0, allocated = 1, registered_user = 2 };

struct PointerInfo {
  PointerType type = PointerType::unknown;
  std::uint32_t node = 0;
  std::uint32_t flags = 0;
  std::uint64_t cpu_address = 0;
  std::uint64_t gpu_address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t registered_nodes = 0;
  std::uint32_t mapped_nodes = 0;
  const std::uint32_t* registered = nullptr;
  const std::uint32_t* mapped = nullptr;
  void* user_data = nullptr;
};
static_assert(sizeof(PointerInfo) == 68);

struct EventDescriptor {
  std::uint32_t type = 0;
  std::uint32_t node = 0;
  std::uint64_t user_data = 0;
  std::uint64_t user_data_bytes = 0;
};

struct Event {
  std::uint32_t id = 0;
  std::uint32_t type = 0;
  std::array<std::uint32_t, 5> data{};
  std::uint64_t os_handle = 0;
  std::uint64_t mailbox = 0;
  std::uint32_t hardware_data = 0;
};
static_assert(sizeof(Event) == 48);

struct ClockCounters {
  std::uint64_t gpu = 0;
  std::uint64_t cpu = 0;
  std::uint64_t system = 0;
  std::uint64_t system_hz = 0;
};

enum class QueueType : std::uint32_t { compute = 1, sdma = 2, sdma_xgmi = 5, sdma_by_engine = 6, compute_aql = 21 };

struct QueueResource {
  std::uint64_t id = 0;
  std::uint64_t doorbell = 0;
  std::uint64_t write_pointer = 0;
  std::uint64_t read_pointer = 0;
  std::uint64_t error_reason = 0;
};
static_assert(sizeof(QueueResource) == 40);

struct SvmAttribute {
  std::uint32_t type = 0;
  std::uint32_t value = 0;
};

#pragma pack(pop)

// libdrm's amdgpu_bo_import_result. Objects are numbers here.
struct ImportResult {
  std::uint64_t object = 0;
  std::uint64_t bytes = 0;
};

// Kinds of handles and operations that ROCr names (amdgpu.h, amdgpu_drm.h).
inline constexpr std::uint32_t handle_kms = 1;
inline constexpr std::uint32_t handle_file = 2;
inline constexpr std::uint32_t address_map = 1;
inline constexpr std::uint32_t address_unmap = 2;
inline constexpr unsigned long command_map_file = 1;  // DRM_AMDGPU_GEM_MMAP

// libdrm's amdgpu_gpu_info up to the clock; the caller has zeroed the rest.
struct GpuInfo {
  std::array<std::uint32_t, 18> unused{};
  std::uint32_t counter_khz = 0;
};
static_assert(offsetof(GpuInfo, counter_khz) == 72);

}  // namespace wavejit::simgpu::thunk
