// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names that ROCr asks for and that a simulated GPU has nothing behind: debuggers, profilers, graphics. A missing one
// fails the load; each answers that it is not supported.
#include <cerrno>

#include "simgpu/doors/thunk/abi.h"

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

}  // extern "C"
#pragma GCC visibility pop

}  // namespace wavejit::simgpu::thunk
