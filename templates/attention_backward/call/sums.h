// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums that several calls make together, as text: "dq,dk_dv" for the bits of enum wavejit_gradient_sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "families/kernel/names.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention_backward {

inline constexpr families::Names<std::uint32_t, 2> sums_names = {
    {{WAVEJIT_SUMS_OF_DQ, "dq"}, {WAVEJIT_SUMS_OF_DK_DV, "dk_dv"}}};

// Empty: none.
inline std::string text_of_sums(std::uint32_t sums) {
  std::string text;
  for (const auto& [bit, name] : sums_names) {
    if ((sums & bit) == 0) continue;
    if (!text.empty()) text += ',';
    text += name;
  }
  return text;
}

// Nothing: another name, or one that is said twice.
inline std::optional<std::uint32_t> sums_of_text(std::string_view text) {
  std::uint32_t sums = 0;
  for (;;) {
    const std::size_t comma = text.find(',');
    const auto bit = families::value_in(sums_names, text.substr(0, comma));
    if (!bit || (sums & *bit) != 0) return std::nullopt;
    sums |= *bit;
    if (comma == std::string_view::npos) return sums;
    text.remove_prefix(comma + 1);
  }
}

}  // namespace wavejit::attention_backward
