// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Enums and their words: a table each, read both ways.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace wavejit::families {

template <typename Enum, std::size_t count>
using Names = std::array<std::pair<Enum, std::string_view>, count>;

template <typename Enum, std::size_t count>
std::string_view name_in(const Names<Enum, count>& names, Enum value) {
  for (const auto& [candidate, name] : names)
    if (candidate == value) return name;
  return "?";
}

template <typename Enum, std::size_t count>
std::optional<Enum> value_in(const Names<Enum, count>& names, std::string_view text) {
  for (const auto& [value, name] : names)
    if (name == text) return value;
  return std::nullopt;
}

// "bf16, fp16"; each behind `before`: "layout=bshd, layout=bhsd"; in one word: "e4m3|e5m2".
template <typename Enum, std::size_t count>
std::string all_of(const Names<Enum, count>& names, std::string_view before = {}, std::string_view between = ", ") {
  std::string list;
  for (const auto& [value, name] : names) {
    if (!list.empty()) list += between;
    list += before;
    list += name;
  }
  return list;
}

}  // namespace wavejit::families
