// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel needs and how many workgroups of it fit on a compute unit, from its metadata and the target table.

#include <algorithm>
#include <cstdint>
#include <utility>

#include "boards/board.h"
#include "boards/lds_allocation.h"
#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/device_properties.h"
#include "simgpu/front_ends/hip/modules.h"

namespace wavejit::simgpu::hip_front {
namespace {

constexpr int round_up(int value, int granule) { return (value + granule - 1) / granule * granule; }

}  // namespace

int workgroups_per_compute_unit(const Function& function, int block_size, std::size_t dynamic_lds_bytes) {
  const boards::Board& target = function.context->device().target();
  const KernelInfo& info = function.info();
  if (std::cmp_greater(block_size, info.max_threads_per_workgroup)) return 0;
  const int registers = round_up(std::max(1, static_cast<int>(info.vgprs)), target.vgpr_granule);
  const int waves_per_simd = std::min(target.waves_per_simd, target.vgprs_per_simd_lane / registers);
  const int waves_per_workgroup = (block_size + target.wave_size - 1) / target.wave_size;
  const int by_waves = waves_per_simd * target.simds_per_compute_unit / waves_per_workgroup;
  const std::size_t lds = info.static_lds_bytes + dynamic_lds_bytes;
  if (std::cmp_greater(lds, target.lds_bytes_per_workgroup)) return 0;
  if (lds == 0) return by_waves;
  return std::min(by_waves,
                  target.lds_bytes / static_cast<int>(boards::lds_allocation(target, static_cast<std::uint32_t>(lds))));
}

}  // namespace wavejit::simgpu::hip_front

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

namespace {

int available_dynamic_lds(const Function& function) {
  return function.context->device().target().lds_bytes_per_workgroup -
         static_cast<int>(function.info().static_lds_bytes);
}

int dynamic_lds_limit(const Function& function) {
  const int set = function.max_dynamic_lds_bytes;
  return set >= 0 ? set : available_dynamic_lds(function);
}

int isa_version(const Function& function) {
  const hipDeviceProp_tR0600 properties = device_properties(function.context->device());
  return properties.major * 10 + properties.minor;
}

hipError_t attribute_of(int* value, hipFunction_attribute attribute, const Function& function) {
  const KernelInfo& info = function.info();
  switch (attribute) {
    case HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = static_cast<int>(info.max_threads_per_workgroup);
      break;
    case HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(info.static_lds_bytes);
      break;
    case HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = 0;
      break;
    case HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(info.private_bytes);
      break;
    case HIP_FUNC_ATTRIBUTE_NUM_REGS:
      *value = static_cast<int>(info.vgprs);
      break;
    case HIP_FUNC_ATTRIBUTE_PTX_VERSION:
    case HIP_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = isa_version(function);
      break;
    case HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *value = 0;
      break;
    case HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = dynamic_lds_limit(function);
      break;
    case HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = 0;
      break;
    default:
      return hipErrorInvalidValue;
  }
  return hipSuccess;
}

hipError_t max_active(int* blocks, const Function& function, int block_size, std::size_t dynamic_lds_bytes) {
  if (blocks == nullptr || block_size <= 0) return hipErrorInvalidValue;
  if (std::cmp_greater(block_size, function.context->device().target().max_threads_per_workgroup)) {
    return hipErrorInvalidValue;
  }
  *blocks = workgroups_per_compute_unit(function, block_size, dynamic_lds_bytes);
  return hipSuccess;
}

// The block size with the most threads on a compute unit; of equals the largest, so that fewer blocks do the work.
hipError_t best_block(int* grid_size, int* block_size, const Function& function, std::size_t dynamic_lds_bytes,
                      int limit) {
  if (grid_size == nullptr || block_size == nullptr || limit < 0) return hipErrorInvalidValue;
  const boards::Board& target = function.context->device().target();
  const int largest = static_cast<int>(function.info().max_threads_per_workgroup);
  const int most = limit == 0 ? largest : std::min(limit, largest);
  int best_threads = 0;
  *grid_size = 0;
  *block_size = 0;
  for (int size = target.wave_size; size <= std::max(most, target.wave_size); size += target.wave_size) {
    const int tried = std::min(size, most);
    const int blocks = workgroups_per_compute_unit(function, tried, dynamic_lds_bytes);
    if (blocks * tried >= best_threads && blocks > 0) {
      best_threads = blocks * tried;
      *block_size = tried;
      *grid_size = blocks * target.compute_units;
    }
  }
  return hipSuccess;
}

hipError_t handle_error() { return current_context() == nullptr ? hipErrorNoDevice : hipErrorInvalidHandle; }

}  // namespace

hipError_t hipFuncGetAttribute(int* value, hipFunction_attribute attribute, hipFunction_t handle) {
  if (value == nullptr) return finish(hipErrorInvalidValue);
  const auto function = find_function(handle);
  return finish(function == nullptr ? handle_error() : attribute_of(value, attribute, *function));
}

