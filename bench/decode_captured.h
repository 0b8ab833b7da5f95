// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What bench/predicted_decode.md says of decode steps in graphs.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "boards/board.h"
#include "predicted_launches.h"

namespace wavejit::bench {

// Steps that one launch merges, that two do, and one whose keys stay whole on gfx950.
inline constexpr std::string_view captured_steps[] = {
    "b1 q1 k8192 h8/1 d128",
    "b1 q8 k8192 h8/1 d128 causal",
    "b1 q1 k8192 h8/1 d64 causal sink",
    "b1 q1 k32768 h64/8 d128",
    "b32 q1 k8192 h16/2 d128 layout=paged:16",
    "b64 q1 k8192 h64/8 d128",
};

inline constexpr std::string_view captured_introduction = R"(
### In a graph

Each row has a call by itself and the launch of a graph that captured it. The captured call has its caller's workspace, of the size that `wavejit_call_workspace` answers, and counters of its own.
The clock has the same wait between two nodes of a graph as between two launches, and knows nothing of what the host takes for either. So these rows
say whether a captured call has the same plan: without a workspace it would leave its keys whole ([docs/split-keys.md](../docs/split-keys.md)). The goal is to stay within 2 %.

| target | call | launches | cycles | nodes | cycles captured | captured over not |
|---|---|---|---|---|---|---|
)";

// A step by itself, and in a graph.
struct Captured {
  const boards::Board* target = nullptr;
  std::string_view words;

  std::string descriptor() const { return fmt::format("attention_forward bf16 {}", words); }
  std::vector<LaunchTask> launches() const {
    return {{.target = target, .descriptor = descriptor()},
            {.target = target, .descriptor = descriptor(), .captured = true}};
  }
  static constexpr std::size_t calls = 2;
};

inline std::vector<Captured> all_captured() {
  std::vector<Captured> all;
  for (const boards::Board& target : boards::complete_products())
    for (const std::string_view words : captured_steps) all.push_back({.target = &target, .words = words});
  return all;
}

inline std::string row_text(const Captured& step, std::span<const LaunchPrediction> predictions) {
  const LaunchPrediction& plain = predictions[0];
  const LaunchPrediction& captured = predictions[1];
  return fmt::format("| {} | {} | {} | {} | {} | {} | {:.3f} |\n", step.target->id, step.words, plain.launches,
                     plain.cycles, captured.launches, captured.cycles,
                     static_cast<double>(captured.cycles) / static_cast<double>(plain.cycles));
}

}  // namespace wavejit::bench
