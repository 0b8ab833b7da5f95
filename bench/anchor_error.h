// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The frozen anchors, what the clock says to each of them today, and the error that follows.
#pragma once

#include <vector>

#include "anchors.h"
#include "model_error.h"

namespace wavejit::bench {

struct JudgedAnchor {
  const simgpu::testing::Anchor* anchor = nullptr;
  double predicted = 0;
  double error = 0;  // percent
};
// Runs the loops, reads the others. Ends the program with a line when an anchor has no prediction.
const std::vector<JudgedAnchor>& judged_anchors();

ModelErrors errors_of(const std::vector<JudgedAnchor>& judged);

}  // namespace wavejit::bench
