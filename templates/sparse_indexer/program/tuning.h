// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit tune` may choose from: whether rows share keys, by the rows of a sequence. And the rows of
// kernel/tuned_defaults.inc.
#pragma once

#include "tools/tuning.h"

namespace wavejit::sparse_indexer::program {

const tools::Tuning& indexer_tuning();

}  // namespace wavejit::sparse_indexer::program
