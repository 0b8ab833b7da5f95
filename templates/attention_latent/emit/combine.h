// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts that chunks left of a row, merged from the first upward as a walk over all of them does, and the row's end.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent {

void emit_combine(language::Kernel& kernel, const CombineKernel& spec);

}  // namespace wavejit::attention_latent
