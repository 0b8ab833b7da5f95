// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "anchor_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "outside_kernels.h"

namespace wavejit::bench {
namespace {

using simgpu::testing::Anchor;

// "aiter gfx942 causal 1024" and "triton gfx942 128 causal 16384": matrix-busy percent. "aiter gfx950 128 full 1024
// TFLOPS": throughput at the power limit. "triton gfx950 128" (16384
// keys) and "aiter gfx950 2048": causal beside full, at the power limit.
std::optional<double> predict_outside(const Anchor& anchor) {
  std::istringstream words(anchor.id);
  std::string name;
  std::string target;
  words >> name >> target;
  const auto number = [&] {
    int value = 0;
    words >> value;
    return value;
  };
  if (anchor.unit == "ratio") {
    constexpr int longest = 16384;
    const int value = number();
    const int head_dim = name == "triton" ? value : 128;
    const int keys = name == "triton" ? longest : value;
    const OutsideKernel* const causal = find_outside(name, target, head_dim, "causal", keys);
    const OutsideKernel* const full = find_outside(name, target, head_dim, "full", keys);
    if (causal == nullptr || full == nullptr) return std::nullopt;
    return causal->throughput_at_cap().value_or(causal->useful) / full->throughput_at_cap().value_or(full->useful);
  }
  const bool has_head_dim = name == "triton" || anchor.unit == "TFLOPS";
  const int head_dim = has_head_dim ? number() : 128;
  std::string mask;
  words >> mask;
  const OutsideKernel* const kernel = find_outside(name, target, head_dim, mask, number());
  if (kernel == nullptr) return std::nullopt;
  return anchor.unit == "TFLOPS" ? kernel->tflops_at_cap() : std::optional(100 * kernel->matrix_busy);
}

std::vector<JudgedAnchor> judge() {
  std::vector<JudgedAnchor> judged;
  for (const Anchor& anchor : simgpu::testing::anchors()) {
    auto predicted = simgpu::testing::predict_loop(anchor.id);
    if (!predicted) predicted = predict_outside(anchor);
    if (!predicted) {
      fmt::print(stderr, "anchors.json: nothing predicts '{}'\n", anchor.id);
      std::exit(1);
    }
    judged.push_back({.anchor = &anchor, .predicted = *predicted, .error = anchor.error(*predicted)});
  }
  return judged;
}

std::string key_of(std::string kind) {
  std::ranges::replace(kind, ' ', '_');
  std::ranges::replace(kind, '-', '_');
  return kind;
}

}  // namespace

const std::vector<JudgedAnchor>& judged_anchors() {
  static const std::vector<JudgedAnchor> judged = judge();
  return judged;
}

ModelErrors errors_of(const std::vector<JudgedAnchor>& judged) {
  ModelErrors errors;
  for (const JudgedAnchor& each : judged) {
    std::vector<std::string> kinds = {key_of(each.anchor->kind), "all"};
    if (kinds.front() == "whole_kernels" || kinds.front() == "real_kernels") kinds.emplace_back("quoted");
    for (const std::string& kind : kinds) {
      ModelError& error = errors[kind];
      ++error.anchors;
      error.too_low = std::max(error.too_low, -each.error);
      error.too_high = std::max(error.too_high, each.error);
      error.root_mean_square += each.error * each.error;
    }
  }
  const auto tenths = [](double percent) { return std::round(10 * percent) / 10; };
  for (auto& [kind, error] : errors) {
    error.root_mean_square = tenths(std::sqrt(error.root_mean_square / error.anchors));
    error.too_low = tenths(error.too_low);
    error.too_high = tenths(error.too_high);
  }
  return errors;
}

}  // namespace wavejit::bench
