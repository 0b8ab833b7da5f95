// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What somebody meant who misspelt a word.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace wavejit::vocabulary {

// Letters put in, left out, changed, or swapped with their neighbour: the optimal string alignment distance.
[[gnu::cold]] std::size_t mistakes_between(std::string_view given, std::string_view word);

// "causal" for "causl", or nothing where no word is near: a third of its letters may be wrong. A word that `given` begins
// is near, however much is left out: "attention_merge" for "attention".
[[gnu::cold]] std::string_view nearest_word(std::string_view given, std::span<const std::string_view> words);

// " (did you mean 'causal'?)" for "causl", or nothing.
[[gnu::cold]] std::string did_you_mean(std::string_view given, std::span<const std::string_view> words);
[[gnu::cold]] std::string did_you_mean(std::string_view given, std::span<const std::string> words);

// The longest list that a message prints: two lines of a terminal.
inline constexpr std::size_t longest_list = 160;

// The end of a message such as "'causl' is not known": " (did you mean 'causal'?); `wavejit variants` lists all" if a word
// is near or the list would fill more than two lines, else "; all, causal are". `place` is "`wavejit variants`"; if it is
// empty, the caller says where the list stands.
[[gnu::cold]] std::string meant_or_list(std::string_view given, std::span<const std::string> words,
                                        std::string_view place);

}  // namespace wavejit::vocabulary