hipError_t hipFuncGetAttributes(hipFuncAttributes* attributes, const void* host_function) {
  if (attributes == nullptr) return finish(hipErrorInvalidValue);
  // For a module's kernel, AMD's HIP 7.2 answers one attribute at a time (hipFuncGetAttribute), and this with:
  if (find_function(static_cast<hipFunction_t>(const_cast<void*>(host_function))) != nullptr)
    return finish(hipErrorInvalidSymbol);
  const auto found = find_any_function(host_function);
  if (!found) return finish(found.error());
  const Function& function = **found;
  const KernelInfo& info = function.info();
  *attributes = {};
  attributes->binaryVersion = isa_version(function);
  attributes->ptxVersion = isa_version(function);
  attributes->localSizeBytes = info.private_bytes;
  attributes->maxDynamicSharedSizeBytes = dynamic_lds_limit(function);
  attributes->maxThreadsPerBlock = static_cast<int>(info.max_threads_per_workgroup);
  attributes->numRegs = static_cast<int>(info.vgprs);
  attributes->sharedSizeBytes = info.static_lds_bytes;
  return finish(hipSuccess);
}

hipError_t hipFuncSetAttribute(const void* any_function, hipFuncAttribute attribute, int value) {
  const auto function = find_any_function(any_function);
  if (!function) return finish(function.error());
  if (attribute == hipFuncAttributeMaxDynamicSharedMemorySize) {
    if (value < 0 || value > available_dynamic_lds(**function)) return finish(hipErrorInvalidValue);
    (*function)->max_dynamic_lds_bytes = value;
    return finish(hipSuccess);
  }
  if (attribute == hipFuncAttributePreferredSharedMemoryCarveout) {
    return finish(value >= -1 && value <= 100 ? hipSuccess : hipErrorInvalidValue);
  }
  return finish(hipErrorInvalidValue);
}

hipError_t hipFuncSetCacheConfig(const void* function, hipFuncCache_t config) {
  if (function == nullptr) return finish(hipErrorInvalidDeviceFunction);
  return finish(config <= hipFuncCachePreferEqual ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipFuncSetSharedMemConfig(const void* function, hipSharedMemConfig config) {
  if (function == nullptr) return finish(hipErrorInvalidDeviceFunction);
  return finish(config <= hipSharedMemBankSizeEightByte ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, hipFunction_t handle, int block_size,
                                                              std::size_t dynamic_lds_bytes) {
  const auto function = find_function(handle);
  return finish(function == nullptr ? handle_error() : max_active(blocks, *function, block_size, dynamic_lds_bytes));
}

hipError_t hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, hipFunction_t handle,
                                                                       int block_size, std::size_t dynamic_lds_bytes,
                                                                       unsigned flags) {
  if (flags > hipOccupancyDisableCachingOverride) return finish(hipErrorInvalidValue);
  return hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(blocks, handle, block_size, dynamic_lds_bytes);
}

hipError_t hipModuleOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, hipFunction_t handle,
                                                   std::size_t dynamic_lds_bytes, int block_size_limit) {
  const auto function = find_function(handle);
  return finish(function == nullptr
                    ? handle_error()
                    : best_block(grid_size, block_size, *function, dynamic_lds_bytes, block_size_limit));
}

hipError_t hipModuleOccupancyMaxPotentialBlockSizeWithFlags(int* grid_size, int* block_size, hipFunction_t handle,
                                                            std::size_t dynamic_lds_bytes, int block_size_limit,
                                                            unsigned flags) {
  if (flags > hipOccupancyDisableCachingOverride) return finish(hipErrorInvalidValue);
  return hipModuleOccupancyMaxPotentialBlockSize(grid_size, block_size, handle, dynamic_lds_bytes, block_size_limit);
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* any_function, int block_size,
                                                        std::size_t dynamic_lds_bytes) {
  const auto function = find_any_function(any_function);
  return finish(function ? max_active(blocks, **function, block_size, dynamic_lds_bytes) : function.error());
}

hipError_t hipOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, const void* any_function, int block_size,
                                                                 std::size_t dynamic_lds_bytes, unsigned flags) {
  if (flags > hipOccupancyDisableCachingOverride) return finish(hipErrorInvalidValue);
  return hipOccupancyMaxActiveBlocksPerMultiprocessor(blocks, any_function, block_size, dynamic_lds_bytes);
}

hipError_t hipOccupancyMaxPotentialBlockSize(int* grid_size, int* block_size, const void* any_function,
                                             std::size_t dynamic_lds_bytes, int block_size_limit) {
  const auto function = find_any_function(any_function);
  return finish(function ? best_block(grid_size, block_size, **function, dynamic_lds_bytes, block_size_limit)
                         : function.error());
}

}  // namespace wavejit::hip_abi
