// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The whole examination of a device, in rising order of risk.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tools/doctor/finding.h"
#include "tools/doctor/gpu.h"
#include "tools/engine_options.h"
#include "tools/simulated_gpu.h"

namespace wavejit::tools::doctor {

// Which questions are asked.
struct Choice {
  std::vector<std::string> only;  // names, or how they begin; empty: all
  int most_risk = 5;
  bool wants(std::string_view name, int risk) const;
};

// One question: what it is, and how it is put.
struct Question {
  Finding finding;  // without an answer
  std::function<Finding(Finding)> ask;
};

// What the questions are put to. `simulated` may be missing; then answers are told and not compared.
struct Subjects {
  const Gpu* gpu = nullptr;
  const Gpu* simulated = nullptr;
  EngineOptions options;
};

// facts.cpp: what HIP says of the device, beside what the target table says.
std::vector<Question> fact_questions(const Subjects& subjects);
// probes.cpp: kernels of a few instructions.
std::vector<Question> probe_questions(const Subjects& subjects);
// calls.cpp: whole calls against float64 and against the simulated GPU's bits.
std::vector<Question> call_questions(const Subjects& subjects);
// timing.cpp: launches against the clock.
std::vector<Question> timing_questions(const Subjects& subjects);

// Everything, by risk.
std::vector<Question> all_questions(const Subjects& subjects);

// While it lives, the simulated GPU of this process computes as it is built, whatever its environment says.
class AsBuilt {
 public:
  AsBuilt();
  ~AsBuilt();
  AsBuilt(const AsBuilt&) = delete;
  AsBuilt& operator=(const AsBuilt&) = delete;

 private:
  std::optional<SimulatedGpu> gpu_;
  wavejit_simgpu_settings before_{};
};

}  // namespace wavejit::tools::doctor
