// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From a score to what the softmax sees, and which keys a row sees: the definition, in whole numbers and double.
#pragma once

#include <cstdint>
#include <optional>

#include "templates/attention/kernel/mask_kinds.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention::program {

struct ScoreRules {
  double scale = 1;
  // Row i sees keys 0 … i + diagonal.
  std::optional<std::int64_t> diagonal;
  // Row i stands at key position i + position; its window is keys position − left … position + right; −1: no limit.
  std::int64_t position = 0;
  std::int64_t window_left = -1;
  std::int64_t window_right = -1;
  const MaskKind* kind = nullptr;  // of masks.def, with its number
  std::int64_t number = 0;
  bool half_scores = false;    // of integers: scale · sum + bias in f32, rounded to fp16 once
  double softcap = 0;          // score ← cap · tanh(score / cap); 0: none
  double slope = 0;            // ALiBi: − slope · |position of the row − key|
  std::optional<double> sink;  // a logit that takes weight and gives no value
};

// The keys first … end − 1 that a row sees; first == end: none.
struct VisibleKeys {
  std::int64_t first = 0;
  std::int64_t end = 0;
};
VisibleKeys visible_keys(const ScoreRules& rules, std::int64_t row, std::int64_t keys);

// What a call's mask makes of the scores of a sequence with `rows` rows and `keys` keys.
ScoreRules rules_of(const wavejit_masking& mask, std::int64_t rows, std::int64_t keys);

}  // namespace wavejit::attention::program
