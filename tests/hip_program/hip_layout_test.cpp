// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// src/hip_abi against the installed headers: sizes, offsets, and the values of what both name.
#include "hip_abi/hip_abi.h"

// HIP's flags are macros, which would replace the names below: ours are taken down before HIP's headers come.
namespace {
constexpr unsigned our_flags[] = {
    wavejit::hip_abi::hipStreamDefault,
    wavejit::hip_abi::hipStreamNonBlocking,
    wavejit::hip_abi::hipEventDefault,
    wavejit::hip_abi::hipEventBlockingSync,
    wavejit::hip_abi::hipEventDisableTiming,
    wavejit::hip_abi::hipEventInterprocess,
    wavejit::hip_abi::hipEventDisableSystemFence,
    wavejit::hip_abi::hipEventReleaseToDevice,
    wavejit::hip_abi::hipEventReleaseToSystem,
    wavejit::hip_abi::hipEventRecordDefault,
    wavejit::hip_abi::hipEventRecordExternal,
    wavejit::hip_abi::hipEventWaitDefault,
    wavejit::hip_abi::hipEventWaitExternal,
    wavejit::hip_abi::hipHostMallocDefault,
    wavejit::hip_abi::hipHostMallocPortable,
    wavejit::hip_abi::hipHostMallocMapped,
    wavejit::hip_abi::hipHostMallocWriteCombined,
    wavejit::hip_abi::hipHostMallocUncached,
    wavejit::hip_abi::hipHostMallocNumaUser,
    wavejit::hip_abi::hipHostMallocCoherent,
    wavejit::hip_abi::hipHostMallocNonCoherent,
    wavejit::hip_abi::hipHostRegisterDefault,
    wavejit::hip_abi::hipHostRegisterPortable,
    wavejit::hip_abi::hipHostRegisterMapped,
    wavejit::hip_abi::hipHostRegisterIoMemory,
    wavejit::hip_abi::hipHostRegisterReadOnly,
    wavejit::hip_abi::hipExtHostRegisterUncached,
    wavejit::hip_abi::hipMemAttachGlobal,
    wavejit::hip_abi::hipMemAttachHost,
    wavejit::hip_abi::hipMemAttachSingle,
    wavejit::hip_abi::hipDeviceMallocDefault,
    wavejit::hip_abi::hipDeviceMallocFinegrained,
    wavejit::hip_abi::hipMallocSignalMemory,
    wavejit::hip_abi::hipDeviceMallocUncached,
    wavejit::hip_abi::hipDeviceMallocContiguous,
    wavejit::hip_abi::hipDeviceScheduleAuto,
    wavejit::hip_abi::hipDeviceScheduleSpin,
    wavejit::hip_abi::hipDeviceScheduleYield,
    wavejit::hip_abi::hipDeviceScheduleBlockingSync,
    wavejit::hip_abi::hipDeviceScheduleMask,
    wavejit::hip_abi::hipDeviceMapHost,
    wavejit::hip_abi::hipDeviceLmemResizeToMax,
    wavejit::hip_abi::hipOccupancyDefault,
    wavejit::hip_abi::hipOccupancyDisableCachingOverride,
    wavejit::hip_abi::hipExtAnyOrderLaunch,
};
}  // namespace

#define __HIP_PLATFORM_AMD__
#include <gtest/gtest.h>
#include <hip/hip_runtime_api.h>
// After it: it uses its types.
#include <hip/hip_deprecated.h>

#include <cstddef>
#include <iterator>

