// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of descriptors that say modifiers: "alibi=h", "softcap=30", "sink".
#pragma once

#include <string>

#include "families/call/descriptor_words.h"
#include "templates/attention/kernel/modifiers.h"

namespace wavejit::attention {

// What the words said of one modifier (modifiers.h).
struct DescribedModifier {
  bool there = false;
  Extent extent = Extent::none;
  std::string number;  // as written
  bool operator==(const DescribedModifier&) const = default;
};

families::TakenWord take_modifier(const families::Word& word, const ModifierRow& row, DescribedModifier& modifier);
std::string text_of(const DescribedModifier& modifier, const ModifierRow& row);

// The modifiers' words of a described problem with of(Modifier), which finds it, and add(Modifier, Extent, number).
template <typename Described>
families::DescriptorWord<Described> modifier_word(Modifier modifier) {
  const ModifierRow& row = row_of(modifier);
  return {.accepted = std::string(row.accepted),
          .take = [&row](Described& described, const families::Word& word) -> families::TakenWord {
            DescribedModifier said;
            families::TakenWord taken = take_modifier(word, row, said);
            if (said.there) described.add(row.modifier, said.extent, said.number);
            return taken;
          },
          .text = [&row](const Described& described) { return text_of(described.of(row.modifier), row); }};
}

}  // namespace wavejit::attention
