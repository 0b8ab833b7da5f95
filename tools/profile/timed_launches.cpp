// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/profile/timed_launches.h"

#include "tools/profile/launch_text.h"

namespace wavejit::tools {

TimedLaunches::TimedLaunches(const SimulatedGpu& gpu, std::uint64_t timeline_cycles, std::uint32_t threads,
                             Kernels kernels)
    : gpu_(&gpu), before_(gpu.settings()), counters_(gpu.counters()) {
  wavejit_simgpu_settings settings = before_;
  settings.sampled_only = 1;
  if (threads != 0) settings.threads = threads;
  const bool has_no_order = settings.schedule == WAVEJIT_SIMGPU_IN_ORDER &&
                            settings.arrival == WAVEJIT_SIMGPU_ARRIVES_EARLY && settings.checks == 0;
  if (kernels == Kernels::of_others && has_no_order) settings.schedule = WAVEJIT_SIMGPU_TIMED;
  gpu_->set(settings);
  gpu_->set_clock(sampled_workgroups);
  gpu_->set_timeline(timeline_cycles);
}

TimedLaunches::~TimedLaunches() {
  gpu_->set_clock(0);
  gpu_->set_timeline(0);
  gpu_->set(before_);
}

std::vector<nlohmann::json> TimedLaunches::take() const { return launches_of(gpu_->take_cycles()); }

std::string TimedLaunches::take_timeline() const { return gpu_->take_timeline(); }

std::uint64_t TimedLaunches::workgroups_run() const { return gpu_->counters().workgroups - counters_.workgroups; }

}  // namespace wavejit::tools
