// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A step with little to do: one sequence, one new token, many keys. What wavejit does about it, in cycles.
#pragma once

#include "model.h"
#include "options.h"

namespace serving {

// One layer's attention of a step, twice: by one wave a chunk of keys and a second launch that merges, then as wavejit
// plans it. Prints what the simulated GPU's clock predicts for both. 0: both are right and have the same bits.
int report_decode_step(const Options& options, const ModelShape& shape);

}  // namespace serving
