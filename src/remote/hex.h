// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bytes as text: "7c1e".
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace wavejit::remote {

inline std::string hex_of(std::span<const unsigned char> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : bytes) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

}  // namespace wavejit::remote
