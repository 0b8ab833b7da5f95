// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a HIP program registers about itself: its kernels by the address of their host stubs, its device variables by
// the address of their host shadows. Code objects are loaded when a device first needs them.
#pragma once

#include <cstddef>
#include <expected>
#include <memory>

#include "hip_abi/hip_abi.h"

namespace wavejit::simgpu::hip_front {

struct Function;

// The kernel behind a host stub, on the device with this ordinal. hipErrorInvalidDeviceFunction when nothing was
// registered under that address; what loading failed with otherwise (hipErrorNoBinaryForGpu, hipErrorInvalidImage).
std::expected<std::shared_ptr<Function>, hip_abi::hipError_t> find_registered_function(const void* host_function,
                                                                                       int ordinal);

// Address and size of a registered variable on the calling thread's device; hipErrorInvalidSymbol when there is none.
hip_abi::hipError_t find_variable(const void* host_variable, void** address, std::size_t* bytes);

// Lets go of everything loaded for registered binaries. At the end of the process, before the engine's statics.
void release_registered_modules();

}  // namespace wavejit::simgpu::hip_front
