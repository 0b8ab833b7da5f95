// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A descriptor's words with their places, and how they are refused. What parsers of all families share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "families/call/failure.h"

namespace wavejit::families {

// Guess: no list of lengths that people write by hand is longer; more is a wrong file.
inline constexpr std::size_t max_descriptor_bytes = 4096;

struct Word {
  std::string_view text;
  std::size_t number;  // from 1
  std::size_t column;  // from 1
};

std::vector<Word> words_of(std::string_view text);

// "descriptor: word 3 'q0' (column 21)"
std::string place(const Word& word);
std::unexpected<Failure> wrong(const Word& word, std::string_view why);
// A word that no row takes. `accepted`: all words of the family. A long list would hide the word that was meant, so it
// is told to who asks for it, by the word "help" in the place of any other.
std::unexpected<Failure> unknown_word(const Word& word, std::string_view family, const std::string& accepted);
std::unexpected<Failure> not_yet(const Word& word, std::string_view accepted);

// Decimal without sign or leading zeros.
std::optional<std::int64_t> whole_number(std::string_view text);
std::optional<float> finite_number(std::string_view text);

}  // namespace wavejit::families
