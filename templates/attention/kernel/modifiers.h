// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What scores pass through beside scale and mask, as one table: a row a modifier.
//
// Everybody reads it: specs and descriptors for their words, the checks of a call for its tensors and numbers,
// `supported` and `explain` for the list, tools for the fields of a parsed problem. To add a modifier, add its
// field to wavejit_modifiers and a row here. Then write its check and its kernel arguments in each family that has it, its emission (emit/modifiers.cpp), its row of the tools with its place in the reference
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

// Which dimensions a modifier's tensor has of its own; the others broadcast. token_and_head: of scales alone.
enum class Extent : std::uint8_t { none, one, head, batch, batch_and_head, token_and_head };
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
  // The field by which a call gives it: one of the two, a tensor (data null: not there) or a number (0: not there).
  wavejit_tensor wavejit_modifiers::* tensor;
  float wavejit_modifiers::* number;
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
     .tensor = nullptr,
     .number = &wavejit_modifiers::softcap,
     .accepted = "softcap=<x>"},
    {.modifier = Modifier::bias,
     .word = "bias",
     .in_code = true,
     .extents = bias_extents,
     .tensor = &wavejit_modifiers::bias,
     .number = nullptr,
     .accepted = "bias=none|bh|b|h|1"},
    {.modifier = Modifier::alibi,
     .word = "alibi",
     .in_code = true,
     .extents = alibi_extents,
     .tensor = &wavejit_modifiers::alibi,
     .number = nullptr,
     .accepted = "alibi=h|bh"},
    {.modifier = Modifier::sink,
     .word = "sink",
     .in_code = false,
     .extents = {},
     .tensor = &wavejit_modifiers::sink,
     .number = nullptr,
     .accepted = "sink"},
}};

// The order in which descriptors print them and refusals list them.
inline constexpr std::array<Modifier, modifier_count> described_modifiers = {Modifier::bias, Modifier::alibi,
                                                                             Modifier::sink, Modifier::softcap};

constexpr const ModifierRow& row_of(Modifier modifier) { return modifier_rows[static_cast<std::size_t>(modifier)]; }

// Whether a call asks for it.
inline bool given(const ModifierRow& row, const wavejit_modifiers& call) {
  return row.tensor != nullptr ? (call.*row.tensor).data != nullptr : call.*row.number != 0;
}
// What it gives: of a modifier that is a number, a tensor without memory, and the other way about 0.
inline const wavejit_tensor& tensor_of(const ModifierRow& row, const wavejit_modifiers& call) {
  static constexpr wavejit_tensor none{};
  return row.tensor != nullptr ? call.*row.tensor : none;
}
inline float number_of(const ModifierRow& row, const wavejit_modifiers& call) {
  return row.number != nullptr ? call.*row.number : 0;
}

static_assert([] {
  for (std::size_t i = 0; i < modifier_count; ++i)
    if (modifier_rows[i].modifier != static_cast<Modifier>(i) ||
        (modifier_rows[i].tensor == nullptr) == (modifier_rows[i].number == nullptr))
      return false;
  return true;
}());

}  // namespace wavejit::attention
