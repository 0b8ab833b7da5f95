// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which a head's units are walked (kernel/block_lists/walks.h), made beside their walks.
//
// How long a unit is, its lists' counts say: the longest of them. Nobody waits for the walks, so that the order hangs
// on no race. What lists repeat, what stands outside the keys and what a mask hides, they count too: such a unit begins
// earlier than it need.
#pragma once

#include <functional>

#include "codegen/language/kernel.h"
#include "codegen/language/lds.h"

namespace wavejit::attention_block_lists {

// How many workgroups of a head, sequence and launch sort: x = 0 and up.
language::Value* order_workgroups(language::Kernel& kernel);

// What one of them does: a wave, the units of one part.
class UnitOrder {
 public:
  // Classes of the part's units stand in `lds`, a dword each.
  UnitOrder(language::Kernel& kernel, const language::Lds& lds, language::Value* query_length);
  void emit();

 private:
  language::Value* number(std::size_t field);
  language::Value* unit_of(language::Value* place);
  language::Value* length_of(language::Value* unit);
  language::Value* length_of_list(std::size_t fields, language::Value* list);
  language::Value* class_of(language::Value* length);
  // For each class that some of `lanes` have: body(class, its lanes, state).
  using OfClass = std::function<language::Values(language::Value*, language::Value*, const language::Values&)>;
  language::Values by_class(language::Value* classes, language::Value* lanes, const language::Values& state,
                            const OfClass& body);
  language::Value* places_of_classes(language::Value* counts);

  language::Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const language::Lds& lds_;
  language::Value* query_length_;
  language::Value* of_head_;        // sequence and head of the lists, one number
  language::Value* lists_of_head_;  // the head's first list
  language::Value* first_;          // place of the part
  language::Value* count_;          // units of the part
};

}  // namespace wavejit::attention_block_lists
