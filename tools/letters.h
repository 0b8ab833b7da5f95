// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

namespace wavejit::tools {

// For names that are taken in any case: "MI300X", "mi300x".
inline std::string small_letters(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(),
                         [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
  return small;
}

}  // namespace wavejit::tools
