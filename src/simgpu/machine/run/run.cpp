// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every launch does, whoever asked for it: settings applied, workgroups run on the host's threads, findings
// reported.
#include "simgpu/machine/run/run.h"

#include <algorithm>
#include <cstdio>
#include <format>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>

#include "isa/matrix.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/launch/seats.h"
#include "simgpu/machine/numerics/noise.h"
#include "simgpu/machine/run/turns.h"
#include "simgpu/machine/run/worker_pool.h"
#include "simgpu/process/ledger.h"
#include "simgpu/process/process.h"
#include "simgpu/process/symbol_names.h"
#include "targets/targets.h"

namespace wavejit::simgpu {

// How matrix instructions add and what transcendental ones give.
void apply_settings(Launch& launch, const Settings& settings) {
  launch.settings = settings;
  // Time is kept of both or of neither.
  if (settings.schedule == Schedule::timed) {
    launch.settings.arrival = Arrival::timed;
  } else if (settings.arrival == Arrival::timed) {
    launch.settings.arrival = Arrival::early;
  }
  if (settings.checks != 0) {
    launch.silent_checks = silent_checks(Process::instance().config().ignored, launch.kernel->name);
  }
  if (settings.matrix == MatrixSums::cdna3) launch.summation = matrix::cdna3_summation();
  if (settings.matrix == MatrixSums::seeded) launch.summation = matrix::seeded_summation(settings.matrix_seed);
  if (settings.transcendentals == Transcendentals::seeded) {
    // Any number but the one that means nearest.
    launch.transcendentals_key = static_cast<std::uint32_t>(mix(settings.transcendentals_seed + 1)) | 1u;
  }
}

// What recursive or indirect calls may use per lane when the compiler could not bound it (HIP's default stack limit is
// 1 KiB; the runtime rounds up generously, and so do we).
std::uint32_t scratch_bytes(std::uint32_t asked, bool dynamic_stack) {
  constexpr std::uint32_t dynamic_stack_bytes = 16 * 1024;
  return (asked + (dynamic_stack ? dynamic_stack_bytes : 0) + 15) / 16 * 16;
}

// Nobody has published how the matrix units of other targets add. A kernel that was to be held against silicon must not
// end well because it was held against a guess.
std::string refusal(const Settings& settings, const targets::Target& target) {
  if (settings.matrix != MatrixSums::cdna3 || isa::matrix_pipe(target).sums_published) return {};
  return std::format("WAVEJIT_SIM_MATRIX=cdna3 has no model of {}; sequential and seeded:<number> work there",
                     target.id);
}

namespace {

// Tells once for each kernel that its result depended on an order that no barrier and no wait enforces.
void say_order_matters(const Launch& launch, const std::vector<Finding>& findings) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::scoped_lock lock(mutex);
  constexpr std::size_t most_kernels = 1000;
  if (said.size() >= most_kernels || !said.insert(launch.kernel->name).second) return;
  const std::string line = std::format(
      "wavejit simulated GPU: kernel {}: {} pairs of LDS accesses are not ordered by anything; "
      "its waves ran in the order of the clock (WAVEJIT_SIM_SCHEDULE=timed), and its result depended on it. "
      "First: {}: {}. --check races,waits reports all\n",
      demangled(launch.kernel->name), findings.size(), findings.front().instruction, findings.front().text);
  static_cast<void>(std::fputs(line.c_str(), stderr));
}

}  // namespace

Status run(Launch& launch) {
  const Settings& settings = launch.settings;
  const std::uint64_t all = std::uint64_t{launch.workgroups[0]} * launch.workgroups[1] * launch.workgroups[2];
  const std::uint64_t step = std::max<std::uint64_t>(settings.workgroup_step, 1);
  std::uint64_t count = settings.workgroup_first >= all ? 0 : ((all - settings.workgroup_first - 1) / step) + 1;
  if (settings.workgroup_count != 0) count = std::min(count, settings.workgroup_count);
  const unsigned threads = settings.threads != 0 ? settings.threads : std::max(1u, std::thread::hardware_concurrency());
  launch.shared_by_checkers = shared_by_checkers(launch, threads > 1 && count > 1);
  const std::unique_ptr<Keeper> keeper = seat_keeper(launch, settings.workgroup_first, step, count);
  if (keeper != nullptr && keeper->recorder() != nullptr) launch.observer = keeper->recorder();
  const unsigned workers = keeper != nullptr && keeper->in_turn() ? 1 : threads;
  Counters& counters = Process::instance().counters();
  counters.launches.fetch_add(1, std::memory_order_relaxed);
  const auto run_some = [&](std::uint64_t number, std::span<const std::uint64_t> ids) {
    const auto id_of = [&](std::uint64_t i) { return ids.empty() ? settings.workgroup_first + (i * step) : ids[i]; };
    WorkerPool::instance().run(number, workers,
                               [&](WorkgroupRunner& runner, std::uint64_t i, const WorkerPool::Take& take) {
                                 return run_in_turns(launch, runner, i, take, id_of);
                               });
  };
  const std::span<const std::uint64_t> sampled =
      settings.sampled_only && keeper != nullptr ? keeper->needed() : std::span<const std::uint64_t>();
  const bool samples = !sampled.empty();
  run_some(samples ? sampled.size() : count, sampled);
  while (samples && !launch.failed()) {
    const std::vector<std::uint64_t> more = keeper->widen();
    if (more.empty()) break;
    run_some(more.size(), more);
  }
  if (keeper != nullptr && !launch.failed()) keeper->finish();
  Ledger& ledger = Ledger::instance();
  ledger.launched({.kernel = launch.kernel->name,
                   .workgroups = samples ? sampled.size() : count,
                   .time = launch.time,
                   .not_timed = launch.not_timed,
                   .doubt = launch.doubt});
  const auto report = [&](const std::string& check, const std::string& line, const std::string& json) {
    Process::instance().report(line, json);
    ledger.found(launch.kernel->name, check, line, json);
  };
  if (launch.shared_by_checkers != nullptr) launch.shared_by_checkers->finish(launch);
  std::vector<Finding> findings = launch.chosen_findings();
  if (launch.watches_order && !findings.empty()) {
    say_order_matters(launch, findings);
    findings.clear();
  }
  std::vector<std::string> lines;
  for (const Finding& finding : findings) {
    lines.push_back(finding.line());
    report(finding.check, lines.back(), finding.json());
  }
  if (launch.failed()) report("fault", launch.failure, launch.failure_json);
  // Whoever hears of it may end the program.
  if (launch.failed() || !findings.empty()) ledger.publish(false);
  if (launch.failed()) return {launch.failure_code, launch.failure, std::move(lines)};
  if (findings.empty()) return {};
  std::string first = std::move(lines.front());
  lines.erase(lines.begin());
  return {hip_error_launch_failure, std::move(first), std::move(lines)};
}

}  // namespace wavejit::simgpu
