// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/kernel/spec.h"

#include "templates/attention_forward/kernel/words.h"

namespace wavejit::attention_forward {
namespace {

// The next word of `text` from `position` on, which is left behind it; empty at the end.
std::string_view next_word(std::string_view text, std::size_t& position) {
  while (position < text.size() && text[position] == ' ') ++position;
  const std::size_t start = position;
  while (position < text.size() && text[position] != ' ') ++position;
  return text.substr(start, position - start);
}

// The row that has taken the word.
std::expected<std::size_t, std::string> take_word(KernelSpec& spec, std::string_view word) {
  for (std::size_t i = 0; i < words().size(); ++i) {
    const WordRow::Taken taken = take(words()[i], spec, word);
    if (!taken) continue;
    if (!*taken) return std::unexpected(taken->error());
    return i;
  }
  return std::unexpected(accepted_instead(word));
}

}  // namespace

std::string to_text(const KernelSpec& spec) {
  std::string text{KernelSpec::kernel};
  for (const WordRow& row : words())
    if (const std::string word = text_of(row, spec); !word.empty()) text += " " + word;
  return text;
}

std::expected<KernelSpec, std::string> parse_spec(std::string_view text) {
  const auto refuse = [](std::string_view word, std::size_t number, const std::string& why) {
    return std::unexpected("kernel spec: word " + std::to_string(number) + " '" + std::string(word) + "': " + why);
  };
  std::size_t position = 0;
  std::size_t number = 1;
  if (const std::string_view first = next_word(text, position); first != KernelSpec::kernel)
    return refuse(first, number, "accepted: " + std::string(KernelSpec::kernel));
  KernelSpec spec;
  std::vector<bool> seen(words().size());
  for (;;) {
    const std::string_view word = next_word(text, position);
    if (word.empty()) break;
    ++number;
    const auto row = take_word(spec, word);
    if (!row) return refuse(word, number, row.error());
    if (seen[*row]) return refuse(word, number, "says again what an earlier word said; accepted: each thing once");
    seen[*row] = true;
  }
  for (std::size_t i = 0; i < words().size(); ++i)
    if (!seen[i] && !words()[i].missing.empty())
      return std::unexpected("kernel spec: no word gives the " + std::string(words()[i].missing));
  return spec;
}

}  // namespace wavejit::attention_forward
