// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_forward on an engine: what its C functions do.
#pragma once

#include <cstddef>

#include "hip_abi/hip_functions.h"
#include "templates/families/call/failure.h"
#include "wavejit/wavejit.h"

namespace wavejit::runtime {
class Engine;
}

namespace wavejit::attention_forward {

families::Result<void> run(runtime::Engine& engine, const wavejit_attention_forward_arguments* arguments,
                           hip_abi::hipStream_t stream);
// Bytes of device memory that the call would use beside its tensors.
families::Result<std::size_t> workspace_of(const runtime::Engine& engine,
                                           const wavejit_attention_forward_arguments* arguments);

}  // namespace wavejit::attention_forward
