// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The hints of wavejit/hints.def, as rows.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "families/call/descriptor_words.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

struct Hint {
  enum class Beside : std::uint8_t { any, lists };
  std::string_view word;
  std::uint32_t bit;
  std::string_view told;
  Beside beside;
};
inline constexpr std::array hints = {
#define WAVEJIT_HINT(word, bit, told, beside) Hint{#word, bit, told, Hint::Beside::beside},
#include "wavejit/hints.def"
#undef WAVEJIT_HINT
};

// The bits of those that a call may have: with and without lists of key blocks.
constexpr std::uint32_t hints_of(bool lists) {
  std::uint32_t bits = 0;
  for (const Hint& hint : hints)
    if (lists || hint.beside == Hint::Beside::any) bits |= hint.bit;
  return bits;
}
inline constexpr std::uint32_t all_hints = hints_of(true);

// "lists_alike", for described problems with a field of this name.
template <typename Described>
families::DescriptorWord<Described> hint_word(const Hint& hint) {
  return {.accepted = std::string(hint.word),
          .take = [&hint](Described& described, const families::Word& word) -> families::TakenWord {
            if (word.text != hint.word) return std::nullopt;
            described.hints |= hint.bit;
            return families::Result<void>();
          },
          .text =
              [&hint](const Described& described) {
                return std::string((described.hints & hint.bit) != 0 ? hint.word : "");
              }};
}

}  // namespace wavejit::attention
