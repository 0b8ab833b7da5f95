// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// From the lines of a list to kernels: what prebuild compiles and verifies. Touches no file.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "families/kernel/kernel_spec.h"
#include "runtime/offline/prebuild.h"
#include "runtime/settings/config.h"
#include "runtime/settings/failure.h"

namespace wavejit::runtime {

// A line that leads to no kernel.
struct RefusedLine {
  std::size_t line = 0;
  std::string target;  // empty: it is no descriptor
  Failure why;
};

struct PrebuildPlan {
  std::vector<families::KernelSpec> specs;  // each once, in the order in which the lines need them
  std::vector<RefusedLine> refused;
};

// Fails for what is wrong with the request itself: targets, shard.
Result<PrebuildPlan> plan_prebuild(const Config& config, const PrebuildRequest& request);

}  // namespace wavejit::runtime
