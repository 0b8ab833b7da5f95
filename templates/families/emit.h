// A spec of whichever family → LLVM IR.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <expected>
#include <memory>
#include <string>

#include "targets/targets.h"
#include "templates/families/spec.h"

namespace wavejit::families {

std::expected<std::unique_ptr<llvm::Module>, std::string> emit(const KernelSpec& spec, const targets::Target& target,
                                                               llvm::LLVMContext& context);

}  // namespace wavejit::families