namespace {

namespace ours = wavejit::hip_abi;

// HIP's headers rename the property struct by a macro; both layouts have their own names.
#undef hipDeviceProp_t

#define EXPECT_SIZE(type) EXPECT_EQ(sizeof(ours::type), sizeof(::type)) << #type
#define EXPECT_FIELD(type, field)                                                      \
  EXPECT_EQ(offsetof(ours::type, field), offsetof(::type, field)) << #type "." #field; \
  EXPECT_EQ(sizeof(ours::type::field), sizeof(::type::field)) << #type "." #field
#define EXPECT_VALUE(name) EXPECT_EQ(static_cast<long>(ours::name), static_cast<long>(::name)) << #name

TEST(HipLayout, sizes) {
  EXPECT_EQ(sizeof(ours::hipDeviceProp_tR0600), 1472U);
  EXPECT_SIZE(hipDeviceProp_tR0600);
  EXPECT_SIZE(hipDeviceProp_tR0000);
  EXPECT_SIZE(hipDeviceArch_t);
  EXPECT_SIZE(hipUUID);
  EXPECT_SIZE(hipPointerAttribute_t);
  EXPECT_SIZE(hipFuncAttributes);
  EXPECT_SIZE(hipPitchedPtr);
  EXPECT_SIZE(hipMemcpy3DParms);
  EXPECT_SIZE(hip_Memcpy2D);
  EXPECT_SIZE(dim3);
  EXPECT_SIZE(hipError_t);
  EXPECT_SIZE(hipMemcpyKind);
}

TEST(HipLayout, properties) {
  EXPECT_FIELD(hipDeviceProp_tR0600, name);
  EXPECT_FIELD(hipDeviceProp_tR0600, uuid);
  EXPECT_FIELD(hipDeviceProp_tR0600, luid);
  EXPECT_FIELD(hipDeviceProp_tR0600, luidDeviceNodeMask);
  EXPECT_FIELD(hipDeviceProp_tR0600, totalGlobalMem);
  EXPECT_FIELD(hipDeviceProp_tR0600, sharedMemPerBlock);
  EXPECT_FIELD(hipDeviceProp_tR0600, regsPerBlock);
  EXPECT_FIELD(hipDeviceProp_tR0600, warpSize);
  EXPECT_FIELD(hipDeviceProp_tR0600, memPitch);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxThreadsPerBlock);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxThreadsDim);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxGridSize);
  EXPECT_FIELD(hipDeviceProp_tR0600, clockRate);
  EXPECT_FIELD(hipDeviceProp_tR0600, totalConstMem);
  EXPECT_FIELD(hipDeviceProp_tR0600, major);
  EXPECT_FIELD(hipDeviceProp_tR0600, minor);
  EXPECT_FIELD(hipDeviceProp_tR0600, textureAlignment);
  EXPECT_FIELD(hipDeviceProp_tR0600, texturePitchAlignment);
  EXPECT_FIELD(hipDeviceProp_tR0600, deviceOverlap);
  EXPECT_FIELD(hipDeviceProp_tR0600, multiProcessorCount);
  EXPECT_FIELD(hipDeviceProp_tR0600, kernelExecTimeoutEnabled);
  EXPECT_FIELD(hipDeviceProp_tR0600, integrated);
  EXPECT_FIELD(hipDeviceProp_tR0600, canMapHostMemory);
  EXPECT_FIELD(hipDeviceProp_tR0600, computeMode);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture1D);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture1DMipmap);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture1DLinear);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture2D);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture2DMipmap);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture2DLinear);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture2DGather);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture3D);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture3DAlt);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTextureCubemap);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture1DLayered);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTexture2DLayered);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxTextureCubemapLayered);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSurface1D);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSurface2D);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSurface3D);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSurface1DLayered);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSurface2DLayered);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSurfaceCubemap);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSurfaceCubemapLayered);
  EXPECT_FIELD(hipDeviceProp_tR0600, surfaceAlignment);
  EXPECT_FIELD(hipDeviceProp_tR0600, concurrentKernels);
  EXPECT_FIELD(hipDeviceProp_tR0600, ECCEnabled);
  EXPECT_FIELD(hipDeviceProp_tR0600, pciBusID);
  EXPECT_FIELD(hipDeviceProp_tR0600, pciDeviceID);
  EXPECT_FIELD(hipDeviceProp_tR0600, pciDomainID);
  EXPECT_FIELD(hipDeviceProp_tR0600, tccDriver);
  EXPECT_FIELD(hipDeviceProp_tR0600, asyncEngineCount);
  EXPECT_FIELD(hipDeviceProp_tR0600, unifiedAddressing);
  EXPECT_FIELD(hipDeviceProp_tR0600, memoryClockRate);
  EXPECT_FIELD(hipDeviceProp_tR0600, memoryBusWidth);
  EXPECT_FIELD(hipDeviceProp_tR0600, l2CacheSize);
  EXPECT_FIELD(hipDeviceProp_tR0600, persistingL2CacheMaxSize);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxThreadsPerMultiProcessor);
  EXPECT_FIELD(hipDeviceProp_tR0600, streamPrioritiesSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, globalL1CacheSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, localL1CacheSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, sharedMemPerMultiprocessor);
  EXPECT_FIELD(hipDeviceProp_tR0600, regsPerMultiprocessor);
  EXPECT_FIELD(hipDeviceProp_tR0600, managedMemory);
  EXPECT_FIELD(hipDeviceProp_tR0600, isMultiGpuBoard);
  EXPECT_FIELD(hipDeviceProp_tR0600, multiGpuBoardGroupID);
  EXPECT_FIELD(hipDeviceProp_tR0600, hostNativeAtomicSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, singleToDoublePrecisionPerfRatio);
  EXPECT_FIELD(hipDeviceProp_tR0600, pageableMemoryAccess);
  EXPECT_FIELD(hipDeviceProp_tR0600, concurrentManagedAccess);
  EXPECT_FIELD(hipDeviceProp_tR0600, computePreemptionSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, canUseHostPointerForRegisteredMem);
  EXPECT_FIELD(hipDeviceProp_tR0600, cooperativeLaunch);
  EXPECT_FIELD(hipDeviceProp_tR0600, cooperativeMultiDeviceLaunch);
  EXPECT_FIELD(hipDeviceProp_tR0600, sharedMemPerBlockOptin);
  EXPECT_FIELD(hipDeviceProp_tR0600, pageableMemoryAccessUsesHostPageTables);
  EXPECT_FIELD(hipDeviceProp_tR0600, directManagedMemAccessFromHost);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxBlocksPerMultiProcessor);
  EXPECT_FIELD(hipDeviceProp_tR0600, accessPolicyMaxWindowSize);
  EXPECT_FIELD(hipDeviceProp_tR0600, reservedSharedMemPerBlock);
  EXPECT_FIELD(hipDeviceProp_tR0600, hostRegisterSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, sparseHipArraySupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, hostRegisterReadOnlySupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, timelineSemaphoreInteropSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, memoryPoolsSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, gpuDirectRDMASupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, gpuDirectRDMAFlushWritesOptions);
  EXPECT_FIELD(hipDeviceProp_tR0600, gpuDirectRDMAWritesOrdering);
  EXPECT_FIELD(hipDeviceProp_tR0600, memoryPoolSupportedHandleTypes);
  EXPECT_FIELD(hipDeviceProp_tR0600, deferredMappingHipArraySupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, ipcEventSupported);
  EXPECT_FIELD(hipDeviceProp_tR0600, clusterLaunch);
  EXPECT_FIELD(hipDeviceProp_tR0600, unifiedFunctionPointers);
  EXPECT_FIELD(hipDeviceProp_tR0600, reserved);
  EXPECT_FIELD(hipDeviceProp_tR0600, hipReserved);
  EXPECT_FIELD(hipDeviceProp_tR0600, gcnArchName);
  EXPECT_FIELD(hipDeviceProp_tR0600, maxSharedMemoryPerMultiProcessor);
  EXPECT_FIELD(hipDeviceProp_tR0600, clockInstructionRate);
  EXPECT_FIELD(hipDeviceProp_tR0600, arch);
  EXPECT_FIELD(hipDeviceProp_tR0600, hdpMemFlushCntl);
  EXPECT_FIELD(hipDeviceProp_tR0600, hdpRegFlushCntl);
  EXPECT_FIELD(hipDeviceProp_tR0600, cooperativeMultiDeviceUnmatchedFunc);
  EXPECT_FIELD(hipDeviceProp_tR0600, cooperativeMultiDeviceUnmatchedGridDim);
  EXPECT_FIELD(hipDeviceProp_tR0600, cooperativeMultiDeviceUnmatchedBlockDim);
  EXPECT_FIELD(hipDeviceProp_tR0600, cooperativeMultiDeviceUnmatchedSharedMem);
  EXPECT_FIELD(hipDeviceProp_tR0600, isLargeBar);
  EXPECT_FIELD(hipDeviceProp_tR0600, asicRevision);
}

