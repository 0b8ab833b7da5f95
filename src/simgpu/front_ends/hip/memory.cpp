// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Allocation and what HIP tells about pointers. Device addresses are host addresses (device/memory.h).

#include "simgpu/machine/allocations/memory.h"

#include <algorithm>
#include <bit>
#include <cstdint>

#include "boards/board.h"
#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/front.h"

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

namespace {

constexpr unsigned all_host_malloc_flags = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocWriteCombined |
                                           hipHostMallocUncached | hipHostMallocNumaUser | hipHostMallocCoherent |
                                           hipHostMallocNonCoherent;
constexpr unsigned all_host_register_flags = hipHostRegisterPortable | hipHostRegisterMapped | hipHostRegisterIoMemory |
                                             hipHostRegisterReadOnly | hipExtHostRegisterUncached;
constexpr std::size_t row_alignment = 256;  // of pitched allocations, as textureAlignment says

hipError_t take(void** pointer, std::size_t bytes, MemoryKind kind) {
  if (pointer == nullptr) return hipErrorInvalidValue;
  DeviceContext* context = current_context();
  if (context == nullptr) return hipErrorNoDevice;
  if (context->error() != hipSuccess) return context->error();
  *pointer = nullptr;
  if (bytes == 0) return hipSuccess;
  if (kind == MemoryKind::device || kind == MemoryKind::managed) {
    const std::uint64_t total = context->device().target().memory_bytes;
    const std::uint64_t used = std::min(total, DeviceMemory::instance().allocated_bytes(context->ordinal()));
    if (bytes > total - used) return hipErrorOutOfMemory;
  }
  *pointer = DeviceMemory::instance().allocate(bytes, kind, context->ordinal());
  return *pointer != nullptr ? hipSuccess : hipErrorOutOfMemory;
}

hipError_t allocate(void** pointer, std::size_t bytes, MemoryKind kind) {
  const hipError_t refused = refuse_unsafe_call();
  return refused == hipSuccess ? take(pointer, bytes, kind) : refused;
}

// Work that may still use the memory ends first: HIP's hipFree waits for the device.
hipError_t release(void* pointer, bool host) {
  if (const hipError_t refused = refuse_unsafe_call(); refused != hipSuccess) return refused;
  if (pointer == nullptr) return hipSuccess;
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  const bool is_host = allocation.kind == MemoryKind::host_pinned;
  const bool is_device = allocation.kind == MemoryKind::device || allocation.kind == MemoryKind::managed;
  const bool starts_here = allocation.bytes != 0 && allocation.base == reinterpret_cast<std::uint64_t>(pointer);
  if (!starts_here || !(is_host || (is_device && !host))) return hipErrorInvalidValue;
  if (DeviceContext* context = find_context(allocation.device)) context->synchronize();
  return DeviceMemory::instance().free(pointer) ? hipSuccess : hipErrorInvalidValue;
}

hipMemoryType type_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::host_pinned:
    case MemoryKind::host_registered:
      return hipMemoryTypeHost;
    case MemoryKind::managed:
      return hipMemoryTypeManaged;
    default:
      return hipMemoryTypeDevice;
  }
}

hipError_t allocate_pitched(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  if (pointer == nullptr || pitch == nullptr) return hipErrorInvalidValue;
  if (width == 0 || height == 0) {
    *pointer = nullptr;
    return hipSuccess;
  }
  if (width > SIZE_MAX - row_alignment) return hipErrorOutOfMemory;
  const std::size_t row = (width + row_alignment - 1) / row_alignment * row_alignment;
  if (row > SIZE_MAX / height) return hipErrorOutOfMemory;
  const hipError_t error = allocate(pointer, row * height, MemoryKind::device);
  if (error == hipSuccess) *pitch = row;
  return error;
}

hipError_t allocate_host(void** pointer, std::size_t bytes, unsigned flags) {
  const bool both = (flags & hipHostMallocCoherent) != 0 && (flags & hipHostMallocNonCoherent) != 0;
  if (both || (flags & ~all_host_malloc_flags) != 0) return hipErrorInvalidValue;
  return allocate(pointer, bytes, MemoryKind::host_pinned);
}

}  // namespace

hipError_t hipMalloc(void** pointer, std::size_t bytes) { return finish(allocate(pointer, bytes, MemoryKind::device)); }

hipError_t hipExtMallocWithFlags(void** pointer, std::size_t bytes, unsigned flags) {
  if (flags > hipDeviceMallocContiguous) return finish(hipErrorInvalidValue);
  return finish(allocate(pointer, bytes, MemoryKind::device));
}

hipError_t hipMallocManaged(void** pointer, std::size_t bytes, unsigned flags) {
  if (bytes == 0 || (flags != hipMemAttachGlobal && flags != hipMemAttachHost)) return finish(hipErrorInvalidValue);
  return finish(allocate(pointer, bytes, MemoryKind::managed));
}

