// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/call/launch.h"

#include <array>
#include <cstdint>
#include <string>

namespace wavejit::runtime {
namespace {

using hip_abi::hipError_t;
using hip_abi::hipStream_t;
using hip_abi::hipSuccess;

std::uint64_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

hipError_t launch_here(const HipDevice& device, const LoadedKernel& kernel, const families::Launch& launch,
                       hipStream_t stream) {
  std::size_t bytes = launch.argument_bytes;
  std::array<void*, 5> extra = {hip_abi::launch_param_buffer_pointer(), launch.arguments,
                                hip_abi::launch_param_buffer_size(), &bytes, hip_abi::launch_param_end()};
  return device.hip.hipModuleLaunchKernel(kernel.function, launch.grid_x, launch.grid_y, launch.grid_z, launch.threads,
                                          1, 1, launch.dynamic_lds_bytes, stream, nullptr, extra.data());
}

[[gnu::cold, gnu::noinline]] std::unexpected<Failure> launch_failure(const HipDevice& device, Resolver& resolver,
                                                                     const LoadedKernel& kernel, hipError_t error) {
  if (is_of_earlier_work(error)) return std::unexpected(resolver.earlier_kernel_failed(error, &kernel));
  return fail(WAVEJIT_LAUNCH_FAILED,
              "HIP does not launch " + kernel.spec_text + " on " + device.name + ": " + error_text(device.hip, error));
}

Result<void> launch_round(const HipDevice& device, Resolver& resolver, const LoadedKernels& kernels,
                          families::Call& call, const void* memory, hipStream_t stream) {
  families::LaunchPlan plan;
  if (auto planned = call.plan(kernels.specs, memory, plan); !planned) [[unlikely]]
    return planned;
  const LoadedKernel* failed = nullptr;
  const auto launch_all = [&] {
    for (std::size_t i = 0; i < plan.count; ++i) {
      failed = kernels.kernels[plan.launches[i].kernel];
      const hipError_t error = launch_here(device, *failed, plan.launches[i], stream);
      if (error != hipSuccess) [[unlikely]]
        return error;
      resolver.trail().launched(failed->mark);
    }
    return hipSuccess;
  };
  hipError_t error = hipSuccess;
  // A stream that was created carries its device. The default streams (null, legacy, per thread) are those of whatever
  // device is current, so that only they need a look at it.
  if (address(stream) > address(hip_abi::stream_per_thread())) {
    error = launch_all();
    // HIP takes launches into a stream only while its device is current. Found out by the refusal, not by asking every
    // time.
    if (error == hip_abi::hipErrorInvalidHandle) [[unlikely]] {
      const CurrentDevice current(device.hip, device.ordinal);
      if (current.changed()) {
        (void)device.hip.hipGetLastError();
        error = launch_all();
      }
    }
  } else {
    failed = kernels.kernels.front();
    const CurrentDevice current(device.hip, device.ordinal);
    error = current.error();
    if (error == hipSuccess) error = launch_all();
  }
  if (error != hipSuccess) [[unlikely]]
    return launch_failure(device, resolver, *failed, error);
  return {};
}

}  // namespace

Result<void> launch(const HipDevice& device, Resolver& resolver, const LoadedKernels& kernels, families::Call& call,
                    const void* memory, hipStream_t stream) {
  for (call.round = 0; call.round + 1 < call.rounds; ++call.round) {
    if (auto launched = launch_round(device, resolver, kernels, call, memory, stream); !launched) return launched;
  }
  return launch_round(device, resolver, kernels, call, memory, stream);
}

}  // namespace wavejit::runtime
