// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The dimensions of attention_latent with lists, behind those without: what may change about a call without showing.
#pragma once

#include "tools/invariance/invariance.h"

namespace wavejit::attention_latent::program {

const tools::Invariance& invariance_with_lists();

}  // namespace wavejit::attention_latent::program
