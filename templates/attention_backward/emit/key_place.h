// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The keys that a workgroup of the dK/dV kernel owns, and the rows that see them.
#pragma once

#include <span>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention_backward/kernel/spec.h"

namespace wavejit::attention_backward {

struct KeyPlace {
  language::Value* batch;
  language::Value* kv_head;
  language::Value* group;       // query heads of it
  language::Value* first_head;  // the first of them
  attention::Sequence sequence;
  language::Value* keys_of_tensor;  // of the sequence, also those that key_lengths cuts
  language::Value* first_key;       // of the wave's first block
  language::Value* scale_log2e;     // c ≥ 2⁻¹²⁶
  language::Value* sign;            // xor onto a dword of K where the scale is negative
  language::Value* diagonal;        // of row 0; null where nothing asks
  // Key k is seen by the rows from k − to_limit to k − to_begin; null: no limit.
  language::Value* to_limit;
  language::Value* to_begin;
  // Row tiles, at least one.
  language::Value* first_tile;
  language::Value* tiles;
};

// Workgroups beyond the keys of their sequence end in here.
KeyPlace find_key_place(language::Kernel& kernel, const KeyKernel& spec);
// The same of another block of the wave.
KeyPlace place_of_block(language::Kernel& kernel, const KeyPlace& first, int block);

// Which key and half of the wave a lane owns, made anew from the lane's number: nothing of it lives through the
// products.
struct LaneKey {
  language::Value* key;
  language::Value* lane_group;
};
LaneKey lane_key(language::Kernel& kernel, const KeyPlace& place);

// Scores of rows from `first_row` on that do not see the lane's key become −∞.
void hide_rows(language::Kernel& kernel, const KeyPlace& place, language::Value* first_row,
               language::Accumulator& scores);

}  // namespace wavejit::attention_backward
