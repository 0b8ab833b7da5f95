// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The spec of a family of one kernel: what a problem asks for, a target and a lowering, in the words of one table.
//
//   struct AskedWords {
//     static constexpr std::string_view family = "row_sum";  // the folder, and the first word of the kernel's text
//     DataType dtype = DataType::fp32;
//     bool operator==(const AskedWords&) const = default;
//   };
//   using RowSumKernel = families::KernelOf<AskedWords>;
//   constexpr auto word_table_of(std::type_identity<AskedWords>) {
//     return families::kernel_words<AskedWords>(families::named<&AskedWords::dtype, data_types, RowSumKernel, 1>({…}));
//   }
//
// Beside it the family has refusal_of(spec) and argument_bytes(spec), as every spec (kernel_spec.h).
#pragma once

#include <array>
#include <expected>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "families/kernel/kernel_spec.h"
#include "families/kernel/spec_words.h"
#include "families/kernel/toggles.h"

namespace wavejit::families {

template <typename Asked>
struct KernelOf : Asked {
  using Words = Asked;
  static constexpr std::string_view kernel = Asked::family;
  std::string target;
  Lowering lowering = Lowering::llvm;
  bool operator==(const KernelOf&) const = default;
};

// The rows of what is asked for, and behind them what every spec ends with.
template <typename Asked, typename... Rows>
constexpr auto kernel_words(const Rows&... asked) {
  return std::tuple{asked..., target_word<KernelOf<Asked>>(), lowering_word<KernelOf<Asked>>()};
}

// What the family's table comes to.
template <typename Asked>
using AskedBits = BitsOfTable<decltype(word_table_of(std::type_identity<Asked>()))>;
template <typename Asked>
inline constexpr auto words_of_kernel = texts_of(word_table_of(std::type_identity<Asked>()));

template <typename Asked>
std::string to_text(const KernelOf<Asked>& spec) {
  return text_of_spec(words_of_kernel<Asked>, spec);
}
template <typename Asked>
std::expected<KernelOf<Asked>, std::string> parse_kernel(std::string_view text) {
  return parse_words(words_of_kernel<Asked>, text);
}
// What a family of one kernel registers.
template <typename Asked>
std::span<const KernelKind> only_kernel_kind() {
  static constexpr std::array kinds = {kind_of<KernelOf<Asked>, parse_kernel<Asked>>};
  return kinds;
}

}  // namespace wavejit::families
