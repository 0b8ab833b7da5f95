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

}  // namespace wavejit::attention_forward
