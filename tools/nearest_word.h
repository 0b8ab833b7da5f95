// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What somebody meant who misspelt a word.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wavejit::tools {

// " (did you mean 'explain'?)" for "explian", or nothing where no word is near: a third of its letters may be wrong,
// and two neighbours in turn are one mistake.
std::string did_you_mean(std::string_view given, std::span<const std::string> words);

}  // namespace wavejit::tools
