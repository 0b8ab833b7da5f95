// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A HIP library of empty functions, by the name that the runtime opens: what a call costs apart from HIP. Its device is
// a gfx950, or what WAVEJIT_EMPTY_HIP_TARGET says.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "hip_abi/hip_functions.h"

namespace wavejit::hip_abi {

extern "C" {

hipError_t hipGetDeviceCount(int* count) {
  *count = 1;
  return hipSuccess;
}
hipError_t hipGetDevice(int* device) {
  *device = 0;
  return hipSuccess;
}
hipError_t hipSetDevice(int) { return hipSuccess; }
hipError_t hipGetDevicePropertiesR0600(hipDeviceProp_tR0600* properties, int) {
  std::strcpy(properties->name, "empty HIP functions");
  const char* target = std::getenv("WAVEJIT_EMPTY_HIP_TARGET");
  std::snprintf(properties->gcnArchName, sizeof properties->gcnArchName, "%s", target != nullptr ? target : "gfx950");
  return hipSuccess;
}
// XCDs of a gfx950; nothing else is asked for.
hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t, int) {
  *value = 8;
  return hipSuccess;
}
const char* hipGetErrorName(hipError_t) { return "hipSuccess"; }
const char* hipGetErrorString(hipError_t) { return "no error"; }
hipError_t hipGetLastError() { return hipSuccess; }
hipError_t hipMalloc(void** pointer, size_t bytes) {
  *pointer = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
  return *pointer != nullptr ? hipSuccess : hipErrorOutOfMemory;
}
hipError_t hipFree(void* pointer) {
  std::free(pointer);
  return hipSuccess;
}
hipError_t hipMemcpy(void*, const void*, size_t, hipMemcpyKind) { return hipSuccess; }
hipError_t hipMemsetAsync(void*, int, size_t, hipStream_t) { return hipSuccess; }
hipError_t hipDeviceSynchronize() { return hipSuccess; }
hipError_t hipStreamSynchronize(hipStream_t) { return hipSuccess; }
hipError_t hipStreamIsCapturing(hipStream_t, hipStreamCaptureStatus* status) {
  *status = hipStreamCaptureStatusNone;
  return hipSuccess;
}
hipError_t hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode*) { return hipSuccess; }
hipError_t hipModuleLoadData(hipModule_t*, const void*) { return hipSuccess; }
hipError_t hipModuleUnload(hipModule_t) { return hipSuccess; }
hipError_t hipModuleGetFunction(hipFunction_t*, hipModule_t, const char*) { return hipSuccess; }
hipError_t hipModuleLaunchKernel(hipFunction_t, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                 hipStream_t, void**, void**) {
  return hipSuccess;
}

}  // extern "C"

}  // namespace wavejit::hip_abi
