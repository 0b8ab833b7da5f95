// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/mask_words.h"

#include "templates/attention/kernel/local_chunks.h"

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

Result<void> take_chunked(const Word& word, std::string_view value, MaskWords& mask) {
  const auto keys = whole_number(value);
  if (!keys || *keys < 1 || *keys > most_local_chunk)
    return wrong(
        word, "is no chunk; accepted: chunked=<keys of a local chunk, 1 to " + std::to_string(most_local_chunk) + ">");
  mask.local_chunk = keys;
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

Result<void> check_chunked(const MaskWords& mask) {
  if (!mask.local_chunk || (mask.causal && !mask.window)) return {};
  return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: chunked=" + std::to_string(*mask.local_chunk) +
                                            "; accepted: causal and no window beside it");
}

MaskChoice choose_mask(const MaskWords& mask) {
  if (mask.local_chunk) return choose_local_chunks(*mask.local_chunk);
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

std::string chunked_text(const MaskWords& mask) {
  return mask.local_chunk ? std::to_string(*mask.local_chunk) : std::string();
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
  if (mask.local_chunk) {
    told.bits |= WAVEJIT_MASK_CHUNKED;
    told.local_chunk = static_cast<std::int32_t>(*mask.local_chunk);
  }
  return told;
}

MaskWords words_of(std::int32_t mask, std::int64_t causal_prefix, std::int32_t left, std::int32_t right,
                   std::int64_t local_chunk) {
  MaskWords words;
  words.causal = (mask & WAVEJIT_MASK_CAUSAL) != 0;
  if ((mask & WAVEJIT_MASK_PREFIX) != 0) words.causal_prefix = causal_prefix;
  if ((mask & WAVEJIT_MASK_WINDOW) != 0) words.window = {left, right};
  if ((mask & WAVEJIT_MASK_CHUNKED) != 0) words.local_chunk = local_chunk;
  return words;
}

}  // namespace wavejit::attention
