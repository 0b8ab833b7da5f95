// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of `wavejit invariance` changes about a batch.
#pragma once

#include <functional>
#include <vector>

#include "templates/attention_forward/program/invariance_call.h"
#include "tools/invariance/invariance.h"

namespace wavejit::attention_forward::program {

using Change = attention::program::ChangeOfRows<Way>;
// None: the batch has nothing to change.
using Changes = std::function<std::vector<Change>(const Batch& batch, Draws& draws)>;

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
  Changes changes;
  Base base = Base::plain;
};
const std::vector<Dimension>& all_dimensions();

// A dimension as data, and what a group of them has in common: what stands in front of names and of what is said, what
// runs are held against, and how many pairs are run, one of which takes a while.
enum class DimensionKind : std::uint8_t { usual, of_some_targets, control };
struct DimensionRow {
  const char* name;
  const char* says;
  Changes changes;
  DimensionKind kind = DimensionKind::usual;
};
struct DimensionGroup {
  const char* names = "";
  const char* says = "";
  Base base = Base::plain;
  std::uint64_t one_in = 1;
};
Dimension dimension_of(const DimensionRow& row, const DimensionGroup& group);

// The whole batch on one of these pipelines, by turns: each is a kernel.
Changes on_pipelines(std::vector<const char*> names);
// Each hint of a call without lists of key blocks, or of one with them.
Changes hinted(bool beside_lists);

// Over caches and queries of 8 bits: what plain calls are asked for, and of keys that lie in rows
// (invariance_byte_changes.cpp); and as a batch of theirs is asked for it.
std::vector<Dimension> byte_dimensions(const std::vector<Dimension>& plain);
void over_bytes(Base base, const Batch& batch, std::vector<Change>& changes);
// With lists of key blocks (invariance_list_changes.cpp).
std::vector<Dimension> list_dimensions();

}  // namespace wavejit::attention_forward::program