hipError_t hipMallocPitch(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height) {
  return finish(allocate_pitched(pointer, pitch, width, height));
}

hipError_t hipMemAllocPitch(hipDeviceptr_t* pointer, std::size_t* pitch, std::size_t width, std::size_t height,
                            unsigned element_bytes) {
  if (element_bytes != 4 && element_bytes != 8 && element_bytes != 16) return finish(hipErrorInvalidValue);
  return finish(allocate_pitched(pointer, pitch, width, height));
}

// The address is given at once and may be used in stream order from then on; there is no pool that would keep it.
hipError_t hipMallocAsync(void** pointer, std::size_t bytes, hipStream_t handle) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) {
    return finish(current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed);
  }
  if (const hipError_t refused = refuse_in_capture(stream); refused != hipSuccess) return finish(refused);
  return finish(take(pointer, bytes, MemoryKind::device));
}

hipError_t hipFree(void* pointer) { return finish(release(pointer, false)); }

hipError_t hipFreeAsync(void* pointer, hipStream_t handle) {
  const auto stream = find_stream(handle);
  if (stream == nullptr) {
    return finish(current_context() == nullptr ? hipErrorNoDevice : hipErrorContextIsDestroyed);
  }
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  const bool starts_here = allocation.bytes != 0 && allocation.base == reinterpret_cast<std::uint64_t>(pointer);
  if (!starts_here || allocation.kind != MemoryKind::device) return finish(hipErrorInvalidValue);
  if (const hipError_t refused = refuse_in_capture(stream); refused != hipSuccess) return finish(refused);
  stream->context().submit(stream, [pointer] { DeviceMemory::instance().free(pointer); }, Stream::AfterError::run);
  return finish(hipSuccess);
}

hipError_t hipHostMalloc(void** pointer, std::size_t bytes, unsigned flags) {
  return finish(allocate_host(pointer, bytes, flags));
}
hipError_t hipHostAlloc(void** pointer, std::size_t bytes, unsigned flags) {
  return finish(allocate_host(pointer, bytes, flags));
}
hipError_t hipMallocHost(void** pointer, std::size_t bytes) {
  return finish(allocate_host(pointer, bytes, hipHostMallocDefault));
}
hipError_t hipMemAllocHost(void** pointer, std::size_t bytes) {
  return finish(allocate_host(pointer, bytes, hipHostMallocDefault));
}
hipError_t hipHostFree(void* pointer) { return finish(release(pointer, true)); }
hipError_t hipFreeHost(void* pointer) { return finish(release(pointer, true)); }

hipError_t hipHostGetDevicePointer(void** device_pointer, void* host_pointer, unsigned flags) {
  if (device_pointer == nullptr || host_pointer == nullptr || flags != 0) return finish(hipErrorInvalidValue);
  const Allocation allocation = DeviceMemory::instance().lookup(host_pointer);
  if (allocation.bytes == 0 || type_of(allocation.kind) == hipMemoryTypeDevice) return finish(hipErrorInvalidValue);
  *device_pointer = host_pointer;
  return finish(hipSuccess);
}

hipError_t hipHostGetFlags(unsigned* flags, void* pointer) {
  if (flags == nullptr || pointer == nullptr) return finish(hipErrorInvalidValue);
  if (DeviceMemory::instance().lookup(pointer).kind != MemoryKind::host_pinned) return finish(hipErrorInvalidValue);
  *flags = hipHostMallocDefault;
  return finish(hipSuccess);
}

hipError_t hipHostRegister(void* pointer, std::size_t bytes, unsigned flags) {
  if (pointer == nullptr || bytes == 0 || (flags & ~all_host_register_flags) != 0) return finish(hipErrorInvalidValue);
  const DeviceContext* context = current_context();
  if (context == nullptr) return finish(hipErrorNoDevice);
  const bool adopted = DeviceMemory::instance().adopt(pointer, bytes, MemoryKind::host_registered, context->ordinal());
  return finish(adopted ? hipSuccess : hipErrorHostMemoryAlreadyRegistered);
}

hipError_t hipHostUnregister(void* pointer) {
  if (pointer == nullptr) return finish(hipErrorInvalidValue);
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  if (allocation.bytes == 0 || allocation.kind != MemoryKind::host_registered) {
    return finish(hipErrorHostMemoryNotRegistered);
  }
  if (DeviceContext* context = find_context(allocation.device)) context->synchronize();
  return finish(DeviceMemory::instance().forget(pointer) ? hipSuccess : hipErrorHostMemoryNotRegistered);
}

hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  if (free_bytes == nullptr && total_bytes == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = current_context();
  if (context == nullptr) return finish(hipErrorNoDevice);
  const std::uint64_t total = context->device().target().memory_bytes;
  if (total_bytes != nullptr) *total_bytes = total;
  if (free_bytes != nullptr) {
    *free_bytes = total - std::min(total, DeviceMemory::instance().allocated_bytes(context->ordinal()));
  }
  return finish(hipSuccess);
}

