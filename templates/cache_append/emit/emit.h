// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// AppendKernel → IR.
//
// A wave takes a few tokens and, of each, a part of its heads: eight dims a lane, as many lanes a head as a power of
// two holds. Where a token goes is the same for all lanes, so its row is a buffer of its own: a token that goes nowhere
// has a buffer of no bytes, and what is stored there is dropped. All of a wave's tokens are asked for before the first
// is waited for.
#pragma once

#include "families/emit/emit.h"
#include "templates/cache_append/kernel/spec.h"

namespace wavejit::cache_append {

families::EmittedModule emit(const AppendKernel& spec, const targets::Target& target, llvm::LLVMContext& context);

}  // namespace wavejit::cache_append
