// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What `wavejit tune` may choose from: rows of a workgroup, by the rows of a sequence. And the rows of
// kernel/tuned_defaults.inc.
#pragma once

#include "tools/tuning.h"

namespace wavejit::attention_latent::program {

const tools::Tuning& latent_tuning();

}  // namespace wavejit::attention_latent::program
