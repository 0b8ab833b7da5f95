// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a record stands in the workspace: the one place that split kernels and the combine kernel ask.
//
// Rows stand [batch][query head][row]. Slot i of a row is that of chunk i of its sequence. A row has O of all slots,
// then m and l of all slots: O begins and ends with lines of memory, and m and l of eight slots are one line. A packed
// tensor has no batches: batch is 0 and rows count through all sequences.
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

// Slots of a row in a call whose longest sequence has `key_length` keys.
language::Value* slots_of(language::Kernel& kernel, language::Value* key_length);

// Bytes from a row to the next.
language::Value* row_bytes(language::Kernel& kernel, const WorkspacePlace& place, int head_dim);

// The address of the first row, i64.
language::Value* row_address(language::Kernel& kernel, const WorkspacePlace& place, int head_dim);

// Where a slot's O stands in its row, and its m, with l behind it. Uniform, or of a lane, as `slot` is.
language::Value* output_offset(language::Kernel& kernel, language::Value* slot, int head_dim);
language::Value* statistics_offset(language::Kernel& kernel, language::Value* slots, language::Value* slot,
                                   int head_dim);

}  // namespace wavejit::attention_combine
