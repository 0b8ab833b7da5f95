// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Writes bench/predicted_table.md: what the clock predicts for the steady state of this project's own kernels.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check_or_print.h"
#include "kernels/statics.h"
#include "model_error.h"
#include "predicted_page.h"
#include "steady_run.h"
#include "templates/attention_forward/kernel/ladders.h"

namespace {

using namespace wavejit;
namespace model = simgpu::clock;

constexpr int keys = 8192;

constexpr std::string_view introduction =
    R"(# What the clock predicts for our own kernels

Made by `./dev bench table`. **Predicted, not measured**: [docs/timing-model.md](../docs/timing-model.md) says how far to trust it. One compute unit
as it stands in the middle of a large launch: 8192 keys, no mask, scores that stop growing after the first tile, as many workgroups as fit, every compute
unit of the GPU at the same work, the workgroups of a die at one head. The whole key loop runs; nothing is cut short.

| column | what it says |
|---|---|
| resident | workgroups on the compute unit, and what limits them |
| busy | matrix pipes of the compute unit, middle half of the time |
| range | where busy lies on a GPU if the clock is off by as much as it was, one way or the other, for kernels that others measured |
| whole | busy matrix pipes over the whole life of the workgroups |
| port | vector issue port, whole life |
| beside | the part of the port's other instructions that ran beside a matrix instruction |
| LDS | banks busy, whole life |
| tile | cycles of the compute unit for a tile of 64 keys of a resident workgroup |
| waves waited for | shares of the waves' time, whole life |
)";

constexpr std::string_view epilogue =
    R"(
## How to read it

Published kernels, for comparison: on gfx942 the best one keeps the matrix pipe busy for 72 % of the time at head dim 128 (AITER, counted by others, causal,
16384 keys); on gfx950 the best are at 72 to 83 % at head dim 128 and about 56 % at 64 (derived from throughput, clock unknown). The best of them reach
about 79 % of what their own mix of instructions admits on these ports; some predictions above come closer to that bound than any published kernel does.
Read the range, not the figure: the clock took a loop with the mix of a kernel that others counted at 79 % for 96 %, and others for less than they reached.
Differences between rows are worth more than the rows: they decide between schedules. What toggles change, beside published effects, stands in
[docs/timing-model.md](../docs/timing-model.md). Whole launches of published shapes: [predicted_shapes.md](predicted_shapes.md).
)";

std::string shares(const model::CyclesByCause& waited, std::uint64_t whole) {
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < waited.size(); ++i) order.emplace_back(waited[i], i);
  std::ranges::sort(order, std::greater<>());
  constexpr std::size_t most = 5;
  std::string text;
  for (const auto& [cycles, cause] : std::span(order).first(most)) {
    const double percent = 100 * static_cast<double>(cycles) / static_cast<double>(whole);
    if (percent < 1) break;
    text += fmt::format("{}{} {:.0f}", text.empty() ? "" : ", ", to_text(static_cast<model::Cause>(cause)), percent);
  }
  return text;
}

// Adds a row; false when the kernel has none.
bool row(const attention_forward::ForwardKernel& spec, std::string& text) {
  const auto run = bench::run_steady({.spec = spec, .keys = keys});
  if (!run) {
    fmt::print(stderr, "{}: {}\n", to_text(spec), run.error());
    return false;
  }
  const model::ComputeUnitResult& unit = run->unit;
  model::CyclesByCause waited{};
  std::uint64_t wave_cycles = 0;
  for (const model::WaveResult& wave : unit.waves) {
    wave_cycles += wave.end - wave.start;
    for (std::size_t i = 0; i < waited.size(); ++i) waited[i] += wave.waited[i];
  }
  const double steady = unit.steady_matrix_busy();
  const bench::ModelError& error = bench::model_error();
  text += fmt::format(
      "| {} | {} {}x{} {} d{}{}{}{} | {}, {} | {:.1f} % | {:.0f} to {:.0f} % | {:.1f} % | {:.0f} % | {:.0f} % | {:.0f} % | {:.0f} | {} |\n",
      spec.target, to_text(spec.pipeline), spec.tile_queries, spec.tile_keys, to_text(spec.dtype), spec.head_dim_qk,
      spec.head_dim_v == spec.head_dim_qk ? "" : fmt::format("/{}", spec.head_dim_v),
      spec.stagger ? "" : ", stagger off", spec.raised_priority ? "" : ", setprio off", run->occupancy.workgroups,
      run->occupancy.limit, 100 * steady, 100 * error.low_end(steady), 100 * error.high_end(steady),
      100 * unit.matrix_busy(), 100 * run->port, 100 * run->beside_matrix,
      100 * static_cast<double>(unit.lds_busy) / static_cast<double>(unit.cycles), run->tile_cycles(),
      shares(waited, wave_cycles));
  return true;
}

// This is for people who tune: the page shows nothing of it.
int print_ladders(const bench::PageRequest& request) {
  std::string text;
  for (attention_forward::ForwardKernel spec : tests::steady_state_specs()) {
    if (spec.mask == attention_forward::Mask::causal || !request.asks_for(to_text(spec))) continue;
    for (const attention_forward::Ladder& ladder : attention_forward::ladders(spec.pipeline)) {
      spec.ladder = ladder.name == attention_forward::standard_ladder ? "" : std::string(ladder.name);
      text += fmt::format("{:<24}", ladder.name);
      if (!row(spec, text)) return 1;
    }
  }
  fmt::print("{}", text);
  return 0;
}

}  // namespace

namespace wavejit::bench {

int predict_ladders(const PageRequest& request) { return print_ladders(request); }

int predict_table(const PageRequest& request) {
  std::string text = fmt::format(
      "{}\n| target | kernel | resident | busy | range | whole | port | beside | LDS | tile | waves waited for, % |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n",
      introduction);
  bool whole = true;
  for (const attention_forward::ForwardKernel& spec : tests::steady_state_specs()) {
    if (spec.mask == attention_forward::Mask::causal || !request.asks_for(to_text(spec))) continue;
    whole = row(spec, text) && whole;
    if (spec.pipeline != attention_forward::Pipeline::dualwave) continue;
    attention_forward::ForwardKernel toggled = spec;
    toggled.stagger = false;
    whole = row(toggled, text) && whole;
    toggled = spec;
    toggled.raised_priority = false;
    whole = row(toggled, text) && whole;
  }
  text += epilogue;
  const int same = bench::check_or_print(text, request.file, "./dev bench table");
  return whole ? same : 1;
}

}  // namespace wavejit::bench
