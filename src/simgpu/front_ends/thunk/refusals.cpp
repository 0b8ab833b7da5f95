// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names that ROCr asks for and that a simulated GPU has nothing behind: debuggers, profilers, graphics. A missing one
// fails the load, which ends in a call of nothing; each answers that it is not supported.
#include <cerrno>

#include "simgpu/front_ends/thunk/abi.h"

namespace wavejit::simgpu::thunk {

#pragma GCC visibility push(default)
extern "C" {

int amdgpu_bo_cpu_map() { return -ENOSYS; }
int amdgpu_bo_query_info() { return -ENOSYS; }
int amdgpu_bo_set_metadata() { return -ENOSYS; }
int amdgpu_device_deinitialize() { return -ENOSYS; }
int amdgpu_device_initialize() { return -ENOSYS; }
KmtStatus hsaKmtAisReadWriteFile() { return KmtStatus::not_supported; }
KmtStatus hsaKmtCheckRuntimeDebugSupport() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgAddressWatch() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgDisable() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgEnable() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgGetDeviceData() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgGetQueueData() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgRegister() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgUnregister() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDbgWavefrontControl() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDebugTrapIoctl() { return KmtStatus::not_supported; }
KmtStatus hsaKmtGetQueueInfo() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMapGraphicHandle() { return KmtStatus::not_supported; }
KmtStatus hsaKmtOpenSMI() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPcSamplingCreate() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPcSamplingDestroy() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPcSamplingQueryCapabilities() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPcSamplingStart() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPcSamplingStop() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPcSamplingSupport() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcAcquireTraceAccess() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcGetCounterProperties() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcQueryTrace() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcRegisterTrace() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcReleaseTraceAccess() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcStartTrace() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcStopTrace() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcUnregisterTrace() { return KmtStatus::not_supported; }
KmtStatus hsaKmtProcessVMRead() { return KmtStatus::not_supported; }
KmtStatus hsaKmtProcessVMWrite() { return KmtStatus::not_supported; }
KmtStatus hsaKmtQueryEventState() { return KmtStatus::not_supported; }
KmtStatus hsaKmtReplaceAsanHeaderPage() { return KmtStatus::not_supported; }
KmtStatus hsaKmtReturnAsanHeaderPage() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSPMAcquire() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSPMRelease() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSPMSetDestBuffer() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSVMGetAttr() { return KmtStatus::not_supported; }
KmtStatus hsaKmtUnmapGraphicHandle() { return KmtStatus::not_supported; }

// What ROCr asks for since ROCm 7.14 (ROCr 1.21). Their structures are not known here (runtime_version.h says so when
// they are asked for); without the names its load would fail before anybody could say anything.
int amdgpu_get_marketing_name() { return 0; }
KmtStatus hsaKmtAllocMemoryAlignCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtAvailableMemoryCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtCreateQueueV2() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDeregisterMemoryCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtDestroyExternalSemaphore() { return KmtStatus::not_supported; }
KmtStatus hsaKmtExportDMABufHandleCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtFreeMemoryCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtGetAmdGPUDeviceFd() { return KmtStatus::not_supported; }
KmtStatus hsaKmtGetNodeWallclockFrequency() { return KmtStatus::not_supported; }
KmtStatus hsaKmtGetTileConfigCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtHandleExport() { return KmtStatus::not_supported; }
KmtStatus hsaKmtHandleImport() { return KmtStatus::not_supported; }
KmtStatus hsaKmtImportExternalSemaphore() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMapMemoryToGPUCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMapMemoryToGPUNodesCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMemHandleFree() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMemHandleFreePreserveMetadata() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMemoryCpuMap() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMemoryGetCpuAddr() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMemoryVaMap() { return KmtStatus::not_supported; }
KmtStatus hsaKmtMemoryVaUnmap() { return KmtStatus::not_supported; }
KmtStatus hsaKmtOpenSMICtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcAcquireTraceAccessCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcRegisterTraceCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtPmcUnregisterTraceCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtQueryPointerInfoCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtRegisterGraphicsHandleToNodesExtCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtRegisterMemoryCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtRegisterMemoryToNodesCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtRegisterMemoryWithFlagsCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtRegisterSharedHandleCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtRegisterSharedHandleToNodesCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSVMGetAttrCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSVMSetAttrCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSetMemoryPolicyCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSetMemoryUserDataCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtSetSigbusDelay() { return KmtStatus::not_supported; }
KmtStatus hsaKmtShareMemoryCtx() { return KmtStatus::not_supported; }
KmtStatus hsaKmtUnmapMemoryToGPUCtx() { return KmtStatus::not_supported; }
int drmIoctl() { return -ENOSYS; }
int drmSyncobjCreate() { return -ENOSYS; }
int drmSyncobjDestroy() { return -ENOSYS; }

}  // extern "C"
#pragma GCC visibility pop

}  // namespace wavejit::simgpu::thunk
