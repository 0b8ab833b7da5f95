// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What sits beside launches (machine/launch/seats.h): the checks, and the clock as keeper of the time.
#include "simgpu/machine/launch/seats.h"

#include "simgpu/checkers/checks/memory_shadow.h"
#include "simgpu/checkers/checks/workgroup_checks.h"
#include "simgpu/checkers/clock/launch_clock.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/process/check.h"

namespace wavejit::simgpu {

std::unique_ptr<Checker> seat_checker() { return std::make_unique<checks::WorkgroupChecks>(); }

std::shared_ptr<SharedByCheckers> shared_by_checkers(const Launch& launch, bool several_threads) {
  if (!includes(launch.settings.checks, Check::races)) return nullptr;
  return std::make_shared<checks::MemoryShadow>(launch, several_threads);
}

std::unique_ptr<Keeper> seat_keeper(Launch& launch, std::uint64_t first, std::uint64_t step, std::uint64_t count) {
  return clock::LaunchClock::begin(launch, first, step, count);
}

}  // namespace wavejit::simgpu
