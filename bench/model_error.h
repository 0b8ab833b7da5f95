// How far off the clock was for whole kernels that no constant was taken from: what stands beside its predictions.
// src/simgpu/clock/model_error.json keeps it, for this and for what `wavejit profile` says.
#pragma once

#include <string>

namespace wavejit::bench {

// Percent, to a tenth: as it is written and read.
struct ModelError {
  int kernels = 0;
  double too_low = 0;
  double too_high = 0;
  double root_mean_square = 0;
  // Where a busy share, 0 to 1, lies if the clock is off by as much as it was for those.
  double low_end(double predicted) const { return predicted / (1 + (too_high / 100)); }
  double high_end(double predicted) const {
    const double end = predicted / (1 - (too_low / 100));
    return end < 1 ? end : 1;
  }
  // The file's text.
  std::string to_json() const;
};

// What the file says. Ends the program with a line when it cannot be read.
const ModelError& model_error();

}  // namespace wavejit::bench
