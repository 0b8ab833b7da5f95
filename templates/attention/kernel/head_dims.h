// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The word of two head dims: "d128", "d192/128".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "families/kernel/spec_words.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// "<first><separator><second>", both positive.
inline std::optional<std::pair<int, int>> number_pair(std::string_view text, char separator) {
  const std::size_t at = text.find(separator);
  if (at == std::string_view::npos) return std::nullopt;
  const auto first = families::positive_number(text.substr(0, at));
  const auto second = families::positive_number(text.substr(at + 1));
  if (!first || !second) return std::nullopt;
  return std::pair{*first, *second};
}

// Head dims that a shape's code tells apart (families/kernel/shape_bits.h): multiples of 8 from 8 to 512, in 6 bits. Calls and
// descriptors with others are refused before they have a code (call/tensors.h).
inline constexpr int coded_head_dim_step = 8;
inline constexpr int largest_coded_head_dim = 512;

constexpr bool has_code(const HeadDims& dims) {
  const auto fits = [](int each) {
    return each > 0 && each <= largest_coded_head_dim && each % coded_head_dim_step == 0;
  };
  return fits(dims.qk) && fits(dims.v);
}

template <auto field>
struct HeadDimBits {
  static constexpr int width = 6;
  static_assert(largest_coded_head_dim / coded_head_dim_step == 1 << width);
  template <typename Shape>
  static std::uint64_t get(const Shape& shape) {
    return (static_cast<std::uint64_t>(shape.*field) / coded_head_dim_step) - 1;
  }
  template <typename Shape>
  static void set(Shape& shape, std::uint64_t value) {
    shape.*field = static_cast<int>((value + 1) * coded_head_dim_step);
  }
};

inline std::string dims_text(const HeadDims& dims, char separator) {
  std::string text = "d" + std::to_string(dims.qk);
  if (dims.v != dims.qk) text += separator + std::to_string(dims.v);
  return text;
}

// Head dims beside those that a family lists: one of them, and what they all are.
struct OtherHeadDims {
  HeadDims one;
  std::string_view all;
};

// `qk`, `v`: the fields. `all`: a function whose range has every pair that fills tiles. `others`: one that returns
// OtherHeadDims, or nothing.
template <auto qk, auto v, auto all, typename Spec, auto others = nullptr>
constexpr auto head_dims_word() {
  using Row = families::SpecWord<Spec>;
  return families::WordRow<Spec, HeadDimBits<qk>, HeadDimBits<v>>{
      {.accepted = "d<n>[/<n>]",
       .missing = "head dim (d<n>)",
       .supported = "head dims",
       .of_problem = true,
       .text = [](const Row&, const Spec& spec) { return dims_text({spec.*qk, spec.*v}, '/'); },
       .name_of = [](const Row&, const Spec& spec) { return dims_text({spec.*qk, spec.*v}, '_'); },
       .take = [](const Row&, Spec& spec, std::string_view word) -> families::Taken {
         if (word.size() < 2 || word.front() != 'd' || word[1] < '0' || word[1] > '9') return std::nullopt;
         const std::string_view of_word = word.substr(1);
         if (const auto one = families::positive_number(of_word)) {
           spec.*qk = spec.*v = *one;
         } else if (const auto two = number_pair(of_word, '/')) {
           std::tie(spec.*qk, spec.*v) = *two;
         } else {
           return families::refused_word(": d<head dim> or d<head dim of q and k>/<head dim of v>");
         }
         return families::taken_word();
       },
       .possible = [](const Row&, const Spec& plain,
                      const families::HasKernel<Spec>& has) -> std::optional<std::string> {
         std::optional<std::string> list;
         for (const HeadDims& dims : all()) {
           Spec spec = plain;
           spec.*qk = dims.qk;
           spec.*v = dims.v;
           if (has(spec)) list = (list ? *list + " " : std::string()) + to_text(dims);
         }
         if constexpr (others != nullptr) {
           Spec spec = plain;
           spec.*qk = others().one.qk;
           spec.*v = others().one.v;
           if (list && has(spec)) *list += " " + std::string(others().all);
         }
         return list;
       }}};
}

}  // namespace wavejit::attention
