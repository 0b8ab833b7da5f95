// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// ForwardKernel → LLVM IR of one attention_forward kernel, ready for the AMDGPU backend without any middle-end.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <expected>
#include <memory>
#include <string>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// Refuses what parameters.h refuses, in the same words, before any IR exists. The same spec gives the same module.
std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const ForwardKernel& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context);
// Asks no rule, and gives the kernel the registers that `resources` say: for measuring what fits (kernel/room.h).
std::expected<std::unique_ptr<llvm::Module>, std::string> emit_unasked(const ForwardKernel& spec,
                                                                       const Resources& resources,
                                                                       const targets::Target& target,
                                                                       llvm::LLVMContext& context);

}  // namespace wavejit::attention_forward
