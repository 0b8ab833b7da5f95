// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// HIP's handles, enums and small structs. The names are HIP's; the namespace lets HIP's own headers be included beside.
#pragma once

#include <cstddef>
#include <cstdint>

#include "hip_abi/hip_device.h"
#include "hip_abi/hip_errors.h"

// Opaque in HIP too, and global there: a stream of the C ABI of this project is the same type.
struct ihipStream_t;
struct ihipEvent_t;
struct ihipModule_t;
struct ihipModuleSymbol_t;
struct ihipCtx_t;
struct ihipMemPoolHandle_t;
struct ihipGraph;
struct hipGraphNode;
struct hipGraphExec;

namespace wavejit::hip_abi {

using hipDevice_t = int;
using hipDeviceptr_t = void*;
using hipStream_t = ::ihipStream_t*;
using hipEvent_t = ::ihipEvent_t*;
using hipModule_t = ::ihipModule_t*;
using hipFunction_t = ::ihipModuleSymbol_t*;
using hipCtx_t = ::ihipCtx_t*;
using hipMemPool_t = ::ihipMemPoolHandle_t*;
using hipGraph_t = ::ihipGraph*;
using hipGraphNode_t = ::hipGraphNode*;
using hipGraphExec_t = ::hipGraphExec*;
using hipHostFn_t = void (*)(void* user_data);
using hipStreamCallback_t = void (*)(hipStream_t stream, hipError_t status, void* user_data);

// Streams that exist without being created.
inline hipStream_t stream_legacy() { return reinterpret_cast<hipStream_t>(1); }
inline hipStream_t stream_per_thread() { return reinterpret_cast<hipStream_t>(2); }

// The keys of the `extra` argument of module launches: an array of key, value, key, value, end.
inline void* launch_param_buffer_pointer() { return reinterpret_cast<void*>(1); }
inline void* launch_param_buffer_size() { return reinterpret_cast<void*>(2); }
inline void* launch_param_end() { return reinterpret_cast<void*>(3); }

enum hipMemcpyKind : unsigned {
  hipMemcpyHostToHost = 0,
  hipMemcpyHostToDevice = 1,
  hipMemcpyDeviceToHost = 2,
  hipMemcpyDeviceToDevice = 3,
  hipMemcpyDefault = 4,
  hipMemcpyDeviceToDeviceNoCU = 1024,
};

enum hipMemoryType : unsigned {
  hipMemoryTypeUnregistered = 0,
  hipMemoryTypeHost = 1,
  hipMemoryTypeDevice = 2,
  hipMemoryTypeManaged = 3,
  hipMemoryTypeArray = 10,
  hipMemoryTypeUnified = 11,
};

enum hipFunction_attribute : unsigned {
  HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
  HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
  HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES = 2,
  HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
  HIP_FUNC_ATTRIBUTE_NUM_REGS = 4,
  HIP_FUNC_ATTRIBUTE_PTX_VERSION = 5,
  HIP_FUNC_ATTRIBUTE_BINARY_VERSION = 6,
  HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA = 7,
  HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT = 9,
};

enum hipFuncAttribute : unsigned {
  hipFuncAttributeMaxDynamicSharedMemorySize = 8,
  hipFuncAttributePreferredSharedMemoryCarveout = 9,
};

enum hipFuncCache_t : unsigned {
  hipFuncCachePreferNone = 0,
  hipFuncCachePreferShared = 1,
  hipFuncCachePreferL1 = 2,
  hipFuncCachePreferEqual = 3,
};

enum hipSharedMemConfig : unsigned {
  hipSharedMemBankSizeDefault = 0,
  hipSharedMemBankSizeFourByte = 1,
  hipSharedMemBankSizeEightByte = 2,
};

enum hipLimit_t : unsigned {
  hipLimitStackSize = 0x0,
  hipLimitPrintfFifoSize = 0x01,
  hipLimitMallocHeapSize = 0x02,
  hipExtLimitScratchMin = 0x1000,
  hipExtLimitScratchMax = 0x1001,
  hipExtLimitScratchCurrent = 0x1002,
};

enum hipPointer_attribute : unsigned {
  HIP_POINTER_ATTRIBUTE_CONTEXT = 1,
  HIP_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
  HIP_POINTER_ATTRIBUTE_DEVICE_POINTER = 3,
  HIP_POINTER_ATTRIBUTE_HOST_POINTER = 4,
  HIP_POINTER_ATTRIBUTE_BUFFER_ID = 7,
  HIP_POINTER_ATTRIBUTE_IS_MANAGED = 8,
  HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
  HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
  HIP_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
  HIP_POINTER_ATTRIBUTE_MAPPED = 13,
};

enum hipMemoryAdvise : unsigned {
  hipMemAdviseSetReadMostly = 1,
  hipMemAdviseUnsetReadMostly = 2,
  hipMemAdviseSetPreferredLocation = 3,
  hipMemAdviseUnsetPreferredLocation = 4,
  hipMemAdviseSetAccessedBy = 5,
  hipMemAdviseUnsetAccessedBy = 6,
  hipMemAdviseSetCoarseGrain = 100,
  hipMemAdviseUnsetCoarseGrain = 101,
};

enum hipStreamCaptureStatus : unsigned {
  hipStreamCaptureStatusNone = 0,
  hipStreamCaptureStatusActive = 1,
  hipStreamCaptureStatusInvalidated = 2,
};

enum hipStreamCaptureMode : unsigned {
  hipStreamCaptureModeGlobal = 0,
  hipStreamCaptureModeThreadLocal = 1,
  hipStreamCaptureModeRelaxed = 2,
};

enum hipGraphNodeType : unsigned {
  hipGraphNodeTypeKernel = 0,
  hipGraphNodeTypeMemcpy = 1,
  hipGraphNodeTypeMemset = 2,
  hipGraphNodeTypeHost = 3,
  hipGraphNodeTypeGraph = 4,
  hipGraphNodeTypeEmpty = 5,
};

enum hipDriverProcAddressQueryResult : unsigned {
  HIP_GET_PROC_ADDRESS_SUCCESS = 0,
  HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND = 1,
  HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT = 2,
};

// Options of hipModuleLoadDataEx; a code object needs none of them.
enum hipJitOption : unsigned {
  hipJitOptionMaxRegisters = 0,
  hipJitOptionThreadsPerBlock = 1,
  hipJitOptionWallTime = 2,
  hipJitOptionInfoLogBuffer = 3,
  hipJitOptionInfoLogBufferSizeBytes = 4,
  hipJitOptionErrorLogBuffer = 5,
  hipJitOptionErrorLogBufferSizeBytes = 6,
  hipJitOptionOptimizationLevel = 7,
  hipJitOptionTargetFromContext = 8,
  hipJitOptionTarget = 9,
  hipJitOptionFallbackStrategy = 10,
  hipJitOptionGenerateDebugInfo = 11,
  hipJitOptionLogVerbose = 12,
  hipJitOptionGenerateLineInfo = 13,
  hipJitOptionCacheMode = 14,
};

// Flags are plain unsigned arguments in HIP; values that mean the same under two names are listed once.
enum : unsigned {
  hipStreamDefault = 0x0,
  hipStreamNonBlocking = 0x1,

