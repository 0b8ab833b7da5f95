// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SoftmaxKernel → IR.
//
// Two lanes hold a tile of 64 scores, 32 each, a wave 32 tiles: of one row, or of several. Each tile's maximum goes to
// LDS. Every tile walks the maxima of its chunk up to its own, as one walker of the whole chunk would have met them; so
// it knows the maximum that its weights are relative to. The tiles' sums go to LDS, and are added up in the walker's
// order with the walker's factors. That is docs/canonical-arithmetic.md to the bit, with all tiles of a chunk at once.
//
// A chunk lies in one wave. Parts of chunks go through LDS to all waves; every lane merges those of its row. Then the
// weights: of scores that still stand in registers (rows=resident), or are read again (rows=streamed).
#pragma once

#include "families/emit/emit.h"
#include "templates/softmax_lse/kernel/spec.h"

namespace wavejit::softmax_lse {

families::EmittedModule emit(const SoftmaxKernel& spec, const targets::Target& target, llvm::LLVMContext& context);

}  // namespace wavejit::softmax_lse
