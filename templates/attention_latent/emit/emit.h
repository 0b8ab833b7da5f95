// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// WalkKernel, CombineKernel → IR.
#pragma once

#include "families/emit/emit.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent {

families::EmittedModule emit(const WalkKernel& spec, const targets::Target& target, llvm::LLVMContext& context);
families::EmittedModule emit(const CombineKernel& spec, const targets::Target& target, llvm::LLVMContext& context);

}  // namespace wavejit::attention_latent
