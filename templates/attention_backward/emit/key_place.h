// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The keys that a workgroup of the dK/dV kernel owns, and the rows that see them.
#pragma once

#include <span>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/visible_keys.h"
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
  // Key k is seen by the rows from k − to_limit to k − to_begin.
  attention::KeyLimits limits;
  // Row tiles, at least one.
  language::Value* first_tile;
  language::Value* tiles;
};

// Workgroups beyond the keys of their sequence end in here.
KeyPlace find_key_place(language::Kernel& kernel, const KeyKernel& spec);
// The same of another block of the wave.
KeyPlace place_of_block(language::Kernel& kernel, const KeyPlace& first, int block);

// The lane's key, made anew: nothing of it lives through the products.
using attention::LaneKey;
inline LaneKey lane_key(language::Kernel& kernel, const KeyPlace& place) {
  return attention::lane_key(kernel, place.first_key);
}

}  // namespace wavejit::attention_backward
