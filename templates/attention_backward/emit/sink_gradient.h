// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The d_sink kernel: −Σ exp(sink − LSE) · delta over the rows of a head, by 256 chains and their tree
// (docs/canonical-arithmetic.md, "Backward"). It runs behind the dQ kernel, which leaves delta.
#pragma once

#include "codegen/language/kernel.h"

namespace wavejit::attention_backward {

void emit_sink_gradient(language::Kernel& kernel);

}  // namespace wavejit::attention_backward
