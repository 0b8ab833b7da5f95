// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/device_properties.h"

#include <algorithm>
#include <cstring>
#include <format>
#include <limits>

#include "boards/board.h"
#include "isa/instruction_set.h"

namespace wavejit::simgpu::hip_front {

using namespace hip_abi;

namespace {

constexpr int int_max = std::numeric_limits<int>::max();
constexpr int first_pci_bus = 3;

template <std::size_t size>
void copy_text(char (&to)[size], std::string_view text) {
  const std::size_t length = std::min(text.size(), size - 1);
  std::ranges::copy(text.substr(0, length), to);
  to[length] = 0;
}

bool has_target_features(const boards::Board& target) {
  return isa::instruction_set(target) == isa::InstructionSet::cdna;
}

}  // namespace

std::string target_id(const Device& device) {
  // RDNA4 has neither of the two features.
  if (!has_target_features(device.target())) return std::string(device.target().id);
  return std::format("{}:sramecc+:xnack-", device.target().id);
}

std::string pci_bus_id(int ordinal) { return std::format("0000:{:02x}:00.0", first_pci_bus + ordinal); }

hipDeviceProp_tR0600 device_properties(const Device& device) {
  const boards::Board& target = device.target();
  hipDeviceProp_tR0600 all = {};
  copy_text(all.name, std::format("{} (simulated {})", target.product, boards::board_name(target)));
  copy_text(all.uuid.bytes, std::format("simgpu{:08}", device.ordinal()));
  all.totalGlobalMem = target.memory_bytes;
  all.sharedMemPerBlock = static_cast<std::size_t>(target.lds_bytes_per_workgroup);
  // HIP counts 32-bit registers of a compute unit over all lanes.
  all.regsPerBlock = target.vgprs_per_simd_lane * target.wave_size * target.simds_per_compute_unit;
  all.warpSize = target.wave_size;
  all.memPitch = int_max;
  all.maxThreadsPerBlock = target.max_threads_per_workgroup;
  std::ranges::fill(all.maxThreadsDim, target.max_threads_per_workgroup);
  // The launch packet holds sizes in threads in 32 bits; y and z as HIP limits them.
  all.maxGridSize[0] = int_max;
  all.maxGridSize[1] = 65536;
  all.maxGridSize[2] = 65536;
  all.clockRate = target.clock_khz;
  all.totalConstMem = int_max;
  all.major = target.isa_major;
  all.minor = target.isa_minor;
  all.textureAlignment = 256;
  all.texturePitchAlignment = 256;
  // If compute units come in pairs, HIP counts the pairs (ROCclr's WGP mode).
  const int together = target.paired_compute_units ? 2 : 1;
  all.multiProcessorCount = target.compute_units / together;
  all.canMapHostMemory = 1;
  all.concurrentKernels = 1;
  all.cooperativeLaunch = 1;
  all.ECCEnabled = has_target_features(target) ? 1 : 0;
  all.pciBusID = first_pci_bus + device.ordinal();
  all.asyncEngineCount = 1;
  all.unifiedAddressing = 1;
  all.memoryClockRate = target.memory_clock_khz;
  all.memoryBusWidth = target.memory_bus_bits;
  all.l2CacheSize = target.l2_bytes;
  all.maxThreadsPerMultiProcessor = target.waves_per_simd * target.simds_per_compute_unit * target.wave_size * together;
  all.streamPrioritiesSupported = 1;
  all.globalL1CacheSupported = 1;
  all.localL1CacheSupported = 1;
  all.sharedMemPerMultiprocessor = static_cast<std::size_t>(target.lds_bytes);
  all.regsPerMultiprocessor = all.regsPerBlock;
  all.managedMemory = 1;
  all.hostNativeAtomicSupported = 1;
  all.concurrentManagedAccess = 1;
  all.canUseHostPointerForRegisteredMem = 1;
  all.sharedMemPerBlockOptin = all.sharedMemPerBlock;
  all.directManagedMemAccessFromHost = 1;
  all.maxBlocksPerMultiProcessor = target.waves_per_simd * target.simds_per_compute_unit;
  all.hostRegisterSupported = 1;
  copy_text(all.gcnArchName, target_id(device));
  all.maxSharedMemoryPerMultiProcessor = static_cast<std::size_t>(target.lds_bytes);
  all.clockInstructionRate = 100'000;  // s_memrealtime counts at 100 MHz
  all.arch.hasGlobalInt32Atomics = 1;
  all.arch.hasGlobalFloatAtomicExch = 1;
  all.arch.hasSharedInt32Atomics = 1;
  all.arch.hasSharedFloatAtomicExch = 1;
  all.arch.hasFloatAtomicAdd = 1;
  all.arch.hasGlobalInt64Atomics = 1;
  all.arch.hasSharedInt64Atomics = 1;
  all.arch.hasDoubles = 1;
  all.arch.hasWarpVote = 1;
  all.arch.hasWarpBallot = 1;
  all.arch.hasWarpShuffle = 1;
  all.arch.hasThreadFenceSystem = 1;
  all.arch.has3dGrid = 1;
  all.isLargeBar = 1;
  return all;
}

hipDeviceProp_tR0000 to_old_layout(const hipDeviceProp_tR0600& properties) {
  hipDeviceProp_tR0000 old = {};
  std::memcpy(old.name, properties.name, sizeof old.name);
  old.totalGlobalMem = properties.totalGlobalMem;
  old.sharedMemPerBlock = properties.sharedMemPerBlock;
  old.regsPerBlock = properties.regsPerBlock;
  old.warpSize = properties.warpSize;
  old.maxThreadsPerBlock = properties.maxThreadsPerBlock;
  std::ranges::copy(properties.maxThreadsDim, old.maxThreadsDim);
  std::ranges::copy(properties.maxGridSize, old.maxGridSize);
  old.clockRate = properties.clockRate;
  old.memoryClockRate = properties.memoryClockRate;
  old.memoryBusWidth = properties.memoryBusWidth;
  old.totalConstMem = properties.totalConstMem;
  old.major = properties.major;
  old.minor = properties.minor;
  old.multiProcessorCount = properties.multiProcessorCount;
  old.l2CacheSize = properties.l2CacheSize;
  old.maxThreadsPerMultiProcessor = properties.maxThreadsPerMultiProcessor;
  old.computeMode = properties.computeMode;
  old.clockInstructionRate = properties.clockInstructionRate;
  old.arch = properties.arch;
  old.concurrentKernels = properties.concurrentKernels;
  old.cooperativeLaunch = properties.cooperativeLaunch;
  old.pciDomainID = properties.pciDomainID;
  old.pciBusID = properties.pciBusID;
  old.pciDeviceID = properties.pciDeviceID;
  old.maxSharedMemoryPerMultiProcessor = properties.maxSharedMemoryPerMultiProcessor;
  old.canMapHostMemory = properties.canMapHostMemory;
  old.gcnArch = properties.major * 100 + properties.minor * 10;
  std::memcpy(old.gcnArchName, properties.gcnArchName, sizeof old.gcnArchName);
  old.memPitch = properties.memPitch;
  old.textureAlignment = properties.textureAlignment;
  old.texturePitchAlignment = properties.texturePitchAlignment;
  old.ECCEnabled = properties.ECCEnabled;
  old.isLargeBar = properties.isLargeBar;
  old.managedMemory = properties.managedMemory;
  old.directManagedMemAccessFromHost = properties.directManagedMemAccessFromHost;
  old.concurrentManagedAccess = properties.concurrentManagedAccess;
  return old;
}

std::optional<int> device_attribute(const Device& device, hipDeviceAttribute_t attribute) {
  const hipDeviceProp_tR0600 all = device_properties(device);
  const boards::Board& target = device.target();
  const auto clamped = [](std::size_t value) { return static_cast<int>(std::min<std::size_t>(value, int_max)); };
  switch (attribute) {
    case hipDeviceAttributeEccEnabled:
      return all.ECCEnabled;
    case hipDeviceAttributeAsyncEngineCount:
      return all.asyncEngineCount;
    case hipDeviceAttributeCanMapHostMemory:
      return all.canMapHostMemory;
    case hipDeviceAttributeCanUseHostPointerForRegisteredMem:
      return all.canUseHostPointerForRegisteredMem;
    case hipDeviceAttributeClockRate:
      return all.clockRate;
    case hipDeviceAttributeConcurrentKernels:
      return all.concurrentKernels;
    case hipDeviceAttributeCooperativeLaunch:
      return all.cooperativeLaunch;
    case hipDeviceAttributeConcurrentManagedAccess:
      return all.concurrentManagedAccess;
    case hipDeviceAttributeDirectManagedMemAccessFromHost:
      return all.directManagedMemAccessFromHost;
    case hipDeviceAttributeGlobalL1CacheSupported:
      return all.globalL1CacheSupported;
    case hipDeviceAttributeHostNativeAtomicSupported:
      return all.hostNativeAtomicSupported;
    case hipDeviceAttributeL2CacheSize:
      return all.l2CacheSize;
    case hipDeviceAttributeLocalL1CacheSupported:
      return all.localL1CacheSupported;
    case hipDeviceAttributeComputeCapabilityMajor:
      return all.major;
    case hipDeviceAttributeComputeCapabilityMinor:
      return all.minor;
    case hipDeviceAttributeManagedMemory:
      return all.managedMemory;
    case hipDeviceAttributeMaxBlocksPerMultiProcessor:
      return all.maxBlocksPerMultiProcessor;
    case hipDeviceAttributeMaxBlockDimX:
      return all.maxThreadsDim[0];
    case hipDeviceAttributeMaxBlockDimY:
      return all.maxThreadsDim[1];
    case hipDeviceAttributeMaxBlockDimZ:
      return all.maxThreadsDim[2];
    case hipDeviceAttributeMaxThreadsDim:
      return all.maxThreadsDim[0];
    case hipDeviceAttributeMaxGridDimX:
      return all.maxGridSize[0];
    case hipDeviceAttributeMaxGridDimY:
      return all.maxGridSize[1];
    case hipDeviceAttributeMaxGridDimZ:
      return all.maxGridSize[2];
    case hipDeviceAttributeMaxThreadsPerBlock:
      return all.maxThreadsPerBlock;
    case hipDeviceAttributeMaxThreadsPerMultiProcessor:
      return all.maxThreadsPerMultiProcessor;
    case hipDeviceAttributeMaxPitch:
      return clamped(all.memPitch);
    case hipDeviceAttributeMemoryBusWidth:
      return all.memoryBusWidth;
    case hipDeviceAttributeMemoryClockRate:
      return all.memoryClockRate;
    case hipDeviceAttributeMultiprocessorCount:
    case hipDeviceAttributePhysicalMultiProcessorCount:
      return all.multiProcessorCount;
    case hipDeviceAttributePciBusId:
      return all.pciBusID;
    case hipDeviceAttributePciDeviceId:
      return all.pciDeviceID;
    case hipDeviceAttributePciDomainId:
      return all.pciDomainID;
    case hipDeviceAttributeMaxRegistersPerBlock:
      return all.regsPerBlock;
    case hipDeviceAttributeMaxRegistersPerMultiprocessor:
      return all.regsPerMultiprocessor;
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      return clamped(all.sharedMemPerBlock);
    case hipDeviceAttributeSharedMemPerBlockOptin:
      return clamped(all.sharedMemPerBlockOptin);
    case hipDeviceAttributeSharedMemPerMultiprocessor:
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      return clamped(all.sharedMemPerMultiprocessor);
    case hipDeviceAttributeStreamPrioritiesSupported:
      return all.streamPrioritiesSupported;
    case hipDeviceAttributeTextureAlignment:
      return clamped(all.textureAlignment);
    case hipDeviceAttributeTexturePitchAlignment:
      return clamped(all.texturePitchAlignment);
    case hipDeviceAttributeTotalConstantMemory:
      return clamped(all.totalConstMem);
    case hipDeviceAttributeTotalGlobalMem:
      return clamped(all.totalGlobalMem);
    case hipDeviceAttributeUnifiedAddressing:
      return all.unifiedAddressing;
    case hipDeviceAttributeWarpSize:
      return all.warpSize;
    case hipDeviceAttributeHostRegisterSupported:
      return all.hostRegisterSupported;
    case hipDeviceAttributeClockInstructionRate:
    case hipDeviceAttributeWallClockRate:
      return all.clockInstructionRate;
    case hipDeviceAttributeIsLargeBar:
      return all.isLargeBar;
    case hipDeviceAttributeFineGrainSupport:
      return 1;
    case hipDeviceAttributeNumberOfXccs:
      return target.xcds;
    case hipDeviceAttributeMaxAvailableVgprsPerThread:
      return target.vgprs_per_simd_lane;
    case hipDeviceAttributeHostNumaId:
      return -1;
    default:
      break;
  }
  // The rest of HIP's numbers are abilities that these devices do not have (textures, peer access, pools, …).
  const bool known = attribute <= hipDeviceAttributeHostNumaId ||
                     (attribute >= hipDeviceAttributeClockInstructionRate && attribute <= hipDeviceAttributePciChipId);
  if (known) return 0;
  return std::nullopt;
}

}  // namespace wavejit::simgpu::hip_front