TEST(HipLayout, properties_before_hip_6) {
  EXPECT_FIELD(hipDeviceProp_tR0000, name);
  EXPECT_FIELD(hipDeviceProp_tR0000, totalGlobalMem);
  EXPECT_FIELD(hipDeviceProp_tR0000, sharedMemPerBlock);
  EXPECT_FIELD(hipDeviceProp_tR0000, regsPerBlock);
  EXPECT_FIELD(hipDeviceProp_tR0000, warpSize);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxThreadsPerBlock);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxThreadsDim);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxGridSize);
  EXPECT_FIELD(hipDeviceProp_tR0000, clockRate);
  EXPECT_FIELD(hipDeviceProp_tR0000, memoryClockRate);
  EXPECT_FIELD(hipDeviceProp_tR0000, memoryBusWidth);
  EXPECT_FIELD(hipDeviceProp_tR0000, totalConstMem);
  EXPECT_FIELD(hipDeviceProp_tR0000, major);
  EXPECT_FIELD(hipDeviceProp_tR0000, minor);
  EXPECT_FIELD(hipDeviceProp_tR0000, multiProcessorCount);
  EXPECT_FIELD(hipDeviceProp_tR0000, l2CacheSize);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxThreadsPerMultiProcessor);
  EXPECT_FIELD(hipDeviceProp_tR0000, computeMode);
  EXPECT_FIELD(hipDeviceProp_tR0000, clockInstructionRate);
  EXPECT_FIELD(hipDeviceProp_tR0000, arch);
  EXPECT_FIELD(hipDeviceProp_tR0000, concurrentKernels);
  EXPECT_FIELD(hipDeviceProp_tR0000, pciDomainID);
  EXPECT_FIELD(hipDeviceProp_tR0000, pciBusID);
  EXPECT_FIELD(hipDeviceProp_tR0000, pciDeviceID);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxSharedMemoryPerMultiProcessor);
  EXPECT_FIELD(hipDeviceProp_tR0000, isMultiGpuBoard);
  EXPECT_FIELD(hipDeviceProp_tR0000, canMapHostMemory);
  EXPECT_FIELD(hipDeviceProp_tR0000, gcnArch);
  EXPECT_FIELD(hipDeviceProp_tR0000, gcnArchName);
  EXPECT_FIELD(hipDeviceProp_tR0000, integrated);
  EXPECT_FIELD(hipDeviceProp_tR0000, cooperativeLaunch);
  EXPECT_FIELD(hipDeviceProp_tR0000, cooperativeMultiDeviceLaunch);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxTexture1DLinear);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxTexture1D);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxTexture2D);
  EXPECT_FIELD(hipDeviceProp_tR0000, maxTexture3D);
  EXPECT_FIELD(hipDeviceProp_tR0000, hdpMemFlushCntl);
  EXPECT_FIELD(hipDeviceProp_tR0000, hdpRegFlushCntl);
  EXPECT_FIELD(hipDeviceProp_tR0000, memPitch);
  EXPECT_FIELD(hipDeviceProp_tR0000, textureAlignment);
  EXPECT_FIELD(hipDeviceProp_tR0000, texturePitchAlignment);
  EXPECT_FIELD(hipDeviceProp_tR0000, kernelExecTimeoutEnabled);
  EXPECT_FIELD(hipDeviceProp_tR0000, ECCEnabled);
  EXPECT_FIELD(hipDeviceProp_tR0000, tccDriver);
  EXPECT_FIELD(hipDeviceProp_tR0000, cooperativeMultiDeviceUnmatchedFunc);
  EXPECT_FIELD(hipDeviceProp_tR0000, cooperativeMultiDeviceUnmatchedGridDim);
  EXPECT_FIELD(hipDeviceProp_tR0000, cooperativeMultiDeviceUnmatchedBlockDim);
  EXPECT_FIELD(hipDeviceProp_tR0000, cooperativeMultiDeviceUnmatchedSharedMem);
  EXPECT_FIELD(hipDeviceProp_tR0000, isLargeBar);
  EXPECT_FIELD(hipDeviceProp_tR0000, asicRevision);
  EXPECT_FIELD(hipDeviceProp_tR0000, managedMemory);
  EXPECT_FIELD(hipDeviceProp_tR0000, directManagedMemAccessFromHost);
  EXPECT_FIELD(hipDeviceProp_tR0000, concurrentManagedAccess);
  EXPECT_FIELD(hipDeviceProp_tR0000, pageableMemoryAccess);
  EXPECT_FIELD(hipDeviceProp_tR0000, pageableMemoryAccessUsesHostPageTables);
}

