// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The words of descriptors that any attention has: causal=, window=, lists of lengths, scale=, seed=.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "families/call/words.h"
#include "templates/attention/call/mask.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// What the words said of the mask. Limits: −1 is none.
struct MaskWords {
  bool causal = false;
  std::optional<std::int64_t> causal_prefix;
  std::optional<std::pair<std::int64_t, std::int64_t>> window;
  std::optional<std::int64_t> number;  // of a kind of masks.def
  Mask kind = Mask::none;
  bool operator==(const MaskWords&) const = default;

  std::int64_t left() const { return window ? window->first : -1; }
  std::int64_t right() const { return window ? window->second : -1; }
};

// Each takes the text behind "=". `row`: what a family's refusals call a row, `keys` what they call its keys.
families::Result<void> take_causal(const families::Word& word, std::string_view value, std::int64_t max_length,
                                   const char* row, const char* keys, MaskWords& mask);
families::Result<void> take_window(const families::Word& word, std::string_view value, std::int64_t max_length,
                                   MaskWords& mask);
families::Result<void> take_kind(const MaskKind& kind, const families::Word& word, std::string_view value,
                                 MaskWords& mask);
families::Result<void> take_lengths(const families::Word& word, std::string_view value, std::int64_t max_length,
                                    std::vector<std::int64_t>& lengths);
families::Result<void> take_scale(const families::Word& word, std::string_view value, std::string& scale);
families::Result<void> take_seed(const families::Word& word, std::string_view value, std::string& seed);

// Called after the last word of a descriptor: a prefix must not be longer than the keys.
families::Result<void> check_prefix(const MaskWords& mask, std::int64_t keys);
// And a kind of masks.def has beside it what it needs, and nothing else.
families::Result<void> check_mask_kind(const MaskWords& mask);
// What a family that has all of these words makes of them.
MaskChoice choose_mask(const MaskWords& mask);

// "causal", "causal=8"; and "255,0", what stands behind "window=". Empty: not said.
std::string causal_text(const MaskWords& mask);
std::string window_text(const MaskWords& mask);
std::string kind_text(const MaskKind& kind, const MaskWords& mask);
// "17,0,5"
std::string to_text(const std::vector<std::int64_t>& lengths);

// As the C ABI tells a parsed problem, and as a call's fields are told again.
wavejit_masking masking_of(const MaskWords& mask);
MaskWords words_of(const wavejit_masking& mask);

}  // namespace wavejit::attention
