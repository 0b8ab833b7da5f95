// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "hip_abi/hip_functions.h"
#include "simgpu/front_ends/hip/capture.h"
#include "simgpu/front_ends/hip/device_properties.h"
#include "simgpu/front_ends/hip/front.h"
#include "simgpu/machine/allocations/memory.h"

namespace wavejit::hip_abi {

using namespace simgpu;
using namespace simgpu::hip_front;

namespace {

// The HIP whose behaviour this library follows: 7.2.53211, as that version's own library reports it.
constexpr int hip_version = 70253211;
constexpr int hip_version_with_r0600_properties = 600;

// Limits that HIP lets a program set; nothing depends on them here.
constexpr std::size_t default_stack_bytes = 1024;
constexpr std::size_t default_heap_bytes = std::size_t{8} << 20;
std::atomic<std::size_t> stack_limit = default_stack_bytes;
std::atomic<std::size_t> heap_limit = default_heap_bytes;

constexpr unsigned all_device_flags = hipDeviceScheduleMask | hipDeviceMapHost | hipDeviceLmemResizeToMax;

// Contexts pushed by hipCtxPushCurrent and not popped yet.
thread_local std::vector<DeviceContext*> context_stack;

hipCtx_t handle_of(DeviceContext* context) { return reinterpret_cast<hipCtx_t>(context); }
DeviceContext* context_of(hipCtx_t handle) {
  for (int ordinal = 0; ordinal < Device::count(); ++ordinal) {
    DeviceContext* context = find_context(ordinal);
    if (handle_of(context) == handle) return context;
  }
  return nullptr;
}

hipError_t no_device_or(hipError_t error) { return Device::count() == 0 ? hipErrorNoDevice : error; }

}  // namespace

hipError_t hipInit(unsigned flags) {
  if (Device::count() == 0) return finish(hipErrorNoDevice);
  return finish(flags == 0 ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipDriverGetVersion(int* version) {
  if (version == nullptr) return finish(hipErrorInvalidValue);
  *version = hip_version;
  return finish(hipSuccess);
}

hipError_t hipRuntimeGetVersion(int* version) { return hipDriverGetVersion(version); }

hipError_t hipProfilerStart() { return finish(hipErrorNotSupported); }
hipError_t hipProfilerStop() { return finish(hipErrorNotSupported); }

hipError_t hipGetProcAddress(const char* symbol, void** function, int hip_version_wanted, std::uint64_t /*flags*/,
                             hipDriverProcAddressQueryResult* status) {
  if (symbol == nullptr || *symbol == 0 || function == nullptr) return finish(hipErrorInvalidValue);
  *function = nullptr;
  std::string name = symbol;
  if (name == "hipGetDeviceProperties" && hip_version_wanted >= hip_version_with_r0600_properties) name += "R0600";
  // Through this library's own handle: a process may have HIP's library beside it.
  Dl_info self = {};
  if (name.starts_with("hip") && dladdr(reinterpret_cast<void*>(&hipGetProcAddress), &self) != 0) {
    if (void* library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) {
      *function = dlsym(library, name.c_str());
      dlclose(library);
    }
  }
  if (status != nullptr) {
    *status = *function != nullptr ? HIP_GET_PROC_ADDRESS_SUCCESS : HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  }
  return finish(*function != nullptr ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipGetDeviceCount(int* count) {
  if (count == nullptr) return finish(hipErrorInvalidValue);
  *count = Device::count();
  return finish(*count == 0 ? hipErrorNoDevice : hipSuccess);
}

hipError_t hipGetDevice(int* device) {
  if (device == nullptr) return finish(hipErrorInvalidValue);
  if (Device::count() == 0) return finish(hipErrorNoDevice);
  *device = current_ordinal();
  return finish(hipSuccess);
}

hipError_t hipSetDevice(int device) {
  return finish(set_current_ordinal(device) ? hipSuccess : no_device_or(hipErrorInvalidDevice));
}

hipError_t hipSetValidDevices(int* devices, int count) {
  if (count < 0 || count > Device::count() || (devices == nullptr && count > 0)) return finish(hipErrorInvalidValue);
  for (int i = 0; i < count; ++i) {
    if (find_context(devices[i]) == nullptr) return finish(hipErrorInvalidDevice);
  }
  return finish(hipSuccess);
}

hipError_t hipDeviceGet(hipDevice_t* device, int ordinal) {
  if (device == nullptr) return finish(hipErrorInvalidValue);
  if (find_context(ordinal) == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  *device = ordinal;
  return finish(hipSuccess);
}

hipError_t hipDeviceGetName(char* name, int length, hipDevice_t device) {
  if (name == nullptr || length <= 0) return finish(hipErrorInvalidValue);
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  const hipDeviceProp_tR0600 properties = device_properties(context->device());
  const std::size_t copied = std::min<std::size_t>(std::strlen(properties.name), static_cast<std::size_t>(length) - 1);
  std::memcpy(name, properties.name, copied);
  name[copied] = 0;
  return finish(hipSuccess);
}

hipError_t hipDeviceTotalMem(std::size_t* bytes, hipDevice_t device) {
  if (bytes == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  *bytes = context->device().target().memory_bytes;
  return finish(hipSuccess);
}

hipError_t hipDeviceComputeCapability(int* major, int* minor, hipDevice_t device) {
  if (major == nullptr || minor == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  const hipDeviceProp_tR0600 properties = device_properties(context->device());
  *major = properties.major;
  *minor = properties.minor;
  return finish(hipSuccess);
}

hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  if (value == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  const auto answer = device_attribute(context->device(), attribute);
  if (!answer) return finish(hipErrorInvalidValue);
  *value = *answer;
  return finish(hipSuccess);
}

hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int device) {
  if (properties == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  *properties = device_properties(context->device());
  return finish(hipSuccess);
}

hipError_t hipGetDevicePropertiesR0000(hipDeviceProp_tR0000* properties, int device) {
  if (properties == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  *properties = to_old_layout(device_properties(context->device()));
  return finish(hipSuccess);
}

hipError_t hipGetDeviceProperties(hipDeviceProp_tR0000* properties, int device) {
  return hipGetDevicePropertiesR0000(properties, device);
}

hipError_t hipDeviceGetUuid(hipUUID* uuid, hipDevice_t device) {
  if (uuid == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  *uuid = device_properties(context->device()).uuid;
  return finish(hipSuccess);
}

hipError_t hipDeviceGetPCIBusId(char* bus_id, int length, int device) {
  if (bus_id == nullptr || length < 0) return finish(hipErrorInvalidValue);
  if (find_context(device) == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  const std::string text = pci_bus_id(device);
  if (static_cast<std::size_t>(length) <= text.size()) return finish(hipErrorInvalidValue);
  std::memcpy(bus_id, text.c_str(), text.size() + 1);
  return finish(hipSuccess);
}

hipError_t hipDeviceGetByPCIBusId(int* device, const char* bus_id) {
  if (device == nullptr || bus_id == nullptr) return finish(hipErrorInvalidValue);
  for (int ordinal = 0; ordinal < Device::count(); ++ordinal) {
    if (pci_bus_id(ordinal) == bus_id) {
      *device = ordinal;
      return finish(hipSuccess);
    }
  }
  return finish(no_device_or(hipErrorInvalidValue));
}

hipError_t hipDeviceSynchronize() {
  DeviceContext* context = current_context();
  if (context == nullptr) return finish(hipErrorNoDevice);
  if (const hipError_t refused = refuse_device_wait(); refused != hipSuccess) return finish(refused);
  context->synchronize();
  return finish(context->error());
}

hipError_t hipDeviceReset() {
  DeviceContext* context = current_context();
  if (context == nullptr) return finish(hipErrorNoDevice);
  if (const hipError_t refused = refuse_device_wait(); refused != hipSuccess) return finish(refused);
  context->synchronize();
  const auto view = DeviceMemory::instance().view();
  for (const Allocation& allocation : view->allocations()) {
    const bool of_the_program = allocation.kind == MemoryKind::device || allocation.kind == MemoryKind::managed;
    if (of_the_program && allocation.device == context->ordinal()) {
      DeviceMemory::instance().free(host_pointer<void>(allocation.base));
    }
  }
  context->clear_error();
  return finish(hipSuccess);
}

hipError_t hipDeviceGetLimit(std::size_t* value, hipLimit_t limit) {
  if (value == nullptr) return finish(hipErrorInvalidValue);
  if (Device::count() == 0) return finish(hipErrorNoDevice);
  switch (limit) {
    case hipLimitStackSize:
      *value = stack_limit;
      break;
    case hipLimitMallocHeapSize:
      *value = heap_limit;
      break;
    case hipExtLimitScratchMin:
      *value = 0;
      break;
    case hipExtLimitScratchMax:
    case hipExtLimitScratchCurrent:
      *value = current_context()->device().target().memory_bytes;
      break;
    default:
      return finish(hipErrorUnsupportedLimit);
  }
  return finish(hipSuccess);
}

hipError_t hipDeviceSetLimit(hipLimit_t limit, std::size_t value) {
  if (Device::count() == 0) return finish(hipErrorNoDevice);
  switch (limit) {
    case hipLimitStackSize:
      stack_limit = value;
      break;
    case hipLimitMallocHeapSize:
      heap_limit = value;
      break;
    default:
      return finish(hipErrorUnsupportedLimit);
  }
  return finish(hipSuccess);
}

hipError_t hipDeviceGetCacheConfig(hipFuncCache_t* config) {
  if (config == nullptr) return finish(hipErrorInvalidValue);
  *config = hipFuncCachePreferNone;
  return finish(hipSuccess);
}

hipError_t hipDeviceSetCacheConfig(hipFuncCache_t config) {
  return finish(config <= hipFuncCachePreferEqual ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipDeviceGetSharedMemConfig(hipSharedMemConfig* config) {
  if (config == nullptr) return finish(hipErrorInvalidValue);
  *config = hipSharedMemBankSizeFourByte;
  return finish(hipSuccess);
}

hipError_t hipDeviceSetSharedMemConfig(hipSharedMemConfig config) {
  return finish(config <= hipSharedMemBankSizeEightByte ? hipSuccess : hipErrorInvalidValue);
}

hipError_t hipGetDeviceFlags(unsigned* flags) {
  if (flags == nullptr) return finish(hipErrorInvalidValue);
  const DeviceContext* context = current_context();
  if (context == nullptr) return finish(hipErrorNoDevice);
  *flags = context->flags;
  return finish(hipSuccess);
}

hipError_t hipSetDeviceFlags(unsigned flags) {
  DeviceContext* context = current_context();
  if (context == nullptr) return finish(hipErrorNoDevice);
  if ((flags & ~all_device_flags) != 0) return finish(hipErrorInvalidValue);
  context->flags = flags;
  return finish(hipSuccess);
}

hipError_t hipDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least != nullptr) *least = 1;
  if (greatest != nullptr) *greatest = -1;
  return finish(hipSuccess);
}

// One address space for all devices, but no promise of links between them: peers are reached through copies only.
hipError_t hipDeviceCanAccessPeer(int* can_access, int device, int peer) {
  if (can_access == nullptr) return finish(hipErrorInvalidValue);
  if (find_context(device) == nullptr || find_context(peer) == nullptr) return finish(hipErrorInvalidDevice);
  *can_access = 0;
  return finish(hipSuccess);
}

hipError_t hipDeviceEnablePeerAccess(int peer, unsigned flags) {
  if (flags != 0) return finish(hipErrorInvalidValue);
  if (find_context(peer) == nullptr) return finish(hipErrorInvalidDevice);
  return finish(hipErrorPeerAccessUnsupported);
}

hipError_t hipDeviceDisablePeerAccess(int peer) {
  if (find_context(peer) == nullptr) return finish(hipErrorInvalidDevice);
  return finish(hipErrorPeerAccessNotEnabled);
}

hipError_t hipCtxCreate(hipCtx_t* context, unsigned flags, hipDevice_t device) {
  if (context == nullptr) return finish(hipErrorInvalidValue);
  DeviceContext* found = find_context(device);
  if (found == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  found->flags = flags;
  *context = handle_of(found);
  context_stack.push_back(found);
  set_current_ordinal(device);
  return finish(hipSuccess);
}

hipError_t hipCtxDestroy(hipCtx_t context) {
  DeviceContext* found = context_of(context);
  if (found == nullptr) return finish(hipErrorInvalidValue);
  if (!context_stack.empty() && context_stack.back() == found) context_stack.pop_back();
  return finish(hipSuccess);
}

hipError_t hipCtxGetCurrent(hipCtx_t* context) {
  if (context == nullptr) return finish(hipErrorInvalidValue);
  if (Device::count() == 0) return finish(hipErrorNoDevice);
  *context = handle_of(current_context());
  return finish(hipSuccess);
}

hipError_t hipCtxSetCurrent(hipCtx_t context) {
  if (context == nullptr) {
    if (!context_stack.empty()) context_stack.pop_back();
    return finish(hipSuccess);
  }
  DeviceContext* found = context_of(context);
  if (found == nullptr) return finish(hipErrorInvalidContext);
  if (!context_stack.empty()) context_stack.pop_back();
  context_stack.push_back(found);
  set_current_ordinal(found->ordinal());
  return finish(hipSuccess);
}

hipError_t hipCtxPushCurrent(hipCtx_t context) {
  DeviceContext* found = context_of(context);
  if (found == nullptr) return finish(hipErrorInvalidContext);
  context_stack.push_back(found);
  set_current_ordinal(found->ordinal());
  return finish(hipSuccess);
}

hipError_t hipCtxPopCurrent(hipCtx_t* context) {
  if (context_stack.empty()) return finish(hipErrorInvalidContext);
  if (context != nullptr) *context = handle_of(context_stack.back());
  context_stack.pop_back();
  if (!context_stack.empty()) set_current_ordinal(context_stack.back()->ordinal());
  return finish(hipSuccess);
}

hipError_t hipCtxGetDevice(hipDevice_t* device) { return hipGetDevice(device); }

hipError_t hipCtxGetApiVersion(hipCtx_t context, unsigned* version) {
  if (version == nullptr) return finish(hipErrorInvalidValue);
  if (context != nullptr && context_of(context) == nullptr) return finish(hipErrorInvalidContext);
  *version = 4;  // the number that HIP has answered since its beginning
  return finish(hipSuccess);
}

hipError_t hipCtxGetFlags(unsigned* flags) { return hipGetDeviceFlags(flags); }
hipError_t hipCtxSynchronize() { return hipDeviceSynchronize(); }

hipError_t hipDevicePrimaryCtxRetain(hipCtx_t* context, hipDevice_t device) {
  if (context == nullptr) return finish(hipErrorInvalidValue);
  DeviceContext* found = find_context(device);
  if (found == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  *context = handle_of(found);
  return finish(hipSuccess);
}

hipError_t hipDevicePrimaryCtxRelease(hipDevice_t device) {
  return finish(find_context(device) != nullptr ? hipSuccess : no_device_or(hipErrorInvalidDevice));
}

hipError_t hipDevicePrimaryCtxReset(hipDevice_t device) {
  return finish(find_context(device) != nullptr ? hipSuccess : no_device_or(hipErrorInvalidDevice));
}

hipError_t hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned* flags, int* active) {
  const DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  if (flags != nullptr) *flags = context->flags;
  if (active != nullptr) *active = 1;
  return finish(hipSuccess);
}

hipError_t hipDevicePrimaryCtxSetFlags(hipDevice_t device, unsigned flags) {
  DeviceContext* context = find_context(device);
  if (context == nullptr) return finish(no_device_or(hipErrorInvalidDevice));
  if ((flags & ~all_device_flags) != 0) return finish(hipErrorInvalidValue);
  context->flags = flags;
  return finish(hipSuccess);
}

}  // namespace wavejit::hip_abi