TEST(HipLayout, small_structs) {
  EXPECT_FIELD(hipPointerAttribute_t, type);
  EXPECT_FIELD(hipPointerAttribute_t, device);
  EXPECT_FIELD(hipPointerAttribute_t, devicePointer);
  EXPECT_FIELD(hipPointerAttribute_t, hostPointer);
  EXPECT_FIELD(hipPointerAttribute_t, isManaged);
  EXPECT_FIELD(hipPointerAttribute_t, allocationFlags);
  EXPECT_FIELD(hipFuncAttributes, binaryVersion);
  EXPECT_FIELD(hipFuncAttributes, constSizeBytes);
  EXPECT_FIELD(hipFuncAttributes, localSizeBytes);
  EXPECT_FIELD(hipFuncAttributes, maxDynamicSharedSizeBytes);
  EXPECT_FIELD(hipFuncAttributes, maxThreadsPerBlock);
  EXPECT_FIELD(hipFuncAttributes, numRegs);
  EXPECT_FIELD(hipFuncAttributes, sharedSizeBytes);
  EXPECT_FIELD(hip_Memcpy2D, srcMemoryType);
  EXPECT_FIELD(hip_Memcpy2D, srcHost);
  EXPECT_FIELD(hip_Memcpy2D, srcPitch);
  EXPECT_FIELD(hip_Memcpy2D, dstDevice);
  EXPECT_FIELD(hip_Memcpy2D, dstPitch);
  EXPECT_FIELD(hip_Memcpy2D, WidthInBytes);
  EXPECT_FIELD(hip_Memcpy2D, Height);
  EXPECT_FIELD(hipMemcpy3DParms, srcPtr);
  EXPECT_FIELD(hipMemcpy3DParms, dstPos);
  EXPECT_FIELD(hipMemcpy3DParms, extent);
  EXPECT_FIELD(hipMemcpy3DParms, kind);
  EXPECT_FIELD(hipKernelNodeParams, blockDim);
  EXPECT_FIELD(hipKernelNodeParams, extra);
  EXPECT_FIELD(hipKernelNodeParams, func);
  EXPECT_FIELD(hipKernelNodeParams, gridDim);
  EXPECT_FIELD(hipKernelNodeParams, kernelParams);
  EXPECT_FIELD(hipKernelNodeParams, sharedMemBytes);
  EXPECT_FIELD(hipMemsetParams, dst);
  EXPECT_FIELD(hipMemsetParams, elementSize);
  EXPECT_FIELD(hipMemsetParams, height);
  EXPECT_FIELD(hipMemsetParams, pitch);
  EXPECT_FIELD(hipMemsetParams, value);
  EXPECT_FIELD(hipMemsetParams, width);
  EXPECT_FIELD(hipHostNodeParams, fn);
  EXPECT_FIELD(hipHostNodeParams, userData);
}

TEST(HipLayout, graphs) {
  EXPECT_VALUE(hipGraphNodeTypeKernel);
  EXPECT_VALUE(hipGraphNodeTypeMemcpy);
  EXPECT_VALUE(hipGraphNodeTypeMemset);
  EXPECT_VALUE(hipGraphNodeTypeHost);
  EXPECT_VALUE(hipGraphNodeTypeGraph);
  EXPECT_VALUE(hipGraphNodeTypeEmpty);
  EXPECT_VALUE(hipGraphInstantiateFlagAutoFreeOnLaunch);
  EXPECT_VALUE(hipGraphInstantiateFlagUseNodePriority);
}

