// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention kernels of others that this tree does not hold, timed by its clock from outside.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::bench {

// bench/triton_anchors.json (written by triton_clock.py) and bench/aiter_anchors.json (aiter_clock.py).
struct OutsideKernel {
  std::string name;  // "triton", "aiter"
  std::string target;
  int head_dim = 0;
  std::string mask;  // "full", "causal", "decode"
  int batch = 0;
  int heads = 0;
  int keys = 0;
  std::string unit;  // of `published`: "% matrix busy", "TFLOPS", "microseconds"
  double published = 0;
  std::string source;
  double cycles = 0;       // predicted; 0: not kept
  double matrix_busy = 0;  // predicted, whole launch, 0 to 1
  double useful = 0;       // the part of the pipes' cycles that exact FLOPs take, whole launch
  // Predicted, at the clock of a GPU at its power limit, as a part of the peak's; nothing where that is not known.
  std::optional<double> throughput_at_cap() const;
};
const std::vector<OutsideKernel>& outside_kernels();
const OutsideKernel* find_outside(const std::string& name, const std::string& target, int head_dim,
                                  const std::string& mask, int keys);

// The engine clock of a GPU at its power limit in GHz, by its busy matrix pipes (0 to 1), never above its peak. Nothing
// where that is not known.
std::optional<double> clock_at_cap(std::string_view target, double matrix_busy);

}  // namespace wavejit::bench
