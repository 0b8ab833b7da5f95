// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What somebody meant who misspelt a word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wavejit::families {

// " (did you mean 'causal'?)" for "causl", or nothing where no word is near: a third of its letters may be wrong, and two
// neighbours in turn are one mistake. `words`: as lists of what is accepted have them, "causal[=<prefix>]",
// "softcap=<x>", "bias=none|bh". The key of "key=value" is compared where no such value is near.
[[gnu::cold]] std::string did_you_mean(std::string_view given, std::span<const std::string_view> words);
// The words stand in a list with ", " between.
[[gnu::cold]] std::string did_you_mean(std::string_view given, std::string_view list);

}  // namespace wavejit::families