TEST(HipLayout, errors) {
  // Names and texts are compared with what HIP's library says where the two libraries meet: these are the numbers.
  EXPECT_VALUE(hipSuccess);
  EXPECT_VALUE(hipErrorInvalidValue);
  EXPECT_VALUE(hipErrorOutOfMemory);
  EXPECT_VALUE(hipErrorNotInitialized);
  EXPECT_VALUE(hipErrorDeinitialized);
  EXPECT_VALUE(hipErrorProfilerDisabled);
  EXPECT_VALUE(hipErrorProfilerNotInitialized);
  EXPECT_VALUE(hipErrorProfilerAlreadyStarted);
  EXPECT_VALUE(hipErrorProfilerAlreadyStopped);
  EXPECT_VALUE(hipErrorInvalidConfiguration);
  EXPECT_VALUE(hipErrorInvalidPitchValue);
  EXPECT_VALUE(hipErrorInvalidSymbol);
  EXPECT_VALUE(hipErrorInvalidDevicePointer);
  EXPECT_VALUE(hipErrorInvalidMemcpyDirection);
  EXPECT_VALUE(hipErrorInsufficientDriver);
  EXPECT_VALUE(hipErrorMissingConfiguration);
  EXPECT_VALUE(hipErrorPriorLaunchFailure);
  EXPECT_VALUE(hipErrorInvalidDeviceFunction);
  EXPECT_VALUE(hipErrorNoDevice);
  EXPECT_VALUE(hipErrorInvalidDevice);
  EXPECT_VALUE(hipErrorInvalidImage);
  EXPECT_VALUE(hipErrorInvalidContext);
  EXPECT_VALUE(hipErrorContextAlreadyCurrent);
  EXPECT_VALUE(hipErrorMapFailed);
  EXPECT_VALUE(hipErrorUnmapFailed);
  EXPECT_VALUE(hipErrorArrayIsMapped);
  EXPECT_VALUE(hipErrorAlreadyMapped);
  EXPECT_VALUE(hipErrorNoBinaryForGpu);
  EXPECT_VALUE(hipErrorAlreadyAcquired);
  EXPECT_VALUE(hipErrorNotMapped);
  EXPECT_VALUE(hipErrorNotMappedAsArray);
  EXPECT_VALUE(hipErrorNotMappedAsPointer);
  EXPECT_VALUE(hipErrorECCNotCorrectable);
  EXPECT_VALUE(hipErrorUnsupportedLimit);
  EXPECT_VALUE(hipErrorContextAlreadyInUse);
  EXPECT_VALUE(hipErrorPeerAccessUnsupported);
  EXPECT_VALUE(hipErrorInvalidKernelFile);
  EXPECT_VALUE(hipErrorInvalidGraphicsContext);
  EXPECT_VALUE(hipErrorInvalidSource);
  EXPECT_VALUE(hipErrorFileNotFound);
  EXPECT_VALUE(hipErrorSharedObjectSymbolNotFound);
  EXPECT_VALUE(hipErrorSharedObjectInitFailed);
  EXPECT_VALUE(hipErrorOperatingSystem);
  EXPECT_VALUE(hipErrorInvalidHandle);
  EXPECT_VALUE(hipErrorIllegalState);
  EXPECT_VALUE(hipErrorNotFound);
  EXPECT_VALUE(hipErrorNotReady);
  EXPECT_VALUE(hipErrorIllegalAddress);
  EXPECT_VALUE(hipErrorLaunchOutOfResources);
  EXPECT_VALUE(hipErrorLaunchTimeOut);
  EXPECT_VALUE(hipErrorPeerAccessAlreadyEnabled);
  EXPECT_VALUE(hipErrorPeerAccessNotEnabled);
  EXPECT_VALUE(hipErrorSetOnActiveProcess);
  EXPECT_VALUE(hipErrorContextIsDestroyed);
  EXPECT_VALUE(hipErrorAssert);
  EXPECT_VALUE(hipErrorHostMemoryAlreadyRegistered);
  EXPECT_VALUE(hipErrorHostMemoryNotRegistered);
  EXPECT_VALUE(hipErrorLaunchFailure);
  EXPECT_VALUE(hipErrorCooperativeLaunchTooLarge);
  EXPECT_VALUE(hipErrorNotSupported);
  EXPECT_VALUE(hipErrorStreamCaptureUnsupported);
  EXPECT_VALUE(hipErrorStreamCaptureInvalidated);
  EXPECT_VALUE(hipErrorStreamCaptureMerge);
  EXPECT_VALUE(hipErrorStreamCaptureUnmatched);
  EXPECT_VALUE(hipErrorStreamCaptureUnjoined);
  EXPECT_VALUE(hipErrorStreamCaptureIsolation);
  EXPECT_VALUE(hipErrorStreamCaptureImplicit);
  EXPECT_VALUE(hipErrorCapturedEvent);
  EXPECT_VALUE(hipErrorStreamCaptureWrongThread);
  EXPECT_VALUE(hipErrorGraphExecUpdateFailure);
  EXPECT_VALUE(hipErrorInvalidChannelDescriptor);
  EXPECT_VALUE(hipErrorInvalidTexture);
  EXPECT_VALUE(hipErrorUnknown);
  EXPECT_VALUE(hipErrorRuntimeMemory);
  EXPECT_VALUE(hipErrorRuntimeOther);
  EXPECT_VALUE(hipErrorTbd);
}

