// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows of a kernel spec's words (families/kernel/spec_words.h) that any attention has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "families/kernel/spec_words.h"
#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// The type of Q, K and V: "bf16".
template <auto field, typename Spec>
constexpr auto operand_type_word() {
  return families::named<field, operand_types, Spec, 1>(
      {.accepted = "bf16, fp16",
       .missing = "data type (bf16 or fp16)",
       .supported = "dtypes",
       .name_of = [](const families::SpecWord<Spec>&, const Spec& spec) { return std::string(to_text(spec.*field)); }});
}

// The type of K and V, where it is not that of Q.
template <auto field, typename Spec>
constexpr auto cache_type_word() {
  return families::named<field, cache_types, Spec, 3>(
      {.accepted = "cache=",
       .otherwise = "the type of Q has no word",
       .supported = "K and V of 8 bits",
       .name_of = [](const families::SpecWord<Spec>&, const Spec& spec) {
         return spec.*field == CacheType::as_queries ? std::string()
                                                     : std::string(families::name_in(cache_types, spec.*field));
       }});
}

// One modifier of a set, as a bit of a shape's code.
template <auto field, Modifier modifier>
struct ModifierBit {
  static constexpr int width = 1;
  template <typename Shape>
  static std::uint64_t get(const Shape& shape) {
    return (shape.*field).has(modifier) ? 1 : 0;
  }
  template <typename Shape>
  static void set(Shape& shape, std::uint64_t value) {
    (shape.*field).set(modifier, value != 0);
  }
};

namespace detail {
template <auto field, typename Spec, Modifier modifier>
constexpr auto modifier_word() {
  if constexpr (!row_of(modifier).in_code) {
    return std::tuple{};
  } else {
    using Row = families::SpecWord<Spec>;
    constexpr auto text = [](const Row& row, const Spec& spec) {
      return (spec.*field).has(modifier) ? std::string(row.accepted) : std::string();
    };
    return std::tuple{families::WordRow<Spec, ModifierBit<field, modifier>>{
        {.accepted = row_of(modifier).word,
         .supported = "modifiers",
         .of_problem = true,
         .text = text,
         .name_of = text,
         .take = [](const Row& row, Spec& spec, std::string_view word) -> families::Taken {
           if (word != row.accepted) return std::nullopt;
           (spec.*field).add(modifier);
           return families::taken_word();
         },
         .possible = [](const Row& row, const Spec& plain,
                        const families::HasKernel<Spec>& has) -> std::optional<std::string> {
           Spec spec = plain;
           (spec.*field).add(modifier);
           if (!has(spec)) return std::nullopt;
           return std::string(row.accepted);
         }}}};
  }
}
}  // namespace detail

// One row a modifier that changes code, to be joined with a table's other rows.
template <auto field, typename Spec>
constexpr auto modifier_words() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return std::tuple_cat(detail::modifier_word<field, Spec, static_cast<Modifier>(i)>()...);
  }(std::make_index_sequence<modifier_count>());
}

}  // namespace wavejit::attention
