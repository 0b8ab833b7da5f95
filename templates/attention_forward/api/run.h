// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_forward on an engine: what its C functions do.
#pragma once

#include <cstddef>
#include <string>

#include "families/call/failure.h"
#include "hip_abi/hip_functions.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {
class Engine;
}

namespace wavejit::attention_forward {

families::Result<void> run(runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments,
                           hip_abi::hipStream_t stream);
// What run() would answer, without looking for kernels or launching.
families::Result<void> supports(const runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments);
// The same, and WAVEJIT_NOT_READY when the call's kernels are not loaded.
families::Result<void> is_ready(const runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments);
// The call as a problem descriptor.
families::Result<std::string> description_of(const runtime::Engine& engine,
                                             const wavejit_attention_forward_arguments* arguments);
// Bytes of device memory that the call would use beside its tensors; refused as the call would be.
families::Result<std::size_t> workspace_of(const runtime::Engine& engine,
                                           const wavejit_attention_forward_arguments* arguments);

}  // namespace wavejit::attention_forward
