// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of `wavejit invariance` changes about a batch.
#pragma once

#include <functional>
#include <vector>

#include "templates/attention_forward/program/invariance_call.h"
#include "tools/invariance/invariance.h"

namespace wavejit::attention_forward::program {

using Change = attention::program::ChangeOfRows<Way>;

// What the changed run is held against: a packed call of the batch.
enum class Base : std::uint8_t {
  plain,
  listed,    // of a batch with lists of key blocks
  unlisted,  // of the same batch, without them
  cached,    // of a batch whose keys and values 8 bits hold, in 16 bits
  bytes,     // of a batch whose queries 8 bits hold, too, in those
  integers,  // of a plain batch, with Q and K in int8
  count
};

struct Dimension {
  tools::InvarianceDimension told;
  // None: the batch has nothing to change.
  std::function<std::vector<Change>(const Batch& batch, Draws& draws)> changes;
  Base base = Base::plain;
};
const std::vector<Dimension>& all_dimensions();
// Those over caches and queries of 8 bits: what plain calls are asked for, and of keys that lie in rows
// (invariance_byte_changes.cpp); and as a batch of theirs is asked for it.
std::vector<Dimension> byte_dimensions(const std::vector<Dimension>& plain);
void over_bytes(Base base, const Batch& batch, std::vector<Change>& changes);
// Those of lists of key blocks (invariance_list_changes.cpp).
std::vector<Dimension> list_dimensions();

}  // namespace wavejit::attention_forward::program
