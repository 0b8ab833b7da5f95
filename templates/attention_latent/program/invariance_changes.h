// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of latent attention changes about a batch.
#pragma once

#include <vector>

#include "templates/attention/program/row_changes.h"
#include "templates/attention_latent/program/invariance_call.h"

namespace wavejit::attention_latent::program {

// What the changed run is held against: one packed call over 16 bits, of a batch whose keys 8 bits hold or not.
enum class Base : std::uint8_t { plain, cached };

using Asked = attention::program::RowChanges<Batch, Way, Base>;
using Change = Asked::Change;
using Dimension = Asked::Dimension;
using attention::program::DimensionKind;

const std::vector<Dimension>& all_dimensions();

// The changes as calls over the batch's bytes; without those that its format refuses.
void over_bytes(Base base, const Batch& batch, std::vector<Change>& changes);

}  // namespace wavejit::attention_latent::program
