// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/call/modifier_words.h"

#include <format>

#include "families/call/words.h"
#include "templates/attention/call/limits.h"

namespace wavejit::attention {

using families::Result;
using families::TakenWord;
using families::Word;
using families::wrong;

TakenWord take_modifier(const Word& word, const ModifierRow& row, DescribedModifier& modifier) {
  if (row.number == nullptr && row.extents.empty()) {
    if (word.text != row.word) return std::nullopt;
    modifier = {.there = true, .extent = Extent::one, .number = {}};
    return Result<void>();
  }
  const auto value = families::behind_key(word, row.word);
  if (!value) return std::nullopt;
  const std::string key = std::string(row.word) + "=";
  if (row.number != nullptr) {
    const auto given = families::finite_number(*value);
    if (!given || *given <= 0 || *given > max_softcap)
      return wrong(word, std::format("is no cap; accepted: {}<positive number up to {}>", key, max_softcap));
    modifier = {.there = true, .extent = Extent::none, .number = std::string(*value)};
    return Result<void>();
  }
  std::string accepted;
  for (const ExtentName& each : row.extents) {
    if (each.name == *value) {
      if (each.extent != Extent::none) modifier = {.there = true, .extent = each.extent, .number = {}};
      return Result<void>();
    }
    accepted += (accepted.empty() ? "" : ", ") + key + std::string(each.name);
  }
  return wrong(word, "is not known; accepted: " + accepted);
}

std::string text_of(const DescribedModifier& modifier, const ModifierRow& row) {
  if (!modifier.there) return {};
  std::string text(row.word);
  if (row.number != nullptr) return text + "=" + modifier.number;
  for (const ExtentName& each : row.extents)
    if (each.extent == modifier.extent) text += "=" + std::string(each.name);
  return text;
}

}  // namespace wavejit::attention
