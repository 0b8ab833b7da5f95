// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A spec of whichever family → LLVM IR.
#pragma once

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "families/kernel/kernel_spec.h"
#include "targets/targets.h"

namespace wavejit::families {

using EmittedModule = std::expected<std::unique_ptr<llvm::Module>, std::string>;

// How a kernel is emitted: one row of what a family registers.
struct KernelEmitter {
  std::string_view kernel;
  EmittedModule (*emit)(const KernelSpec& spec, const targets::Target& target, llvm::LLVMContext& context);
};
// The emitter of a spec whose namespace has emit(spec, target, context).
template <typename Spec>
inline constexpr KernelEmitter emitter_of = {
    .kernel = Spec::kernel,
    .emit = [](const KernelSpec& spec, const targets::Target& target, llvm::LLVMContext& context) -> EmittedModule {
      return emit(spec.get<Spec>(), target, context);
    },
};

EmittedModule emit(const KernelSpec& spec, const targets::Target& target, llvm::LLVMContext& context);

}  // namespace wavejit::families
