// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What tiles that waves have side by side do to m, one after the other (codegen/language/softmax.h).
#pragma once

#include <vector>

#include "codegen/language/softmax.h"

namespace wavejit::attention_forward {

// Per lane.
struct TileGrowth {
  language::Value* before;
  language::Value* raised;
  language::Value* grows;
  language::Value* maximum;  // behind it
};
using TileGrowths = std::vector<TileGrowth>;

// `maximum`: the maximum before the first tile. `maxima`: the maxima of each tile's scores.
TileGrowths growths_of(language::Kernel& kernel, const language::Softmax& softmax, language::Value* maximum,
                       const language::Values& maxima);

// The maximum after the tile that has the wave's number.
language::Value* maximum_behind_own(language::Kernel& kernel, const TileGrowths& growths);

// Whether any row's m grows with any of them; uniform.
language::Value* any_grows(language::Kernel& kernel, const TileGrowths& growths);

}  // namespace wavejit::attention_forward
