// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The part of a call that changes code, as one number: a field a row, each with the bits that it takes. The kernel table
// is asked with such a number at every call, so this is hot.
#pragma once

#include <bit>
#include <cstdint>
#include <tuple>
#include <type_traits>

namespace wavejit::families {

// A field: a bool, an enum, a small number.
template <auto field, int bits>
struct Bits {
  static constexpr int width = bits;
  template <typename Shape>
  static std::uint64_t get(const Shape& shape) {
    return static_cast<std::uint64_t>(shape.*field);
  }
  template <typename Shape>
  static void set(Shape& shape, std::uint64_t value) {
    shape.*field = static_cast<std::remove_cvref_t<decltype(shape.*field)>>(value);
  }
};

// Bools of which at most one is set: its place among them, from 1 on. 0: none is.
template <auto... fields>
struct AtMostOne {
  static constexpr int width = std::bit_width(sizeof...(fields));
  template <typename Shape>
  static std::uint64_t get(const Shape& shape) {
    std::uint64_t place = 0;
    std::uint64_t set = 0;
    ((++place, set |= shape.*fields ? place : 0), ...);
    return set;
  }
  template <typename Shape>
  static void set(Shape& shape, std::uint64_t value) {
    std::uint64_t place = 0;
    ((shape.*fields = ++place == value), ...);
  }
};

// Several, as a type: they follow one another from the lowest bit on.
template <typename... Fields>
using BitFields = std::tuple<Fields...>;
template <typename... Lists>
using JoinedBits = decltype(std::tuple_cat(std::declval<Lists>()...));

namespace detail {
template <typename... Fields>
constexpr int width_of(std::type_identity<BitFields<Fields...>>) {
  return (Fields::width + ... + 0);
}
template <typename Shape, typename... Fields>
std::uint64_t code_of(const Shape& shape, std::type_identity<BitFields<Fields...>>) {
  std::uint64_t code = 0;
  int at = 0;
  ((code |= (Fields::get(shape) & ((std::uint64_t{1} << Fields::width) - 1)) << at, at += Fields::width), ...);
  return code | std::uint64_t{1} << at;
}
template <typename Shape, typename... Fields>
void take_code(Shape& shape, std::uint64_t code, std::type_identity<BitFields<Fields...>>) {
  ((Fields::set(shape, code & ((std::uint64_t{1} << Fields::width) - 1)), code >>= Fields::width), ...);
}
}  // namespace detail

// How many bits they take; a code has room for 63.
template <typename Fields>
inline constexpr int width_of_code = detail::width_of(std::type_identity<Fields>());

// Never 0: behind the fields stands a bit that is always there.
template <typename Fields, typename Shape>
std::uint64_t code_of(const Shape& shape) {
  static_assert(detail::width_of(std::type_identity<Fields>()) < 64, "a shape's code has no room for its fields");
  return detail::code_of(shape, std::type_identity<Fields>());
}
// The way back.
template <typename Fields, typename Shape>
Shape shape_of_code(std::uint64_t code) {
  Shape shape;
  detail::take_code(shape, code, std::type_identity<Fields>());
  return shape;
}

}  // namespace wavejit::families