  hipEventDefault = 0x0,
  hipEventBlockingSync = 0x1,
  hipEventDisableTiming = 0x2,
  hipEventInterprocess = 0x4,
  hipEventDisableSystemFence = 0x20000000,
  hipEventReleaseToDevice = 0x40000000,
  hipEventReleaseToSystem = 0x80000000,
  hipEventRecordDefault = 0x0,
  hipEventRecordExternal = 0x1,
  hipEventWaitDefault = 0x0,
  hipEventWaitExternal = 0x1,

  hipHostMallocDefault = 0x0,
  hipHostMallocPortable = 0x1,
  hipHostMallocMapped = 0x2,
  hipHostMallocWriteCombined = 0x4,
  hipHostMallocUncached = 0x10000000,
  hipHostMallocNumaUser = 0x20000000,
  hipHostMallocCoherent = 0x40000000,
  hipHostMallocNonCoherent = 0x80000000,

  hipHostRegisterDefault = 0x0,
  hipHostRegisterPortable = 0x1,
  hipHostRegisterMapped = 0x2,
  hipHostRegisterIoMemory = 0x4,
  hipHostRegisterReadOnly = 0x8,
  hipExtHostRegisterUncached = 0x80000000,

  hipMemAttachGlobal = 0x1,
  hipMemAttachHost = 0x2,
  hipMemAttachSingle = 0x4,

