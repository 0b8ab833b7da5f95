// How far off the clock was for whole kernels that no constant was taken from: what stands beside its predictions.
#pragma once

#include <string>
#include <vector>

namespace wavejit::bench {

// What Triton's attention was timed at (bench/triton_anchors.json, written by triton_clock.py).
struct TritonAnchor {
  std::string target;
  int head_dim = 0;
  std::string mask;
  int keys = 0;
  std::string unit;  // of `published`: "% matrix busy" or "TFLOPS"
  double published = 0;
  std::string source;
  double matrix_busy = 0;  // predicted, whole launch, 0 to 1
  double useful = 0;       // the part of the pipes' cycles that exact FLOPs take, whole launch
  std::string tile;
  std::string triton;  // its version
};
const std::vector<TritonAnchor>& triton_anchors();

struct ModelError {
  double lowest = 0;   // predicted ÷ published − 1
  double highest = 0;  // the same
  double mean_square = 0;
  int kernels = 0;
  // Where the figure of a kernel lies if the clock is off by as much as it was for those.
  double low_end(double predicted) const { return predicted / (1 + highest); }
  double high_end(double predicted) const { return predicted / (1 + lowest) < 1 ? predicted / (1 + lowest) : 1; }
};
// Of matrix-busy figures. Runs the anchors once.
const ModelError& model_error();

}  // namespace wavejit::bench
