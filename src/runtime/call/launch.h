// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a checked call and its kernels to HIP launches, one a kernel.
#pragma once

#include "families/call/family.h"
#include "runtime/kernels/resolver.h"
#include "runtime/libraries/hip_library.h"

namespace wavejit::runtime {

// `memory` has the call's workspace_bytes bytes.
Result<void> launch(const HipDevice& device, Resolver& resolver, const LoadedKernels& kernels, families::Call& call,
                    const void* memory, hip_abi::hipStream_t stream);

}  // namespace wavejit::runtime
