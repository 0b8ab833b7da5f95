// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Attention kernels of others that this tree does not hold, timed by its clock from outside.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::bench {

// Added for the events around a launch. Others measured 3.2 to 3.6 microseconds of a launch without work on an MI300X,
// between two events; this clock predicts 0.54 of that, and the rest of the middle is this (docs/silicon-score.md, whose
// script silicon_page.py reads it here).
inline constexpr double event_microseconds = 2.9;

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
  double warm_cycles = 0;  // the same, when the last level cache has all that it reads; 0: not kept
  double matrix_busy = 0;  // predicted, whole launch, 0 to 1
  double steady_busy = 0;  // predicted, the middle half of a compute unit's time
  double useful = 0;       // the part of the pipes' cycles that exact FLOPs take, whole launch
  // Whether the published time lies between two events around each call.
  bool between_events() const;
  // Predicted, at the clock of a GPU at its power limit, as a part of the peak's; nothing where that is not known.
  // `events`: microseconds that are added where the published time lies between events.
  std::optional<double> throughput_at_cap(double events = event_microseconds) const;
  std::optional<double> tflops_at_cap(double events = event_microseconds) const;
};
const std::vector<OutsideKernel>& outside_kernels();
// Geometric mean of predicted over published throughput at the power limit of all of them whose throughput is
// published.
double bias_at_cap();
const OutsideKernel* find_outside(const std::string& name, const std::string& target, int head_dim,
                                  const std::string& mask, int keys);

// GHz by which predicted cycles become the time of a GPU at its power limit: its engine clock by the busy matrix pipes
// of the kernel's loop (0 to 1), never above its peak, and what of that arrives. Nothing where that is not known.
std::optional<double> clock_at_cap(std::string_view target, double steady_busy);

}  // namespace wavejit::bench
