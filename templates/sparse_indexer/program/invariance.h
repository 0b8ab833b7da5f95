// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of sparse_indexer: what may change about a call without showing in a score or a list.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::sparse_indexer::program {

const tools::Invariance& indexer_invariance();

}  // namespace wavejit::sparse_indexer::program
