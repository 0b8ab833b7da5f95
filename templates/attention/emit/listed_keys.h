// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that a query's list names (kernel/key_list_arguments.h): whose list it is, and what it hides. Where they stand
// is key_pages.h's.
#pragma once

#include <span>

#include "codegen/language/fragment.h"
#include "codegen/language/kernel.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention/kernel/key_list_arguments.h"

namespace wavejit::attention {

// `lists`: where the kernel's arguments hold a KeyListArguments.
language::Value* list_number(language::Kernel& kernel, std::size_t lists, std::size_t field);

// The list of query `query` of all sequences. Uniform. `head`: a kv head, null where a query has one list.
struct KeyList {
  language::Value* entries;  // address, i64
  language::Value* count;    // 0 … length
};
KeyList list_of(language::Kernel& kernel, std::size_t lists, language::Value* query, language::Value* head = nullptr);

// Query `query` of sequence `batch` among those of all sequences. Packed ones follow each other as in q, whose first
// row of the sequence is query_start.
struct QueryFields {
  std::size_t query_starts, query_length;
};
language::Value* query_of_all(language::Kernel& kernel, const QueryFields& fields, language::Value* batch,
                              language::Value* query_start, language::Value* query);

// How many keys an entry may name: a number, those of the sequence, up to the query's diagonal where that hides; a
// slot, those of the cache.
language::Value* named_keys_of(language::Kernel& kernel, std::size_t lists, const DiagonalFields& diagonal,
                               const Sequence& sequence, language::Value* query);
language::Value* named_slots_of(language::Kernel& kernel, std::size_t lists);

// Which parts of a row there are, where several workgroups leave them: those of its list, then those of its second one.
class ListedParts {
 public:
  // The lists of query `query` among those of all sequences, as list_of.
  ListedParts(language::Kernel& kernel, std::size_t lists, language::Value* query, language::Value* head = nullptr);
  language::Value* last() const { return last_; }  // −1: none
  // Where part `part` stands among those of the row.
  language::Value* place(language::Value* part) const;

 private:
  language::Kernel& kernel_;
  language::Value* first_;   // parts of the first list
  language::Value* behind_;  // places that the second list's stand further
  language::Value* last_;
};

// Scores of a tile whose bit in `named` is not set become −inf, whatever they were.
void hide_unnamed(language::Kernel& kernel, language::Value* named, language::Value* lane_group,
                  std::span<language::Accumulator> scores);

}  // namespace wavejit::attention
