// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of latent attention changes about a batch.
#pragma once

#include <vector>

#include "templates/attention_latent/program/invariance_call.h"
#include "tools/invariance/invariance.h"

namespace wavejit::attention_latent::program {

using Change = attention::program::ChangeOfRows<Way>;

struct Dimension {
  tools::InvarianceDimension told;
  // Over 8 bits, held against one packed call over 16 bits.
  bool cached = false;
  // None: the batch has nothing to change.
  std::vector<Change> (*changes)(const Batch& batch, Draws& draws) = nullptr;
};
const std::vector<Dimension>& all_dimensions();

// The changes as calls over the batch's bytes; without those that its format refuses.
void over_8_bits(const Batch& batch, std::vector<Change>& changes);

}  // namespace wavejit::attention_latent::program
