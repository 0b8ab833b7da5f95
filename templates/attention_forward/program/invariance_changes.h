// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each dimension of `wavejit invariance` changes about a batch.
#pragma once

#include <vector>

#include "templates/attention/program/row_changes.h"
#include "templates/attention_forward/program/invariance_call.h"

namespace wavejit::attention_forward::program {

// What the changed run is held against: a packed call of the batch.
enum class Base : std::uint8_t {
  plain,
  listed,    // of a batch with lists of key blocks
  unlisted,  // of the same batch, without them
  cached,    // of a batch whose keys and values 8 bits hold, in 16 bits
  bytes,     // of a batch whose queries 8 bits hold, too, in those
  integers,  // of a plain batch, with Q and K in int8
};

using Asked = RowChanges<Batch, Way, Base>;
using Change = Asked::Change;
using Changes = Asked::Changes;
using Dimension = Asked::Dimension;

const std::vector<Dimension>& all_dimensions();

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