TEST(HipLayout, attributes) {
  EXPECT_VALUE(hipDeviceAttributeEccEnabled);
  EXPECT_VALUE(hipDeviceAttributeAccessPolicyMaxWindowSize);
  EXPECT_VALUE(hipDeviceAttributeAsyncEngineCount);
  EXPECT_VALUE(hipDeviceAttributeCanMapHostMemory);
  EXPECT_VALUE(hipDeviceAttributeCanUseHostPointerForRegisteredMem);
  EXPECT_VALUE(hipDeviceAttributeClockRate);
  EXPECT_VALUE(hipDeviceAttributeComputeMode);
  EXPECT_VALUE(hipDeviceAttributeComputePreemptionSupported);
  EXPECT_VALUE(hipDeviceAttributeConcurrentKernels);
  EXPECT_VALUE(hipDeviceAttributeConcurrentManagedAccess);
  EXPECT_VALUE(hipDeviceAttributeCooperativeLaunch);
  EXPECT_VALUE(hipDeviceAttributeCooperativeMultiDeviceLaunch);
  EXPECT_VALUE(hipDeviceAttributeDeviceOverlap);
  EXPECT_VALUE(hipDeviceAttributeDirectManagedMemAccessFromHost);
  EXPECT_VALUE(hipDeviceAttributeGlobalL1CacheSupported);
  EXPECT_VALUE(hipDeviceAttributeHostNativeAtomicSupported);
  EXPECT_VALUE(hipDeviceAttributeIntegrated);
  EXPECT_VALUE(hipDeviceAttributeIsMultiGpuBoard);
  EXPECT_VALUE(hipDeviceAttributeKernelExecTimeout);
  EXPECT_VALUE(hipDeviceAttributeL2CacheSize);
  EXPECT_VALUE(hipDeviceAttributeLocalL1CacheSupported);
  EXPECT_VALUE(hipDeviceAttributeLuid);
  EXPECT_VALUE(hipDeviceAttributeLuidDeviceNodeMask);
  EXPECT_VALUE(hipDeviceAttributeComputeCapabilityMajor);
  EXPECT_VALUE(hipDeviceAttributeManagedMemory);
  EXPECT_VALUE(hipDeviceAttributeMaxBlocksPerMultiProcessor);
  EXPECT_VALUE(hipDeviceAttributeMaxBlockDimX);
  EXPECT_VALUE(hipDeviceAttributeMaxBlockDimY);
  EXPECT_VALUE(hipDeviceAttributeMaxBlockDimZ);
  EXPECT_VALUE(hipDeviceAttributeMaxGridDimX);
  EXPECT_VALUE(hipDeviceAttributeMaxGridDimY);
  EXPECT_VALUE(hipDeviceAttributeMaxGridDimZ);
  EXPECT_VALUE(hipDeviceAttributeMaxSurface1D);
  EXPECT_VALUE(hipDeviceAttributeMaxSurface1DLayered);
  EXPECT_VALUE(hipDeviceAttributeMaxSurface2D);
  EXPECT_VALUE(hipDeviceAttributeMaxSurface2DLayered);
  EXPECT_VALUE(hipDeviceAttributeMaxSurface3D);
  EXPECT_VALUE(hipDeviceAttributeMaxSurfaceCubemap);
  EXPECT_VALUE(hipDeviceAttributeMaxSurfaceCubemapLayered);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture1DWidth);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture1DLayered);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture1DLinear);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture1DMipmap);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture2DWidth);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture2DHeight);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture2DGather);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture2DLayered);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture2DLinear);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture2DMipmap);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture3DWidth);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture3DHeight);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture3DDepth);
  EXPECT_VALUE(hipDeviceAttributeMaxTexture3DAlt);
  EXPECT_VALUE(hipDeviceAttributeMaxTextureCubemap);
  EXPECT_VALUE(hipDeviceAttributeMaxTextureCubemapLayered);
  EXPECT_VALUE(hipDeviceAttributeMaxThreadsDim);
  EXPECT_VALUE(hipDeviceAttributeMaxThreadsPerBlock);
  EXPECT_VALUE(hipDeviceAttributeMaxThreadsPerMultiProcessor);
  EXPECT_VALUE(hipDeviceAttributeMaxPitch);
  EXPECT_VALUE(hipDeviceAttributeMemoryBusWidth);
  EXPECT_VALUE(hipDeviceAttributeMemoryClockRate);
  EXPECT_VALUE(hipDeviceAttributeComputeCapabilityMinor);
  EXPECT_VALUE(hipDeviceAttributeMultiGpuBoardGroupID);
  EXPECT_VALUE(hipDeviceAttributeMultiprocessorCount);
  EXPECT_VALUE(hipDeviceAttributePageableMemoryAccess);
  EXPECT_VALUE(hipDeviceAttributePageableMemoryAccessUsesHostPageTables);
  EXPECT_VALUE(hipDeviceAttributePciBusId);
  EXPECT_VALUE(hipDeviceAttributePciDeviceId);
  EXPECT_VALUE(hipDeviceAttributePciDomainId);
  EXPECT_VALUE(hipDeviceAttributePersistingL2CacheMaxSize);
  EXPECT_VALUE(hipDeviceAttributeMaxRegistersPerBlock);
  EXPECT_VALUE(hipDeviceAttributeMaxRegistersPerMultiprocessor);
  EXPECT_VALUE(hipDeviceAttributeReservedSharedMemPerBlock);
  EXPECT_VALUE(hipDeviceAttributeMaxSharedMemoryPerBlock);
  EXPECT_VALUE(hipDeviceAttributeSharedMemPerBlockOptin);
  EXPECT_VALUE(hipDeviceAttributeSharedMemPerMultiprocessor);
  EXPECT_VALUE(hipDeviceAttributeSingleToDoublePrecisionPerfRatio);
  EXPECT_VALUE(hipDeviceAttributeStreamPrioritiesSupported);
  EXPECT_VALUE(hipDeviceAttributeSurfaceAlignment);
  EXPECT_VALUE(hipDeviceAttributeTccDriver);
  EXPECT_VALUE(hipDeviceAttributeTextureAlignment);
  EXPECT_VALUE(hipDeviceAttributeTexturePitchAlignment);
  EXPECT_VALUE(hipDeviceAttributeTotalConstantMemory);
  EXPECT_VALUE(hipDeviceAttributeTotalGlobalMem);
  EXPECT_VALUE(hipDeviceAttributeUnifiedAddressing);
  EXPECT_VALUE(hipDeviceAttributeWarpSize);
  EXPECT_VALUE(hipDeviceAttributeMemoryPoolsSupported);
  EXPECT_VALUE(hipDeviceAttributeVirtualMemoryManagementSupported);
  EXPECT_VALUE(hipDeviceAttributeHostRegisterSupported);
  EXPECT_VALUE(hipDeviceAttributeMemoryPoolSupportedHandleTypes);
  EXPECT_VALUE(hipDeviceAttributeHostNumaId);
  EXPECT_VALUE(hipDeviceAttributeClockInstructionRate);
  EXPECT_VALUE(hipDeviceAttributeMaxSharedMemoryPerMultiprocessor);
  EXPECT_VALUE(hipDeviceAttributeHdpMemFlushCntl);
  EXPECT_VALUE(hipDeviceAttributeHdpRegFlushCntl);
  EXPECT_VALUE(hipDeviceAttributeCooperativeMultiDeviceUnmatchedFunc);
  EXPECT_VALUE(hipDeviceAttributeCooperativeMultiDeviceUnmatchedGridDim);
  EXPECT_VALUE(hipDeviceAttributeCooperativeMultiDeviceUnmatchedBlockDim);
  EXPECT_VALUE(hipDeviceAttributeCooperativeMultiDeviceUnmatchedSharedMem);
  EXPECT_VALUE(hipDeviceAttributeIsLargeBar);
  EXPECT_VALUE(hipDeviceAttributeAsicRevision);
  EXPECT_VALUE(hipDeviceAttributeCanUseStreamWaitValue);
  EXPECT_VALUE(hipDeviceAttributeImageSupport);
  EXPECT_VALUE(hipDeviceAttributePhysicalMultiProcessorCount);
  EXPECT_VALUE(hipDeviceAttributeFineGrainSupport);
  EXPECT_VALUE(hipDeviceAttributeWallClockRate);
  EXPECT_VALUE(hipDeviceAttributeNumberOfXccs);
  EXPECT_VALUE(hipDeviceAttributeMaxAvailableVgprsPerThread);
  EXPECT_VALUE(hipDeviceAttributePciChipId);
}

