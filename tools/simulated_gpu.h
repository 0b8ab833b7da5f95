// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The simulated GPU of this process, if the library has opened one: wave schedules, chosen workgroups, what it counted
// and what it found wrong (wavejit/simgpu.h). On a real GPU there is none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "wavejit/simgpu.h"

namespace wavejit::tools {

// The workgroups of a launch that the clock looks at: four, each with two others of its die and one of the next.
inline constexpr std::uint32_t sampled_workgroups = 16;

class SimulatedGpu {
 public:
  // After an engine has been made.
  static std::optional<SimulatedGpu> resident();

  // Another function that the library exports, HIP's among them; null if it has none of this name.
  template <typename Function>
  Function find(const char* name) const {
    return reinterpret_cast<Function>(symbol(name));
  }

  wavejit_simgpu_settings settings() const;
  // Ends the program if the library refuses them.
  void set(const wavejit_simgpu_settings& settings) const;
  wavejit_simgpu_counters counters() const;
  // Faults found since the last call, a line each.
  std::string take_reports() const;
  // Records at most `workgroups` workgroups of each launch. 0: no launch is timed.
  void set_clock(std::uint32_t workgroups) const;
  // Launches that are timed find in caches what an equal launch before left there.
  void set_warm(bool warm) const;
  // What the clock found out since the last call, one JSON object a launch and line.
  std::string take_cycles() const;
  // Keeps the first `cycles` cycles of each timed launch as a timeline; 0: none.
  void set_timeline(std::uint64_t cycles) const;
  // The timeline of the last launch that was timed, in Chrome's trace format.
  std::string take_timeline() const;

 private:
  void* symbol(const char* name) const;

  void* library_ = nullptr;
  decltype(&wavejit_simgpu_get_settings) get_settings_ = nullptr;
  decltype(&wavejit_simgpu_set_settings) set_settings_ = nullptr;
  decltype(&wavejit_simgpu_get_counters) get_counters_ = nullptr;
  decltype(&wavejit_simgpu_take_reports) take_reports_ = nullptr;
  decltype(&wavejit_simgpu_set_clock) set_clock_ = nullptr;
  decltype(&wavejit_simgpu_set_warm) set_warm_ = nullptr;
  decltype(&wavejit_simgpu_take_cycles) take_cycles_ = nullptr;
  decltype(&wavejit_simgpu_set_timeline) set_timeline_ = nullptr;
  decltype(&wavejit_simgpu_take_timeline) take_timeline_ = nullptr;
};

}  // namespace wavejit::tools
