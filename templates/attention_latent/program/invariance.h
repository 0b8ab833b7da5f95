// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of attention_latent: what may change about a call without showing in a bit of O or LSE.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::attention_latent::program {

const tools::Invariance& latent_invariance();

}  // namespace wavejit::attention_latent::program
