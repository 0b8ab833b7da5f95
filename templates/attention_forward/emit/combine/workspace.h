// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a record stands in the workspace: the one place that split kernels and the combine kernel ask.
//
// Records stand [batch][query head][row][slot], so that the slots of a row are neighbours. Slot i is that of chunk i of
// the row's sequence. A packed tensor has no batches: batch is 0 and rows count through all sequences.
#pragma once

#include "codegen/language/kernel.h"

namespace wavejit::attention_combine {

// All uniform. The address is i64, all others i32.
struct WorkspacePlace {
  language::Value* workspace;
  language::Value* slots;  // of a row
  language::Value* query_heads;
  language::Value* batch;
  language::Value* query_head;
  language::Value* rows_of_head;  // of one head of one batch
  language::Value* first_row;     // of the rows that a workgroup works on
};

// Slots of a row in a call whose longest sequence has so many keys.
language::Value* slots_of(language::Kernel& kernel, language::Value* key_length);

// Bytes from a record to that of the next row and the same slot.
language::Value* row_bytes(language::Kernel& kernel, const WorkspacePlace& place, int head_dim);

// Of the first row's record of one slot, i64.
language::Value* record_address(language::Kernel& kernel, const WorkspacePlace& place, int head_dim,
                                language::Value* slot);

}  // namespace wavejit::attention_combine
