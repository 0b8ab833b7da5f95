// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
// Published measurements that kernels of our own can repeat, and what the clock says to the same kernels.

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace wavejit::simgpu::testing {

// Consistency: the model has taken constants from the same sources. That it gives them back says that it combines them
// as the hardware does, no more.
struct ConsistencyRow {
  std::string target;
  std::string rule;  // one line: what is isolated
  std::string unit;  // "cycles", "bytes a clock"
  double published = 0;
  std::string source;
  std::function<double()> predict;  // negative: it could not be run
};
const std::vector<ConsistencyRow>& consistency_rows();
// The same for sources that others contradict, whose figure the model does not have.
const std::vector<ConsistencyRow>& contradicted_rows();

// No constant was taken from these: tests/simgpu/clock/anchors.json, a frozen list.
struct Anchor {
  std::string kind;  // "whole kernels", "toggles", …
  std::string id;
  std::string target;
  std::string what;
  std::string unit;  // "% matrix busy", "cycles", "ratio", or "% of cycles": what a change adds or saves
  double published = 0;
  std::string source;
  std::optional<double> before;  // what the clock said until it had queues and what thread traces say
  std::string differs;           // what the kernel of the published figure was is not known in full
  // Percent: of the published figure, or of all cycles where it is itself a change.
  double error(double predicted) const;
};
const std::vector<Anchor>& anchors();

struct FormerAnchor {
  std::string what;
  std::string why;  // it is none any more
};
const std::vector<FormerAnchor>& former_anchors();

// By a loop of ours; nothing when it takes another compiler's kernel.
std::optional<double> predict_loop(const std::string& id);

}  // namespace wavejit::simgpu::testing
