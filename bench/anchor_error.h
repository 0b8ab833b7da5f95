// Whole kernels of others whose figures they published, and how far the clock is off for them today.
#pragma once

#include <string>
#include <vector>

#include "model_error.h"

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

// Of matrix-busy figures. Runs the anchors.
ModelError anchor_error();

}  // namespace wavejit::bench