  hipDeviceMallocDefault = 0x0,
  hipDeviceMallocFinegrained = 0x1,
  hipMallocSignalMemory = 0x2,
  hipDeviceMallocUncached = 0x3,
  hipDeviceMallocContiguous = 0x4,

  hipDeviceScheduleAuto = 0x0,
  hipDeviceScheduleSpin = 0x1,
  hipDeviceScheduleYield = 0x2,
  hipDeviceScheduleBlockingSync = 0x4,
  hipDeviceScheduleMask = 0x7,
  hipDeviceMapHost = 0x8,
  hipDeviceLmemResizeToMax = 0x10,

  hipGraphInstantiateFlagAutoFreeOnLaunch = 0x1,
  hipGraphInstantiateFlagUseNodePriority = 0x8,

  hipOccupancyDefault = 0x0,
  hipOccupancyDisableCachingOverride = 0x1,
  hipExtAnyOrderLaunch = 0x1,
};
inline constexpr int hip_cpu_device_id = -1;
inline constexpr int hip_invalid_device_id = -2;

// Twelve bytes, passed by value; trivially copyable, as in HIP.
struct dim3 {
  uint32_t x = 1;
  uint32_t y = 1;
  uint32_t z = 1;
};

struct hipPointerAttribute_t {
  hipMemoryType type;
  int device;
  void* devicePointer;
  void* hostPointer;
  int isManaged;
  unsigned allocationFlags;
};

struct hipFuncAttributes {
  int binaryVersion;
  int cacheModeCA;
  size_t constSizeBytes;
  size_t localSizeBytes;
  int maxDynamicSharedSizeBytes;
  int maxThreadsPerBlock;
  int numRegs;
  int preferredShmemCarveout;
  int ptxVersion;
  size_t sharedSizeBytes;
};

struct hipPitchedPtr {
  void* ptr;
  size_t pitch;
  size_t xsize;
  size_t ysize;
};

struct hipPos {
  size_t x;
  size_t y;
  size_t z;
};

struct hipExtent {
  size_t width;
  size_t height;
  size_t depth;
};

struct hipMemcpy3DParms {
  void* srcArray;
  hipPos srcPos;
  hipPitchedPtr srcPtr;
  void* dstArray;
  hipPos dstPos;
  hipPitchedPtr dstPtr;
  hipExtent extent;
  hipMemcpyKind kind;
};

struct hip_Memcpy2D {
  size_t srcXInBytes;
  size_t srcY;
  hipMemoryType srcMemoryType;
  const void* srcHost;
  hipDeviceptr_t srcDevice;
  void* srcArray;
  size_t srcPitch;
  size_t dstXInBytes;
  size_t dstY;
  hipMemoryType dstMemoryType;
  void* dstHost;
  hipDeviceptr_t dstDevice;
  void* dstArray;
  size_t dstPitch;
  size_t WidthInBytes;  // NOLINT(readability-identifier-naming): HIP's name
  size_t Height;        // NOLINT(readability-identifier-naming): HIP's name
};

struct hipKernelNodeParams {
  dim3 blockDim;
  void** extra;
  void* func;
  dim3 gridDim;
  void** kernelParams;
  unsigned sharedMemBytes;
};

struct hipMemsetParams {
  void* dst;
  unsigned elementSize;
  size_t height;
  size_t pitch;
  unsigned value;
  size_t width;
};

struct hipHostNodeParams {
  hipHostFn_t fn;
  void* userData;
};

}  // namespace wavejit::hip_abi