hipError_t hipMemPtrGetInfo(void* pointer, std::size_t* bytes) {
  if (bytes == nullptr) return finish(hipErrorInvalidValue);
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  if (allocation.bytes == 0) return finish(hipErrorInvalidValue);
  *bytes = allocation.bytes;
  return finish(hipSuccess);
}

hipError_t hipMemGetAddressRange(hipDeviceptr_t* base, std::size_t* bytes, hipDeviceptr_t pointer) {
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  if (pointer == nullptr || allocation.bytes == 0) return finish(hipErrorNotFound);
  if (base != nullptr) *base = host_pointer<void>(allocation.base);
  if (bytes != nullptr) *bytes = allocation.bytes;
  return finish(hipSuccess);
}

hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  if (attributes == nullptr || pointer == nullptr) return finish(hipErrorInvalidValue);
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  *attributes = {};
  if (allocation.bytes == 0) {  // a pointer of the program's own, which is no error
    attributes->type = hipMemoryTypeUnregistered;
    attributes->device = hip_invalid_device_id;
    return finish(hipSuccess);
  }
  attributes->type = type_of(allocation.kind);
  attributes->device = allocation.device;
  attributes->devicePointer = const_cast<void*>(pointer);
  if (attributes->type != hipMemoryTypeDevice) attributes->hostPointer = const_cast<void*>(pointer);
  attributes->isManaged = allocation.kind == MemoryKind::managed ? 1 : 0;
  return finish(hipSuccess);
}

hipError_t hipPointerGetAttribute(void* data, hipPointer_attribute attribute, hipDeviceptr_t pointer) {
  if (data == nullptr) return finish(hipErrorInvalidValue);
  const Allocation allocation = DeviceMemory::instance().lookup(pointer);
  if (pointer == nullptr || allocation.bytes == 0) return finish(hipErrorInvalidValue);
  const bool host_visible = type_of(allocation.kind) != hipMemoryTypeDevice;
  switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_CONTEXT:
      *static_cast<void**>(data) = find_context(allocation.device);
      break;
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
      *static_cast<hipMemoryType*>(data) = type_of(allocation.kind);
      break;
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
      *static_cast<void**>(data) = pointer;
      break;
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
      *static_cast<void**>(data) = host_visible ? pointer : nullptr;
      if (!host_visible) return finish(hipErrorInvalidValue);
      break;
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
      *static_cast<std::uint64_t*>(data) = allocation.base;
      break;
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
      *static_cast<int*>(data) = allocation.kind == MemoryKind::managed ? 1 : 0;
      break;
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      *static_cast<int*>(data) = allocation.device;
      break;
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      *static_cast<void**>(data) = host_pointer<void>(allocation.base);
      break;
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
      *static_cast<std::size_t*>(data) = allocation.bytes;
      break;
    case HIP_POINTER_ATTRIBUTE_MAPPED:
      *static_cast<int*>(data) = 1;
      break;
    default:
      return finish(hipErrorNotSupported);
  }
  return finish(hipSuccess);
}

// Advice and prefetching move nothing here: all memory is the host's. The arguments are still checked.
hipError_t hipMemAdvise(const void* pointer, std::size_t bytes, hipMemoryAdvise advice, int device) {
  const bool known = (advice >= hipMemAdviseSetReadMostly && advice <= hipMemAdviseUnsetAccessedBy) ||
                     advice == hipMemAdviseSetCoarseGrain || advice == hipMemAdviseUnsetCoarseGrain;
  if (pointer == nullptr || bytes == 0 || !known) return finish(hipErrorInvalidValue);
  if (device != hip_cpu_device_id && find_context(device) == nullptr) return finish(hipErrorInvalidDevice);
  if (const hipError_t refused = refuse_unsafe_call(); refused != hipSuccess) return finish(refused);
  if (!DeviceMemory::instance().lookup(pointer).holds(reinterpret_cast<std::uint64_t>(pointer), bytes)) {
    return finish(hipErrorInvalidValue);
  }
  return finish(hipSuccess);
}

hipError_t hipMemPrefetchAsync(const void* pointer, std::size_t bytes, int device, hipStream_t stream) {
  if (pointer == nullptr || bytes == 0) return finish(hipErrorInvalidValue);
  if (device != hip_cpu_device_id && find_context(device) == nullptr) return finish(hipErrorInvalidDevice);
  if (const hipError_t refused = refuse_unsafe_call(); refused != hipSuccess) return finish(refused);
  if (find_stream(stream) == nullptr) return finish(hipErrorContextIsDestroyed);
  if (!DeviceMemory::instance().lookup(pointer).holds(reinterpret_cast<std::uint64_t>(pointer), bytes)) {
    return finish(hipErrorInvalidValue);
  }
  return finish(hipSuccess);
}

}  // namespace wavejit::hip_abi
