// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/mask_words.h"

#include "templates/attention/kernel/mask_kinds.h"

namespace wavejit::attention {

using families::fail;
using families::Result;
using families::whole_number;
using families::Word;
using families::wrong;

Result<void> take_causal(const Word& word, std::string_view value, std::int64_t max_length, const char* row,
                         const char* keys, MaskWords& mask) {
  const auto prefix = whole_number(value);
  if (!prefix || *prefix > max_length)
    return wrong(word,
                 std::string("is no prefix; accepted: causal=<keys before the first ") + row + ">, 0 to the " + keys);
  mask.causal = true;
  mask.causal_prefix = prefix;
  return {};
}

Result<void> take_window(const Word& word, std::string_view value, std::int64_t max_length, MaskWords& mask) {
  const auto limit = [](std::string_view text) {
    return text == "-1" ? std::optional<std::int64_t>(-1) : whole_number(text);
  };
  const std::size_t comma = value.find(',');
  const auto left = limit(value.substr(0, comma));
  const auto right = comma == std::string_view::npos ? std::nullopt : limit(value.substr(comma + 1));
  if (!left || !right || *left > max_length || *right > max_length)
    return wrong(word,
                 "is no window; accepted: window=<left>,<right>, keys on each side of the diagonal, -1 for no limit");
  mask.window = {*left, *right};
  return {};
}

Result<void> take_kind(const MaskKind& kind, const Word& word, std::string_view value, MaskWords& mask) {
  const auto number = whole_number(value);
  if (!number || *number < kind.least || *number > kind.most)
    return wrong(word, "is no number; accepted: " + std::string(kind.word) + "=<" + std::string(kind.counted) + ", " +
                           std::to_string(kind.least) + " to " + std::to_string(kind.most) + ">");
  if (mask.number && mask.kind != kind.mask)
    return wrong(word, "stands beside another such mask; accepted: one of them");
  mask.number = number;
  mask.kind = kind.mask;
  return {};
}

Result<void> take_lengths(const Word& word, std::string_view value, std::int64_t max_length,
                          std::vector<std::int64_t>& lengths) {
  while (true) {
    const std::size_t comma = value.find(',');
    const auto length = whole_number(value.substr(0, comma));
    if (!length || *length > max_length)
      return wrong(word, "is no list of lengths; accepted: numbers of 0 and more, separated by commas");
    lengths.push_back(*length);
    if (comma == std::string_view::npos) return {};
    value.remove_prefix(comma + 1);
  }
}

Result<void> take_scale(const Word& word, std::string_view value, std::string& scale) {
  if (!families::finite_number(value)) return wrong(word, "is no number; accepted: scale=<finite number>");
  scale = value;
  return {};
}

Result<void> take_seed(const Word& word, std::string_view value, std::string& seed) {
  if (!whole_number(value)) return wrong(word, "is no number; accepted: seed=<n>, 0 to 9223372036854775807");
  seed = value;
  return {};
}

Result<void> check_prefix(const MaskWords& mask, std::int64_t keys) {
  if (!mask.causal_prefix || *mask.causal_prefix <= keys) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: causal=" + std::to_string(*mask.causal_prefix) +
                                            "; accepted: 0 to " + std::to_string(keys) + ", the keys");
}

Result<void> check_mask_kind(const MaskWords& mask) {
  const MaskKind* const kind = kind_of(mask.kind);
  const std::int32_t beside = (mask.causal ? WAVEJIT_MASK_CAUSAL : 0) | (mask.window ? WAVEJIT_MASK_WINDOW : 0);
  if (kind == nullptr || beside == kind->beside) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + std::string(kind->word) + "=" + std::to_string(*mask.number) +
                                            "; accepted: " + beside_text(*kind) + " beside it");
}

MaskChoice choose_mask(const MaskWords& mask) {
  if (const MaskKind* const kind = kind_of(mask.kind)) return kind->arguments(*mask.number);
  return choose_mask(mask.causal, mask.window.has_value(), mask.left(), mask.right());
}

std::string causal_text(const MaskWords& mask) {
  if (mask.causal_prefix) return "causal=" + std::to_string(*mask.causal_prefix);
  return mask.causal ? "causal" : "";
}
std::string window_text(const MaskWords& mask) {
  if (!mask.window) return {};
  return std::to_string(mask.window->first) + "," + std::to_string(mask.window->second);
}

std::string kind_text(const MaskKind& kind, const MaskWords& mask) {
  return mask.kind == kind.mask ? std::to_string(*mask.number) : std::string();
}

std::string to_text(const std::vector<std::int64_t>& lengths) {
  std::string text;
  for (const std::int64_t length : lengths) text += (text.empty() ? "" : ",") + std::to_string(length);
  return text;
}

wavejit_masking masking_of(const MaskWords& mask) {
  wavejit_masking told{};
  if (mask.causal) told.bits |= WAVEJIT_MASK_CAUSAL;
  if (mask.causal_prefix) {
    told.bits |= WAVEJIT_MASK_PREFIX;
    told.causal_prefix = *mask.causal_prefix;
  }
  if (mask.window) {
    told.bits |= WAVEJIT_MASK_WINDOW;
    told.window_left = static_cast<std::int32_t>(mask.window->first);
    told.window_right = static_cast<std::int32_t>(mask.window->second);
  }
  if (const MaskKind* const kind = kind_of(mask.kind)) {
    told.bits |= kind->bit;
    told.*kind->number = static_cast<std::int32_t>(*mask.number);
  }
  return told;
}

MaskWords words_of(const wavejit_masking& mask) {
  MaskWords words;
  words.causal = (mask.bits & WAVEJIT_MASK_CAUSAL) != 0;
  if ((mask.bits & WAVEJIT_MASK_PREFIX) != 0) words.causal_prefix = mask.causal_prefix;
  if ((mask.bits & WAVEJIT_MASK_WINDOW) != 0) words.window = {mask.window_left, mask.window_right};
  if (const MaskKind* const kind = kind_in(mask.bits)) {
    words.kind = kind->mask;
    words.number = mask.*kind->number;
  }
  return words;
}

}  // namespace wavejit::attention
