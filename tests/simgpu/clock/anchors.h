// Published measurements that kernels of our own can repeat, and what the clock says to the same kernels.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace wavejit::simgpu::testing {

struct Anchor {
  std::string target;
  std::string rule;  // one line: what is isolated
  std::string unit;  // "cycles", "bytes a clock", "% matrix busy"
  double published = 0;
  std::string source;
  std::function<double()> predict;  // negative: it could not be run
  // What the kernel of the published figure was is not known in full: ours is like it in what is said.
  std::string difference = {};
  // One of two orders between which the published kernel's lies: no prediction by itself.
  bool bound = false;
};

// Rules whose constants the model has taken from the same sources: that it reproduces them says that it combines them
// as the hardware does.
const std::vector<Anchor>& fitted_anchors();
// Those that no constant was taken from.
const std::vector<Anchor>& held_out_anchors();

// What a change to a published kernel changed, and what the same change does to our loop of its mix. In % of time.
struct Effect {
  std::string change;
  std::string published;
  std::string source;
  std::function<double()> predict;  // % fewer cycles
};
const std::vector<Effect>& published_effects();

}  // namespace wavejit::simgpu::testing
