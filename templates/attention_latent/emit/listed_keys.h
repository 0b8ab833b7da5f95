// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that a query's list names (kernel/arguments.h, ListArguments): whose list it is, and what it hides.
#pragma once

#include <span>

#include "codegen/language/fragment.h"
#include "codegen/language/kernel.h"

namespace wavejit::attention_latent {

// The list of query `row` of all sequences. Uniform.
struct KeyList {
  language::Value* entries;  // address, i64
  language::Value* count;    // 0 … length
};
KeyList list_of(language::Kernel& kernel, language::Value* row);

// Query `query` of sequence `batch` among those of all sequences. Packed ones follow each other as in q, whose first
// row of the sequence is query_start.
language::Value* query_of_all(language::Kernel& kernel, language::Value* batch, language::Value* query_start,
                              language::Value* query);

// Scores of a tile whose bit in `named` is not set become −inf, whatever they were.
void hide_unnamed(language::Kernel& kernel, language::Value* named, language::Value* lane_group,
                  std::span<language::Accumulator> scores);

}  // namespace wavejit::attention_latent
