// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cooperative launches at the interface for models: HIP refuses them by a number that says nothing, since ROCr's library
// wants a call of the kernel driver for their queue, and ends the program where a model has none. In
// libwavejit_model_start.so, which stands before HIP: it says what would do, and lets HIP answer.
#include <dlfcn.h>

#include <atomic>
#include <cstdio>

#include "hip_abi/hip_functions.h"

namespace wavejit::hip_abi {
namespace {

void say_which_door() {
  static std::atomic<bool> said = false;
  if (said.exchange(true)) return;
  static_cast<void>(std::fputs(
      "wavejit simulated GPU: a cooperative launch at ROCr's interface for models, whose queues cannot be cooperative: HIP "
      "refuses it. `wavejit sim --front rocr` (the default) runs it; so does `--front hip`\n",
      stderr));
}

template <typename Function, typename... Arguments>
hipError_t answer_of_hip(const char* name, Arguments... arguments) {
  say_which_door();
  const auto next = reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
  return next == nullptr ? hipErrorNotSupported : next(arguments...);
}

}  // namespace

extern "C" {

hipError_t hipLaunchCooperativeKernel(const void* host_function, dim3 grid, dim3 block, void** arguments,
                                      unsigned dynamic_lds_bytes, hipStream_t stream) {
  return answer_of_hip<decltype(hipLaunchCooperativeKernel)>("hipLaunchCooperativeKernel", host_function, grid, block,
                                                             arguments, dynamic_lds_bytes, stream);
}

hipError_t hipModuleLaunchCooperativeKernel(hipFunction_t function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                            unsigned block_x, unsigned block_y, unsigned block_z,
                                            unsigned dynamic_lds_bytes, hipStream_t stream, void** kernel_params) {
  return answer_of_hip<decltype(hipModuleLaunchCooperativeKernel)>("hipModuleLaunchCooperativeKernel", function, grid_x,
                                                                   grid_y, grid_z, block_x, block_y, block_z,
                                                                   dynamic_lds_bytes, stream, kernel_params);
}

}  // extern "C"

}  // namespace wavejit::hip_abi
