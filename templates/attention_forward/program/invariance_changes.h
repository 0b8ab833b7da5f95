// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of `wavejit invariance` changes about a batch.
#pragma once

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
  std::vector<Change> (*changes)(const Batch& batch, Draws& draws) = nullptr;
  Base base = Base::plain;
};
const std::vector<Dimension>& all_dimensions();
// Those over caches of 8 bits: what plain calls are asked for, and of keys that lie in rows
// (invariance_cache_changes.cpp).
std::vector<Dimension> cache_dimensions(const std::vector<Dimension>& plain);
// Those of queries in 8 bits, likewise.
std::vector<Dimension> byte_query_dimensions(const std::vector<Dimension>& plain);
// Those of Q and K in int8 (invariance_integer_changes.cpp), and as a batch is asked for them.
std::vector<Dimension> integer_dimensions(const std::vector<Dimension>& plain);
void over_integers(const Batch& batch, std::vector<Change>& changes);
// As a cached batch is asked for it.
void over_8_bits(const Batch& batch, std::vector<Change>& changes);
// Those of lists of key blocks (invariance_list_changes.cpp).
std::vector<Dimension> list_dimensions();

}  // namespace wavejit::attention_forward::program
