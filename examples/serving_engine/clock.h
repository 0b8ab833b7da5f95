// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the simulated GPU predicts that launches take. It is a library that wavejit loads; its own functions stand in
// <wavejit/simgpu.h>. A program that is timed on hardware needs none of this.
#pragma once

#include <wavejit/simgpu.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace serving {

struct TimedLaunch {
  std::string kernel;
  std::uint64_t wait = 0;    // for the launch before it
  std::uint64_t cycles = 0;  // from its beginning to its end
};

// The number or word behind a name of one JSON object, not of what is nested in it; throws if there is none.
std::string field_of(std::string_view object, std::string_view name);

// Keeps time while it lives. Make it when the process has an engine on a simulated GPU.
class SimulatedClock {
 public:
  SimulatedClock();
  SimulatedClock(const SimulatedClock&) = delete;
  SimulatedClock& operator=(const SimulatedClock&) = delete;
  ~SimulatedClock();

  // The launches that ended since the last call, with their times.
  std::vector<TimedLaunch> take() const;

 private:
  decltype(&wavejit_simgpu_set_clock) set_clock_ = nullptr;
  decltype(&wavejit_simgpu_take_cycles) take_cycles_ = nullptr;
};

}  // namespace serving
