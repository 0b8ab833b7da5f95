// Prints bench/predicted_table.md: what the clock predicts for the steady state of this project's own kernels.
//
//   wavejit_predicted_table [<word>]   only kernels whose spec contains the word
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/statics.h"
#include "simgpu/clock/compute_unit.h"
#include "simgpu/clock/occupancy.h"
#include "targets/targets.h"
#include "templates/attention_forward/parameters.h"
#include "timing/timing.h"

namespace {

using namespace wavejit;
namespace model = simgpu::clock;

constexpr int keys = 8192;

constexpr std::string_view introduction =
    R"(# What the clock predicts for our own kernels

Made by `wavejit_predicted_table`. **Predicted, not measured**: [docs/timing-model.md](../docs/timing-model.md) says how far to trust it. One compute unit
as it stands in the middle of a large launch: 8192 keys, no mask, scores that stop growing after the first tile, as many workgroups as fit, every compute
unit of the GPU at the same work, the workgroups of a die at one head. The whole key loop runs; nothing is cut short.

| column | what it says |
|---|---|
| resident | workgroups on the compute unit, and what limits them |
| busy | matrix pipes of the compute unit, middle half of the time |
| whole | the same over the whole life of the workgroups |
| port | vector issue port, whole life |
| beside | of the port's other instructions, the part that ran beside a matrix instruction |
| LDS | banks busy, whole life |
| tile | cycles of the compute unit for a tile of 64 keys of a resident workgroup |
| waves waited for | shares of the waves' time, whole life |
)";

constexpr std::string_view epilogue =
    R"(
## How to read it

Published kernels, for comparison: on gfx942 the best one keeps the matrix pipe busy for 72 % of the time at head dim 128 (AITER, measured, causal,
16384 keys); on gfx950 the best are at 72 to 83 % at head dim 128 and about 56 % at 64 (derived from throughput, clock unknown). The best of them reach
about 79 % of what their own mix of instructions admits on these ports; predictions above come closer to that bound than any published kernel does.
That is a warning about the model, which is optimistic where waves meet (barriers, LDS bursts, waves drifting into phase), and no reason to expect
these figures of a GPU. Differences between rows are worth more than the rows: they decide between schedules.

Published effects of what is toggled here: raising the priority helps around softmax and costs 0.5 to 1.9 % around plain matrix runs; for the stagger there
is no published figure.
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

int row(const attention_forward::KernelSpec& spec) {
  const targets::Target& target = *targets::find_target(spec.target);
  const timing::Timing& timing = *timing::find_timing(target);
  const tests::CompiledKernel kernel = tests::compile_kernel(spec);
  const auto fail = [&](const std::string& error) {
    fmt::print(stderr, "{}: {}\n", to_text(spec), error);
    return 1;
  };
  if (!kernel.error.empty()) return fail(kernel.error);
  const std::array<std::uint64_t, 1> first = {0};
  model::TraceRecorder recorder(timing, first);
  const int tiles = keys / spec.tile_keys;
  std::shared_ptr<simgpu::Module> module;  // traces point into it
  if (std::string error = tests::run_one_workgroup(spec, kernel, tiles, recorder, &module); !error.empty())
    return fail(error);

  const auto geometry = attention_forward::launch_geometry(spec, 1, 1, static_cast<std::uint32_t>(spec.tile_queries));
  const model::Occupancy occupancy =
      model::occupancy_of(target, static_cast<unsigned>(kernel.facts.vgprs),
                          static_cast<unsigned>(kernel.facts.lds_bytes), geometry.threads / 64);
  if (occupancy.workgroups == 0) return fail("no workgroup fits");
  model::Program program(timing, target);
  model::ComputeUnitRequest request;
  request.resident = occupancy.workgroups;
  request.workgroups.assign(occupancy.workgroups, &recorder.traces().front());
  request.neighbours.compute_units = static_cast<unsigned>(target.compute_units);
  request.neighbours.compute_units_of_die = static_cast<unsigned>(target.compute_units / target.xcds);
  request.neighbours.sharers = request.neighbours.compute_units_of_die * occupancy.workgroups;
  for (const model::WaveTrace& wave : recorder.traces().front().waves)
    request.neighbours.shared.insert(wave.lines.begin(), wave.lines.end());
  const auto unit = model::run_compute_unit(program, request);
  if (!unit) return fail(unit.error());

  model::CyclesByCause waited{};
  std::uint64_t wave_cycles = 0;
  for (const model::WaveResult& wave : unit->waves) {
    wave_cycles += wave.end - wave.start;
    for (std::size_t i = 0; i < waited.size(); ++i) waited[i] += wave.waited[i];
  }
  std::uint64_t port = 0;
  std::uint64_t beside = 0;
  std::uint64_t matrix_issue = 0;
  for (const model::SimdResult& simd : unit->simds) {
    port += simd.port_busy;
    beside += simd.overlapped;
  }
  for (std::size_t i = 0; i < unit->steps.size(); ++i) {
    if (program.steps()[i].kind == model::Kind::matrix)
      matrix_issue += unit->steps[i].issued * static_cast<std::uint64_t>(program.steps()[i].port_cycles);
  }
  const auto cycles = static_cast<double>(unit->cycles);
  const double simd_cycles = cycles * static_cast<double>(unit->simds.size());
  fmt::print(
      "| {} | {} {}x{} {} d{}{}{}{} | {}, {} | {:.1f} % | {:.1f} % | {:.0f} % | {:.0f} % | {:.0f} % | {:.0f} | {} |\n",
      spec.target, to_text(spec.pipeline), spec.tile_queries, spec.tile_keys, to_text(spec.dtype), spec.head_dim_qk,
      spec.head_dim_v == spec.head_dim_qk ? "" : fmt::format("/{}", spec.head_dim_v),
      spec.stagger ? "" : ", stagger off", spec.raised_priority ? "" : ", setprio off", occupancy.workgroups,
      occupancy.limit, 100 * unit->steady_matrix_busy(), 100 * unit->matrix_busy(),
      100 * static_cast<double>(port) / simd_cycles,
      100 * static_cast<double>(beside) / static_cast<double>(port - matrix_issue),
      100 * static_cast<double>(unit->lds_busy) / cycles, cycles / tiles / occupancy.workgroups,
      shares(waited, wave_cycles));
  std::fflush(stdout);
  return 0;
}

}  // namespace

int main(int count, char** values) {
  if (count > 2) {
    fmt::print(stderr, "usage: {} [<word>]\n", values[0]);
    return 2;
  }
  const std::string_view word = count == 2 ? values[1] : "";
  fmt::print(
      "{}\n| target | kernel | resident | busy | whole | port | beside | LDS | tile | waves waited for, % |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n",
      introduction);
  int failed = 0;
  for (const attention_forward::KernelSpec& spec : tests::steady_state_specs()) {
    if (spec.mask == attention_forward::Mask::causal || !to_text(spec).contains(word)) continue;
    failed |= row(spec);
    if (spec.pipeline != attention_forward::Pipeline::dualwave) continue;
    attention_forward::KernelSpec toggled = spec;
    toggled.stagger = false;
    failed |= row(toggled);
    toggled = spec;
    toggled.raised_priority = false;
    failed |= row(toggled);
  }
  fmt::print("{}", epilogue);
  return failed;
}
