// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/score_rules.h"

#include <algorithm>

#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

VisibleKeys visible_keys(const ScoreRules& rules, std::int64_t row, std::int64_t keys) {
  VisibleKeys visible{.first = 0, .end = keys};
  if (rules.diagonal) visible.end = std::min(visible.end, row + *rules.diagonal + 1);
  const std::int64_t position = row + rules.position;
  if (rules.window_right >= 0) visible.end = std::min(visible.end, position + rules.window_right + 1);
  if (rules.window_left >= 0) visible.first = std::max<std::int64_t>(0, position - rules.window_left);
  if (rules.kind != nullptr) {
    const KeySpan shown = rules.kind->keys(position, rules.number);
    visible.first = std::max(visible.first, shown.first);
    visible.end = std::min(visible.end, shown.end);
  }
  if (visible.end <= visible.first) return {};
  return visible;
}

ScoreRules rules_of(const wavejit_masking& mask, std::int64_t rows, std::int64_t keys) {
  ScoreRules rules;
  rules.position = (mask.bits & WAVEJIT_MASK_PREFIX) != 0 ? mask.causal_prefix : keys - rows;
  if ((mask.bits & WAVEJIT_MASK_CAUSAL) != 0) rules.diagonal = rules.position;
  if ((mask.bits & WAVEJIT_MASK_WINDOW) != 0) {
    rules.window_left = mask.window_left;
    rules.window_right = mask.window_right;
  }
  rules.kind = kind_in(mask.bits);
  if (rules.kind != nullptr) rules.number = mask.*rules.kind->number;
  return rules;
}

}  // namespace wavejit::attention::program
