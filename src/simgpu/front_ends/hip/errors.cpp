// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/hip/errors.h"

#include <cstdio>
#include <format>

#include "hip_abi/hip_functions.h"

namespace wavejit::simgpu::hip_front {
namespace {

struct LastError {
  hip_abi::hipError_t sticky_until_read = hip_abi::hipSuccess;
  hip_abi::hipError_t of_last_call = hip_abi::hipSuccess;
};
thread_local LastError last_error;

}  // namespace

hip_abi::hipError_t finish(hip_abi::hipError_t error) {
  last_error.of_last_call = error;
  if (error != hip_abi::hipSuccess && error != hip_abi::hipErrorNotReady) last_error.sticky_until_read = error;
  return error;
}

hip_abi::hipError_t refuse(hip_abi::hipError_t error, std::string_view why) {
  std::fputs(std::format("wavejit simulated GPU: {}: {}\n", hip_abi::hipGetErrorName(error), why).c_str(), stderr);
  return error;
}

}  // namespace wavejit::simgpu::hip_front

namespace wavejit::hip_abi {

using simgpu::hip_front::last_error;

hipError_t hipGetLastError() {
  const hipError_t error = last_error.sticky_until_read;
  last_error.sticky_until_read = hipSuccess;
  return error;
}

hipError_t hipPeekAtLastError() { return last_error.sticky_until_read; }

hipError_t hipExtGetLastError() {
  const hipError_t error = last_error.of_last_call;
  last_error.of_last_call = hipSuccess;
  return error;
}

const char* hipGetErrorName(hipError_t error) { return describe_error(error).name; }
const char* hipGetErrorString(hipError_t error) { return describe_error(error).text; }

hipError_t hipDrvGetErrorName(hipError_t error, const char** name) {
  if (name == nullptr) return hipErrorInvalidValue;
  *name = describe_error(error).name;
  return describe_error(error).value == error ? hipSuccess : hipErrorInvalidValue;
}

hipError_t hipDrvGetErrorString(hipError_t error, const char** text) {
  if (text == nullptr) return hipErrorInvalidValue;
  *text = describe_error(error).text;
  return describe_error(error).value == error ? hipSuccess : hipErrorInvalidValue;
}

}  // namespace wavejit::hip_abi
