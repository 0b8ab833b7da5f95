// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The two kernels of sparse_indexer → IR. scores.cpp and select.cpp say how each works.
#pragma once

#include "families/emit/emit.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::sparse_indexer {

families::EmittedModule emit(const ScoresKernel& spec, const targets::Target& target, llvm::LLVMContext& context);
families::EmittedModule emit(const SelectKernel& spec, const targets::Target& target, llvm::LLVMContext& context);

}  // namespace wavejit::sparse_indexer
