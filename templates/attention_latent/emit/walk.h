// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The walk over keys: scores, softmax, O, tile by tile, in the canonical arithmetic of any attention
// (docs/canonical-arithmetic.md).
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent {

void emit_walk(language::Kernel& kernel, const WalkKernel& spec);

}  // namespace wavejit::attention_latent
