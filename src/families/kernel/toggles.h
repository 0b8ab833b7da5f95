// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a caller may force of kernels, whatever their family: the options of wavejit_engine_options that choose code or
// launch arguments, as values. What is of one family alone is carried as that family's text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "families/kernel/names.h"

namespace wavejit::families {

// What turns the IR into machine code: the LLVM inside libwavejit_codegen.so, or the installed ROCm's comgr.
enum class Lowering : std::uint8_t { llvm, comgr };
inline constexpr Names<Lowering, 2> lowerings = {{{Lowering::llvm, "llvm"}, {Lowering::comgr, "comgr"}}};
inline std::string_view to_text(Lowering lowering) { return name_in(lowerings, lowering); }

// The most splits of keys that a call or an option may ask for.
inline constexpr std::int32_t max_splits = 0xFFFF;

struct Toggles {
  Lowering lowering = Lowering::llvm;
  // Words "name=value" that a family reads where it routes, and passes over where they are another's. Empty: nothing is
  // forced. Who pins a kernel has that one or none: "pipeline=dualwave ladder=early".
  std::string pins = {};  // NOLINT(readability-redundant-member-init): for initializers
  // How kernels that can do it do it: "o_store=scalar stagger=off".
  std::string ways = {};  // NOLINT(readability-redundant-member-init): for initializers

  // From here on launch arguments, no code.
  bool lazy_rescale = true;  // off: sums follow a row's maximum at once
  // Heads of one kv head on one die. Nothing: where several heads share one and the dies divide them (a guess: K and V
  // then stay in one die's L2; the published remap lost on causal masks, but it moved query tiles too).
  std::optional<bool> xcd_swizzle = std::nullopt;
  std::optional<std::int32_t> kv_splits = std::nullopt;  // of calls that do not say; nothing: auto

  bool pins_kernels() const { return !pins.empty(); }
};

// ---- Words of such a text

template <typename Take>
void for_each_word(std::string_view text, Take take) {
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    if (space != 0) take(text.substr(0, space));
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
}

// "ladder" and "early" of "ladder=early".
inline std::pair<std::string_view, std::string_view> name_and_value(std::string_view word) {
  const std::size_t equals = word.find('=');
  if (equals == std::string_view::npos) return {word, {}};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

// What the text says of a name; empty: nothing.
inline std::string_view value_in(std::string_view text, std::string_view name) {
  std::string_view found;
  for_each_word(text, [&](std::string_view word) {
    if (const auto [of_word, value] = name_and_value(word); of_word == name) found = value;
  });
  return found;
}

}  // namespace wavejit::families
