// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a spec to a kernel.
#pragma once

#include "families/emit/emit.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

families::EmittedModule emit(const QueryKernel& spec, const targets::Target& target, llvm::LLVMContext& context);
families::EmittedModule emit(const KeyKernel& spec, const targets::Target& target, llvm::LLVMContext& context);
families::EmittedModule emit(const BiasKernel& spec, const targets::Target& target, llvm::LLVMContext& context);
families::EmittedModule emit(const SinkKernel& spec, const targets::Target& target, llvm::LLVMContext& context);

}  // namespace wavejit::attention_backward