TEST(HipLayout, enums) {
  EXPECT_VALUE(hipMemcpyHostToHost);
  EXPECT_VALUE(hipMemcpyHostToDevice);
  EXPECT_VALUE(hipMemcpyDeviceToHost);
  EXPECT_VALUE(hipMemcpyDeviceToDevice);
  EXPECT_VALUE(hipMemcpyDefault);
  EXPECT_VALUE(hipMemcpyDeviceToDeviceNoCU);
  EXPECT_VALUE(hipMemoryTypeUnregistered);
  EXPECT_VALUE(hipMemoryTypeHost);
  EXPECT_VALUE(hipMemoryTypeDevice);
  EXPECT_VALUE(hipMemoryTypeManaged);
  EXPECT_VALUE(hipMemoryTypeArray);
  EXPECT_VALUE(hipMemoryTypeUnified);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_NUM_REGS);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_PTX_VERSION);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_BINARY_VERSION);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_CACHE_MODE_CA);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  EXPECT_VALUE(HIP_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  EXPECT_VALUE(hipFuncAttributeMaxDynamicSharedMemorySize);
  EXPECT_VALUE(hipFuncAttributePreferredSharedMemoryCarveout);
  EXPECT_VALUE(hipFuncCachePreferNone);
  EXPECT_VALUE(hipFuncCachePreferShared);
  EXPECT_VALUE(hipFuncCachePreferL1);
  EXPECT_VALUE(hipFuncCachePreferEqual);
  EXPECT_VALUE(hipSharedMemBankSizeDefault);
  EXPECT_VALUE(hipSharedMemBankSizeFourByte);
  EXPECT_VALUE(hipSharedMemBankSizeEightByte);
  EXPECT_VALUE(hipLimitStackSize);
  EXPECT_VALUE(hipLimitPrintfFifoSize);
  EXPECT_VALUE(hipLimitMallocHeapSize);
  EXPECT_VALUE(hipExtLimitScratchMin);
  EXPECT_VALUE(hipExtLimitScratchMax);
  EXPECT_VALUE(hipExtLimitScratchCurrent);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_CONTEXT);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_MEMORY_TYPE);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_DEVICE_POINTER);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_HOST_POINTER);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_BUFFER_ID);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_IS_MANAGED);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_RANGE_SIZE);
  EXPECT_VALUE(HIP_POINTER_ATTRIBUTE_MAPPED);
  EXPECT_VALUE(hipMemAdviseSetReadMostly);
  EXPECT_VALUE(hipMemAdviseUnsetReadMostly);
  EXPECT_VALUE(hipMemAdviseSetPreferredLocation);
  EXPECT_VALUE(hipMemAdviseUnsetPreferredLocation);
  EXPECT_VALUE(hipMemAdviseSetAccessedBy);
  EXPECT_VALUE(hipMemAdviseUnsetAccessedBy);
  EXPECT_VALUE(hipMemAdviseSetCoarseGrain);
  EXPECT_VALUE(hipMemAdviseUnsetCoarseGrain);
  EXPECT_VALUE(hipStreamCaptureStatusNone);
  EXPECT_VALUE(hipStreamCaptureStatusActive);
  EXPECT_VALUE(hipStreamCaptureStatusInvalidated);
  EXPECT_VALUE(hipStreamCaptureModeGlobal);
  EXPECT_VALUE(hipStreamCaptureModeThreadLocal);
  EXPECT_VALUE(hipStreamCaptureModeRelaxed);
  EXPECT_VALUE(HIP_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_VALUE(HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  EXPECT_VALUE(HIP_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_VALUE(hipJitOptionMaxRegisters);
  EXPECT_VALUE(hipJitOptionThreadsPerBlock);
  EXPECT_VALUE(hipJitOptionWallTime);
  EXPECT_VALUE(hipJitOptionInfoLogBuffer);
  EXPECT_VALUE(hipJitOptionInfoLogBufferSizeBytes);
  EXPECT_VALUE(hipJitOptionErrorLogBuffer);
  EXPECT_VALUE(hipJitOptionErrorLogBufferSizeBytes);
  EXPECT_VALUE(hipJitOptionOptimizationLevel);
  EXPECT_VALUE(hipJitOptionTargetFromContext);
  EXPECT_VALUE(hipJitOptionTarget);
  EXPECT_VALUE(hipJitOptionFallbackStrategy);
  EXPECT_VALUE(hipJitOptionGenerateDebugInfo);
  EXPECT_VALUE(hipJitOptionLogVerbose);
  EXPECT_VALUE(hipJitOptionGenerateLineInfo);
  EXPECT_VALUE(hipJitOptionCacheMode);
}

TEST(HipLayout, flags) {
  constexpr unsigned hip_flags[] = {
      hipStreamDefault,
      hipStreamNonBlocking,
      hipEventDefault,
      hipEventBlockingSync,
      hipEventDisableTiming,
      hipEventInterprocess,
      hipEventDisableSystemFence,
      hipEventReleaseToDevice,
      hipEventReleaseToSystem,
      hipEventRecordDefault,
      hipEventRecordExternal,
      hipEventWaitDefault,
      hipEventWaitExternal,
      hipHostMallocDefault,
      hipHostMallocPortable,
      hipHostMallocMapped,
      hipHostMallocWriteCombined,
      hipHostMallocUncached,
      hipHostMallocNumaUser,
      hipHostMallocCoherent,
      hipHostMallocNonCoherent,
      hipHostRegisterDefault,
      hipHostRegisterPortable,
      hipHostRegisterMapped,
      hipHostRegisterIoMemory,
      hipHostRegisterReadOnly,
      hipExtHostRegisterUncached,
      hipMemAttachGlobal,
      hipMemAttachHost,
      hipMemAttachSingle,
      hipDeviceMallocDefault,
      hipDeviceMallocFinegrained,
      hipMallocSignalMemory,
      hipDeviceMallocUncached,
      hipDeviceMallocContiguous,
      hipDeviceScheduleAuto,
      hipDeviceScheduleSpin,
      hipDeviceScheduleYield,
      hipDeviceScheduleBlockingSync,
      hipDeviceScheduleMask,
      hipDeviceMapHost,
      hipDeviceLmemResizeToMax,
      hipOccupancyDefault,
      hipOccupancyDisableCachingOverride,
      hipExtAnyOrderLaunch,
  };
  ASSERT_EQ(std::size(our_flags), std::size(hip_flags));
  for (size_t i = 0; i < std::size(hip_flags); ++i) EXPECT_EQ(our_flags[i], hip_flags[i]) << "flag " << i;
}

TEST(HipLayout, launch_parameters) {
  EXPECT_EQ(ours::launch_param_buffer_pointer(), HIP_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(ours::launch_param_buffer_size(), HIP_LAUNCH_PARAM_BUFFER_SIZE);
  EXPECT_EQ(ours::launch_param_end(), HIP_LAUNCH_PARAM_END);
  EXPECT_EQ(ours::stream_per_thread(), hipStreamPerThread);
  EXPECT_EQ(ours::stream_legacy(), hipStreamLegacy);
}

}  // namespace
