// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// CombineKernel → LLVM IR of one attention_combine kernel.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <expected>
#include <memory>
#include <string>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/combine/spec.h"

namespace wavejit::attention_combine {

// Refuses what parameters.h refuses, in the same words. The same spec gives the same module.
std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const CombineKernel& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context);

}  // namespace wavejit::attention_combine
