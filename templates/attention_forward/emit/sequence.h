// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which rows of the tensors belong to one sequence.
#pragma once

#include "codegen/language/kernel.h"

namespace wavejit::attention_forward {

// All uniform. Starts are 0 unless the tensor is packed.
struct Sequence {
  language::Value* query_start;  // row of q, of o and of lse where the sequence begins
  language::Value* query_length;
  language::Value* key_start;  // row of k and v
  language::Value* key_length;
};

// Sequence `batch` by Arguments::query_starts, key_starts and key_lengths. Whatever these hold, start and start +
// length stay within the rows of the tensor, and no length exceeds the one that the grid was made for.
Sequence sequence_of(language::Kernel& kernel, language::Value* batch);

// The rows of q alone, for a kernel with an argument struct of its own.
struct QuerySpan {
  language::Value* start;
  language::Value* length;
};
struct QueryFields {
  std::size_t starts, rows, longest;  // offsets of what Arguments calls query_starts, query_rows and query_length
};
QuerySpan query_span_of(language::Kernel& kernel, const QueryFields& fields, language::Value* batch);

}  // namespace wavejit::attention_forward
