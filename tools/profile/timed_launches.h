// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches of this process on a simulated GPU that keeps time.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tools/simulated_gpu.h"

namespace wavejit::tools {

// Keeps time while it lives. Only the sampled workgroups run. Leaves the simulated GPU as it was.
class TimedLaunches {
 public:
  // The origin of the kernels: those of others may hold by time alone, and run with their waves abreast where nobody set an order.
  enum class Kernels : std::uint8_t { ours, of_others };
  // `timeline_cycles`: how long a piece of a launch is kept; 0: none. `threads` of the simulator; 0: as it is set.
  TimedLaunches(const SimulatedGpu& gpu, std::uint64_t timeline_cycles, std::uint32_t threads = 0,
                Kernels kernels = Kernels::ours);
  TimedLaunches(const TimedLaunches&) = delete;
  TimedLaunches& operator=(const TimedLaunches&) = delete;
  ~TimedLaunches();

  // What the clock says of the launches since the last call; one that it could not time has `refused`.
  std::vector<nlohmann::json> take() const;
  // A piece of the longest of them, Chrome's trace format.
  std::string take_timeline() const;
  // That ran since this began.
  std::uint64_t workgroups_run() const;

 private:
  const SimulatedGpu* gpu_;
  wavejit_simgpu_settings before_;
  wavejit_simgpu_counters counters_;
};

}  // namespace wavejit::tools
