// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How far off the clock was for published figures that no constant was taken from: what stands beside its predictions.
// src/simgpu/checkers/clock/model_error.json keeps it by kind, for this and for what programs say.
#pragma once

#include <map>
#include <string>

namespace wavejit::bench {

// Percent, to a tenth: as it is written and read.
struct ModelError {
  int anchors = 0;
  double too_low = 0;
  double too_high = 0;
  double root_mean_square = 0;
  // Where a busy share, 0 to 1, lies if the clock is off by as much as it was for those.
  double low_end(double predicted) const { return predicted / (1 + (too_high / 100)); }
  double high_end(double predicted) const {
    const double end = predicted / (1 - (too_low / 100));
    return end < 1 ? end : 1;
  }
};
// By kind, as "whole_kernels", "quoted" (those and "real_kernels"), and "all".
using ModelErrors = std::map<std::string, ModelError>;
// The file's text.
std::string to_json(const ModelErrors& errors);

// What the file says. Ends the program with a line when it cannot be read.
const ModelErrors& model_errors();
// The error of whole kernels, others' real ones among them: what stands beside a prediction.
const ModelError& model_error();

}  // namespace wavejit::bench
