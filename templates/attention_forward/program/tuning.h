// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit tune` may choose from: parameters of these templates, the values that each target and pipeline has, and
// the combinations that make sense, all from call/. And the rows of call/tuned_defaults.inc.
#pragma once

#include "tools/tuning.h"

namespace wavejit::attention_forward::program {

const tools::Tuning& attention_tuning();

}  // namespace wavejit::attention_forward::program
