// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kinds of masks that have a number of their own (wavejit/masks.def), and what each shows: to kernels as two arguments of
// a launch, and by its definition. What kernels make of the arguments is in emit/visible_keys.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "families/kernel/names.h"
#include "templates/attention/kernel/local_chunks.h"
#include "templates/attention/kernel/types.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// A mask as kernels know it: what the bits of wavejit_mask and the two limits (negative: none) amount to. Kinds of
// masks.def have arguments of their own in place of the limits.
struct MaskChoice {
  Mask mask = Mask::none;
  std::int32_t left = unlimited_window;
  std::int32_t right = unlimited_window;
};

// Keys from the first to the one behind the last.
struct KeySpan {
  std::int64_t first = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

template <Mask mask>
struct ShownBy;
// Local chunks: how many keys one has, and the multiplier of local_chunks.h.
template <>
struct ShownBy<Mask::chunked> {
  static constexpr MaskChoice arguments(std::int64_t keys) {
    if (keys < least_local_chunk) return {.mask = Mask::window, .left = 0, .right = 0};
    const auto chunk = static_cast<std::uint32_t>(keys);
    return {.mask = Mask::chunked,
            .left = static_cast<std::int32_t>(chunk),
            .right = static_cast<std::int32_t>(local_chunk_multiplier(chunk))};
  }
  static constexpr KeySpan keys(std::int64_t position, std::int64_t chunk) {
    return {.first = position - (position % chunk)};
  }
};

struct MaskKind {
  Mask mask;
  std::string_view word;
  std::int32_t bit;
  std::string_view bit_name;
  const char* field;
  std::int32_t wavejit_masking::* number;
  std::size_t at;  // of the number, in wavejit_masking
  std::int32_t beside;
  std::int64_t least;
  std::int64_t most;
  std::string_view what;
  std::string_view counted;
  std::string_view help;
  MaskChoice (*arguments)(std::int64_t number);
  // Which keys a row at this position sees, of those that the masks beside it show.
  KeySpan (*keys)(std::int64_t position, std::int64_t number);
};
inline constexpr std::array mask_kinds = {
#define WAVEJIT_MASK_KIND(word_, bit_, field_, beside_, least_, most_, what_, number_, help_) \
  MaskKind{.mask = Mask::word_,                                                               \
           .word = #word_,                                                                    \
           .bit = (bit_),                                                                     \
           .bit_name = #bit_,                                                                 \
           .field = #field_,                                                                  \
           .number = &wavejit_masking::field_,                                                \
           .at = offsetof(wavejit_masking, field_),                                           \
           .beside = (beside_),                                                               \
           .least = (least_),                                                                 \
           .most = (most_),                                                                   \
           .what = (what_),                                                                   \
           .counted = (number_),                                                              \
           .help = (help_),                                                                   \
           .arguments = ShownBy<Mask::word_>::arguments,                                      \
           .keys = ShownBy<Mask::word_>::keys},
#include "wavejit/masks.def"
#undef WAVEJIT_MASK_KIND
};
static_assert(std::ranges::all_of(mask_kinds, [](const MaskKind& kind) { return kind.most <= unlimited_window; }));

// The row of a mask, or null if it has none; kind_in: of the bits of wavejit_mask.
constexpr const MaskKind* kind_of(Mask mask) {
  for (const MaskKind& kind : mask_kinds)
    if (kind.mask == mask) return &kind;
  return nullptr;
}
// Rows see keys beyond their diagonal.
constexpr bool shows_later_keys(Mask mask) {
  const MaskKind* const kind = kind_of(mask);
  return kind != nullptr && (kind->beside & WAVEJIT_MASK_CAUSAL) == 0;
}
constexpr const MaskKind* kind_in(std::int32_t bits) {
  for (const MaskKind& kind : mask_kinds)
    if ((bits & kind.bit) != 0) return &kind;
  return nullptr;
}

// "causal, window, chunked", and those of masks.def alone.
inline constexpr std::string_view mask_words = "causal, window"
#define WAVEJIT_MASK_KIND(word, ...) ", " #word
#include "wavejit/masks.def"
#undef WAVEJIT_MASK_KIND
    ;
inline constexpr std::string_view kind_words = mask_words.substr(std::string_view("causal, window, ").size());
inline constexpr families::Names<Mask, mask_kinds.size()> kind_names = [] {
  families::Names<Mask, mask_kinds.size()> names{};
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = {mask_kinds[i].mask, mask_kinds[i].word};
  return names;
}();

}  // namespace wavejit::attention
