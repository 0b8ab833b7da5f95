// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// HIP as a table of functions found by dlopen: the installed libamdhip64, or the simulated GPU, which speaks the same
// ABI. Tests and benchmarks fill a table of their own.
#pragma once

#include <cstdint>
#include <string>

#include "hip_abi/hip_functions.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

// Every function that this library calls.
#define WAVEJIT_HIP_FUNCTIONS(X)        \
  X(hipGetDeviceCount)                  \
  X(hipGetDevice)                       \
  X(hipSetDevice)                       \
  X(hipGetDevicePropertiesR0600)        \
  X(hipDeviceGetAttribute)              \
  X(hipGetErrorName)                    \
  X(hipGetErrorString)                  \
  X(hipGetLastError)                    \
  X(hipMalloc)                          \
  X(hipFree)                            \
  X(hipMemcpy)                          \
  X(hipMemsetAsync)                     \
  X(hipDeviceSynchronize)               \
  X(hipStreamSynchronize)               \
  X(hipStreamIsCapturing)               \
  X(hipThreadExchangeStreamCaptureMode) \
  X(hipModuleLoadData)                  \
  X(hipModuleUnload)                    \
  X(hipModuleGetFunction)               \
  X(hipModuleLaunchKernel)

struct HipFunctions {
// NOLINTNEXTLINE(bugprone-macro-parentheses): the name of a member cannot stand in parentheses
#define WAVEJIT_HIP_MEMBER(name) decltype(&hip_abi::name) name = nullptr;
  WAVEJIT_HIP_FUNCTIONS(WAVEJIT_HIP_MEMBER)
#undef WAVEJIT_HIP_MEMBER
};

// One device of one HIP library, opened.
struct HipDevice {
  HipFunctions hip;
  int ordinal = 0;
  std::string architecture;  // gcnArchName: "gfx942:sramecc+:xnack-"
  std::string name;
  std::uint64_t memory_bytes = 0;
  int xcds = 0;  // 0: HIP does not say
  int compute_units = 0;
};

// What refusals of a forked child advise.
inline constexpr const char* forks_accepted =
    "engines of a process that was spawned (Python's multiprocessing: the start method \"spawn\"), or forked before "
    "its parent made an engine";

// Never falls back: what was asked for, or WAVEJIT_NO_DEVICE with what would do. So in a child whose parent had opened
// a GPU, or had given a simulated one work.
Result<HipDevice> open_device(const DeviceChoice& choice);
// The same over a table that is already there.
Result<HipDevice> describe_device(const HipFunctions& hip, int ordinal);

// "hipErrorInvalidImage (200): device kernel image is invalid"
std::string error_text(const HipFunctions& hip, hip_abi::hipError_t error);
// Whether an error is that of a kernel which was launched before: HIP answers it to every call from then on.
bool is_of_earlier_work(hip_abi::hipError_t error);

// Makes `ordinal` the calling thread's device for the scope and restores what was current: the caller's frameworks keep
// their own idea of the current device.
class CurrentDevice {
 public:
  CurrentDevice(const HipFunctions& hip, int ordinal) : hip_(hip) {
    error_ = hip_.hipGetDevice(&previous_);
    if (error_ == hip_abi::hipSuccess && previous_ != ordinal) {
      error_ = hip_.hipSetDevice(ordinal);
      changed_ = error_ == hip_abi::hipSuccess;
    }
  }
  ~CurrentDevice() {
    if (changed_) (void)hip_.hipSetDevice(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  hip_abi::hipError_t error() const { return error_; }
  bool changed() const { return changed_; }  // another device was current

 private:
  const HipFunctions& hip_;
  hip_abi::hipError_t error_ = hip_abi::hipSuccess;
  int previous_ = 0;
  bool changed_ = false;
};

// For the scope, calls that allocate or load do not break captures: neither those of other threads, which HIP's global
// mode would reach, nor the caller's own.
class RelaxedCapture {
 public:
  explicit RelaxedCapture(const HipFunctions& hip) : hip_(hip) {
    relaxed_ = hip_.hipThreadExchangeStreamCaptureMode(&mode_) == hip_abi::hipSuccess;
  }
  ~RelaxedCapture() {
    if (relaxed_) (void)hip_.hipThreadExchangeStreamCaptureMode(&mode_);
  }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  const HipFunctions& hip_;
  hip_abi::hipStreamCaptureMode mode_ = hip_abi::hipStreamCaptureModeRelaxed;
  bool relaxed_ = false;
};

// Loads `image` on the device and finds the kernel in it. A failure leaves nothing loaded, and is taken out of HIP's
// own memory of errors: the host's next look there must not find what is handled here.
hip_abi::hipError_t load_module(const HipDevice& device, const void* image, const std::string& kernel_name,
                                hip_abi::hipModule_t* module, hip_abi::hipFunction_t* function);

// Asks without touching the stream. The null stream is never captured.
bool is_capturing(const HipDevice& device, hip_abi::hipStream_t stream);

}  // namespace wavejit::runtime
