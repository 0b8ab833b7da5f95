// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "codegen/language/kernel.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::sparse_indexer {

// shared_scores.cpp says how it works. The kernel's wave and lane exist.
void emit_shared_scores(language::Kernel& kernel, const ScoresKernel& spec);

}  // namespace wavejit::sparse_indexer
