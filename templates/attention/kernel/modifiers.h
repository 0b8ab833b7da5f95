// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What scores pass through beside scale and mask, as one table: a row a modifier.
//
// Everybody reads it: specs and descriptors for their words, the checks of a call for its tensors and numbers,
// `supported` and `explain` for the list, tools for the fields of a parsed problem. To add a modifier, add a row here
// and the fields of the C ABI that families give it by (ModifierFields). Then write its check and its kernel arguments
// in each family that has it, its emission (emit/modifiers.cpp), its row of the tools with its place in the reference
// (program/modifiers.cpp), and its tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

#include "wavejit/wavejit.h"

namespace wavejit::attention {

// In the order in which a score meets them; sinks join the sum at the end.
enum class Modifier : std::uint8_t { softcap, bias, alibi, sink };
inline constexpr std::size_t modifier_count = 4;

// A set of them.
class Modifiers {
 public:
  constexpr Modifiers() = default;
  constexpr Modifiers(std::initializer_list<Modifier> all) {
    for (const Modifier one : all) add(one);
  }
  static constexpr Modifiers from_bits(std::uint8_t bits) {
    Modifiers set;
    set.bits_ = bits;
    return set;
  }

  constexpr void add(Modifier one) { bits_ |= bit(one); }
  constexpr void set(Modifier one, bool there) { bits_ = there ? bits_ | bit(one) : bits_ & ~bit(one); }
  constexpr bool has(Modifier one) const { return (bits_ & bit(one)) != 0; }
  constexpr bool any() const { return bits_ != 0; }
  constexpr std::uint8_t bits() const { return bits_; }
  constexpr bool operator==(const Modifiers&) const = default;

 private:
  static constexpr std::uint8_t bit(Modifier one) {
    return static_cast<std::uint8_t>(1U << static_cast<std::uint8_t>(one));
  }
  std::uint8_t bits_ = 0;
};

// Which dimensions a modifier's tensor has of its own; the others broadcast. The numbers are the C ABI's.
enum class Extent : std::int32_t {
  none = WAVEJIT_EXTENT_NONE,
  one = WAVEJIT_EXTENT_ONE,
  head = WAVEJIT_EXTENT_HEAD,
  batch = WAVEJIT_EXTENT_BATCH,
  batch_and_head = WAVEJIT_EXTENT_BATCH_AND_HEAD,
  token_and_head = WAVEJIT_EXTENT_TOKEN_AND_HEAD,
};
struct ExtentName {
  Extent extent;
  std::string_view name;
};

struct ModifierRow {
  Modifier modifier;
  std::string_view word;
  // A word of the kernel's spec. Else a launch argument of every kernel.
  bool in_code;
  // What a descriptor says behind "word=", in the order in which refusals list it. Empty, with a number: the number.
  // Empty, without: the word stands alone.
  std::span<const ExtentName> extents;
  // What a call gives: a number (0: not there), or a tensor (data null: not there). Which fields of its call these are,
  // each family says (ModifierFields).
  bool is_number;
  // What a parsed problem tells: an extent (1 for a word that stands alone), or the number.
  std::int32_t wavejit_problem::* told_extent;
  float wavejit_problem::* told_number;
  // "softcap=<x>" as descriptors' list of accepted words has it.
  std::string_view accepted;
};

inline constexpr std::array<ExtentName, 5> bias_extents = {{{Extent::none, "none"},
                                                            {Extent::batch_and_head, "bh"},
                                                            {Extent::batch, "b"},
                                                            {Extent::head, "h"},
                                                            {Extent::one, "1"}}};
inline constexpr std::array<ExtentName, 2> alibi_extents = {{{Extent::head, "h"}, {Extent::batch_and_head, "bh"}}};

// Row i is that of the modifier with the number i.
inline constexpr std::array<ModifierRow, modifier_count> modifier_rows = {{
    {.modifier = Modifier::softcap,
     .word = "softcap",
     .in_code = true,
     .extents = {},
     .is_number = true,
     .told_extent = nullptr,
     .told_number = &wavejit_problem::softcap,
     .accepted = "softcap=<x>"},
    {.modifier = Modifier::bias,
     .word = "bias",
     .in_code = true,
     .extents = bias_extents,
     .is_number = false,
     .told_extent = &wavejit_problem::bias,
     .told_number = nullptr,
     .accepted = "bias=none|bh|b|h|1"},
    {.modifier = Modifier::alibi,
     .word = "alibi",
     .in_code = true,
     .extents = alibi_extents,
     .is_number = false,
     .told_extent = &wavejit_problem::alibi,
     .told_number = nullptr,
     .accepted = "alibi=h|bh"},
    {.modifier = Modifier::sink,
     .word = "sink",
     .in_code = false,
     .extents = {},
     .is_number = false,
     .told_extent = &wavejit_problem::sink,
     .told_number = nullptr,
     .accepted = "sink"},
}};

// The order in which descriptors print them and refusals list them.
inline constexpr std::array<Modifier, modifier_count> described_modifiers = {Modifier::bias, Modifier::alibi,
                                                                             Modifier::sink, Modifier::softcap};

constexpr const ModifierRow& row_of(Modifier modifier) { return modifier_rows[static_cast<std::size_t>(modifier)]; }

// Where a family's call gives a modifier: one of the two, as its row says.
template <typename Call>
struct ModifierFields {
  Modifier modifier;
  wavejit_tensor Call::* tensor = nullptr;
  float Call::* number = nullptr;
};

// Whether a call asks for it.
template <typename Call>
bool given(const ModifierFields<Call>& fields, const Call& call) {
  return fields.tensor != nullptr ? (call.*fields.tensor).data != nullptr : call.*fields.number != 0;
}

// Row i of a family's fields is that of the modifier with the number i, and gives what the table says.
template <typename Call>
constexpr bool bind_all(const std::array<ModifierFields<Call>, modifier_count>& fields) {
  for (std::size_t i = 0; i < modifier_count; ++i) {
    const bool number = fields[i].number != nullptr;
    if (fields[i].modifier != static_cast<Modifier>(i) || number != modifier_rows[i].is_number ||
        number != (fields[i].tensor == nullptr))
      return false;
  }
  return true;
}

static_assert([] {
  for (std::size_t i = 0; i < modifier_count; ++i)
    if (modifier_rows[i].modifier != static_cast<Modifier>(i)) return false;
  return true;
}());

}  // namespace wavejit::attention
