// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Who sits beside launches (machine/launch/seats.h): the checks as judges, the clock as keeper.
#include "simgpu/machine/launch/seats.h"

#include "simgpu/judges/checks/memory_shadow.h"
#include "simgpu/judges/checks/workgroup_checks.h"
#include "simgpu/judges/clock/launch_clock.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/process/check.h"

namespace wavejit::simgpu {

std::unique_ptr<Judge> seat_judge() { return std::make_unique<checks::WorkgroupChecks>(); }

std::shared_ptr<SharedByJudges> shared_by_judges(const Launch& launch, bool several_threads) {
  if (!includes(launch.settings.checks, Check::races)) return nullptr;
  return std::make_shared<checks::MemoryShadow>(launch, several_threads);
}

std::unique_ptr<Keeper> seat_keeper(Launch& launch, std::uint64_t first, std::uint64_t step, std::uint64_t count) {
  return clock::LaunchClock::begin(launch, first, step, count);
}

}  // namespace wavejit::simgpu
