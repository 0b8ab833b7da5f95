// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Lists of key blocks of a drawn batch, in every form that a call may give them. All forms name the same blocks.
#pragma once

#include <span>

#include "templates/attention_forward/program/invariance_keys.h"
#include "tools/call_memory.h"

namespace wavejit::attention_forward::program {

struct ListForm {
  bool ragged = false;     // starts in place of counts
  bool counted = true;     // else −1 stands behind the last
  bool whole = false;      // blocks that the mask shows whole: every second one in lists of whole blocks, some in both
  bool noise = false;      // entries out of order, twice, outside the keys, and in the room that no count reaches
  bool finer = false;      // blocks of 64 by 64
  bool each_head = false;  // a list for each query head
  bool all = false;        // every block, which is as if there were no list
  bool other = false;      // another block: no form of the same lists
};

// Pieces are whole sequences.
void give_blocks(wavejit_attention_forward_arguments& call, CallMemory& memory, const Batch& batch,
                 std::span<const RowsOf> pieces, const ListForm& form);

}  // namespace wavejit::attention_forward::program
