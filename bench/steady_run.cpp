// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "steady_run.h"

#include <array>
#include <cstdint>
#include <memory>

#include "boards/board.h"
#include "kernels/statics.h"
#include "targets/targets.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "timing/timing.h"

namespace wavejit::bench {

namespace model = simgpu::clock;

double SteadyRun::tile_cycles() const { return static_cast<double>(unit.cycles) / tiles / occupancy.workgroups; }

double SteadyRun::tile_matrix_cycles() const {
  double busy = 0;
  for (const model::SimdResult& simd : unit.simds) busy += static_cast<double>(simd.matrix_busy);
  return busy / static_cast<double>(unit.simds.size()) / tiles / occupancy.workgroups;
}

double SteadyRun::tile_lds_cycles() const { return static_cast<double>(unit.lds_busy) / tiles / occupancy.workgroups; }

std::expected<SteadyRun, std::string> run_steady(const SteadyRequest& request) {
  const attention_forward::ForwardKernel& spec = request.spec;
  const boards::Board& target = *boards::find_product(spec.target);
  const timing::Timing& timing = *timing::find_timing(target);
  const tests::CompiledKernel kernel = tests::known_kernel(spec);
  if (!kernel.error.empty()) return std::unexpected(kernel.error);
  const std::array<std::uint64_t, 1> first = {0};
  model::TraceRecorder recorder(timing, first);
  SteadyRun run;
  run.tiles = request.keys / spec.tile_keys;
  std::shared_ptr<simgpu::Module> module;  // traces point into it
  const tests::Scores scores = request.growing_scores ? tests::Scores::growing : tests::Scores::zero;
  if (std::string error = tests::run_one_workgroup(spec, kernel, run.tiles, recorder, &module, scores); !error.empty())
    return std::unexpected(std::move(error));

  const auto geometry = attention_forward::launch_geometry(spec, *targets::find_target(spec.target), 1, 1,
                                                           static_cast<std::uint32_t>(spec.tile_queries));
  run.occupancy = model::occupancy_of(target, static_cast<unsigned>(kernel.facts.vgprs),
                                      static_cast<unsigned>(kernel.facts.lds_bytes), geometry.threads / 64);
  if (run.occupancy.workgroups == 0) return std::unexpected("no workgroup fits");
  model::Program program(timing, target);
  model::ComputeUnitRequest unit;
  unit.resident = run.occupancy.workgroups;
  unit.workgroups.assign(run.occupancy.workgroups, &recorder.traces().front());
  unit.neighbours.compute_units = target.compute_units;
  unit.neighbours.busy_units_of_die = static_cast<unsigned>(target.compute_units / target.xcds);
  unit.neighbours.compute_units_of_die = unit.neighbours.busy_units_of_die;
  if (request.common_head) {
    const double of_die = unit.neighbours.compute_units_of_die * run.occupancy.workgroups;
    for (const model::WaveTrace& wave : recorder.traces().front().waves)
      for (const std::uint64_t line : wave.lines)
        unit.neighbours.sharers[line] = {.of_die = of_die, .of_unit = run.occupancy.workgroups, .one_for_copies = true};
  } else {
    // A head has workgroups on all dies.
    for (const model::WaveTrace& wave : recorder.traces().front().waves)
      for (const std::uint64_t line : wave.lines) unit.neighbours.dies[line] = target.xcds;
  }
  auto result = model::run_compute_unit(program, unit);
  if (!result) return std::unexpected(result.error());
  run.unit = std::move(*result);

  std::uint64_t port = 0;
  std::uint64_t beside = 0;
  std::uint64_t matrix_issue = 0;
  for (const model::SimdResult& simd : run.unit.simds) {
    port += simd.port_busy;
    beside += simd.overlapped;
  }
  for (std::size_t i = 0; i < run.unit.steps.size(); ++i) {
    if (program.steps()[i].kind == model::Kind::matrix)
      matrix_issue += run.unit.steps[i].issued * static_cast<std::uint64_t>(program.steps()[i].port_cycles);
  }
  run.port = static_cast<double>(port) / (static_cast<double>(run.unit.cycles * run.unit.simds.size()));
  run.beside_matrix = static_cast<double>(beside) / static_cast<double>(port - matrix_issue);
  return run;
}

}  // namespace wavejit::bench
