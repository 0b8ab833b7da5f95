// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// BlockListsKernel → LLVM IR of one attention_block_lists kernel.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <expected>
#include <memory>
#include <string>

#include "targets/targets.h"
#include "templates/attention_forward/kernel/walks/block_lists/spec.h"

namespace wavejit::attention_block_lists {

// Refuses what spec.h refuses, in the same words. The same spec gives the same module.
std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const BlockListsKernel& spec,
                                                               const targets::Target& target,
                                                               llvm::LLVMContext& context);

}  // namespace wavejit::attention_block_lists
