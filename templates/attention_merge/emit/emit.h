// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// MergeKernel → IR.
//
// A wave takes a token and as many of its heads as it has lanes for, eight dims a lane. Parts are merged from the first
// upward, as chunks of keys are (docs/canonical-arithmetic.md, attention_merge). Where a part's row stands is the same
// for all lanes, so it is a buffer of its own: what lies beyond it reads as 0 and is not written.
#pragma once

#include "families/emit/emit.h"
#include "templates/attention_merge/kernel/spec.h"

namespace wavejit::attention_merge {

families::EmittedModule emit(const MergeKernel& spec, const targets::Target& target, llvm::LLVMContext& context);

}  // namespace wavejit::attention_merge
