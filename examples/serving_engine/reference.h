// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The same decoder as plainly as can be: float64, token by token, one request at a time, its own attention. What the
// engine answers is compared with it.
#pragma once

#include <vector>

#include "model.h"

namespace serving {

struct ReferenceAnswer {
  std::vector<int> tokens;
  std::vector<std::vector<double>> logits;  // of each token
  double smallest_margin = 0;               // between a chosen token's logit and the runner-up's
};

ReferenceAnswer reference_answer(const Model& model, const Request& request);

}  // namespace serving
