// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels of the long ones among packed queries (rows=many): which query tile of which sequence a workgroup has. The
// grid has as many as there may be, not the longest sequence's for every sequence: short ones have none.
#pragma once

#include "codegen/language/kernel.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// Uniform.
struct TilePlace {
  language::Value* sequence;
  language::Value* tile;
};

// Tiles are counted through the sequences with more than RowLimits::few_rows rows, in their order. Workgroups beyond
// the last one end in here. 64 sequences at a time: a lane counts the tiles of one.
TilePlace find_tile(language::Kernel& kernel, const ForwardKernel& spec);

}  // namespace wavejit::attention_forward
