// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dBias kernel: a workgroup owns a tile of the bias and walks the batches and heads that share it, in order. The
// sum stays in registers, and each element is written once. It runs behind the dQ kernel, which leaves delta.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

void emit_bias_gradient(language::Kernel& kernel, const BiasKernel& spec);

}  // namespace wavejit::attention_backward
