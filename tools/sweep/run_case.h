// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One problem of a sweep, on every pipeline and under every wave schedule that was asked for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/checker.h"
#include "tools/simulated_gpu.h"
#include "tools/sweep/list.h"

namespace wavejit::tools::sweep {

struct Schedule {
  wavejit_simgpu_schedule order = WAVEJIT_SIMGPU_IN_ORDER;
  std::optional<wavejit_simgpu_arrival> arrival = {};  // nothing: as for all schedules
  std::uint64_t seed = 1;
  std::string text;
};

struct Pipeline {
  std::string name;  // as asked for; "auto" if not
  wavejit_engine* engine = nullptr;
};

struct Settings {
  std::vector<Pipeline> pipelines;
  std::vector<Schedule> schedules;  // empty: as the environment says
  double sample = 2e9;  // multiplications of a case that runs whole; what is run and compared of a longer one
  std::uint64_t memory_budget = 0;  // bytes
  std::optional<SimulatedGpu> simulated;
  bool own_limits = true;
  bool rocmlir_limits = false;  // beside them, or in their place
};

// Reasons for which a problem is set aside.
inline constexpr const char* over_the_budget = "over the memory budget";
inline constexpr const char* not_supported = "not supported";
inline constexpr const char* same_kernel = "whose kernel ran for another pipeline of this sweep";

enum class Verdict : std::uint8_t { passed, failed, set_aside };

// One problem on one pipeline.
struct Outcome {
  std::size_t line = 0;
  std::string descriptor;
  std::string pipeline;
  std::string kernel_spec;
  std::string key;
  Verdict verdict = Verdict::set_aside;
  std::string reason;        // what did not pass, or why it was set aside
  std::string reason_class;  // of what was set aside: few words, for counting
  Comparison comparison;
  std::int64_t rows_of_problem = 0;
  std::string ran;        // "whole", "5 of 65536 workgroups", "1 of 1151 runs of 256 rows"
  std::string schedules;  // blank-separated
  double compile_ms = 0;  // emit, lower, link, inspect; 0 if the kernel was there
  double run_ms = 0;      // the first run without compiling: launch to end
  double reference_ms = 0;
};

// The outcome of a line that the library does not do.
Outcome refused_outcome(const Refused& line);

// Hands each outcome over as it is known. A failure is one that no other case could survive.
Result<void> run_case(const Entry& entry, const Settings& settings, const std::function<void(Outcome)>& take);

}  // namespace wavejit::tools::sweep
