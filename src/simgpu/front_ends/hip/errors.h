// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// HIP's "last error" of each thread, and the way every exported function ends.
#pragma once

#include <string_view>

#include "hip_abi/hip_abi.h"

namespace wavejit::simgpu::hip_front {

// Remembers `error` as HIP does and hands it back: hipErrorNotReady is an answer, not an error to remember.
hip_abi::hipError_t finish(hip_abi::hipError_t error);

// A line on stderr that says why, and `error` back: HIP has numbers for what it refuses, and no words.
hip_abi::hipError_t refuse(hip_abi::hipError_t error, std::string_view why);

// The number of an engine's status as HIP's type.
constexpr hip_abi::hipError_t to_hip(int code) { return static_cast<hip_abi::hipError_t>(code); }

}  // namespace wavejit::simgpu::hip_front
