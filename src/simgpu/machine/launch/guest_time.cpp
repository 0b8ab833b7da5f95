// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/machine/launch/launch.h"

namespace wavejit::simgpu {

GuestTime guest_time(const Wave& wave) {
  Observer* const observer = wave.workgroup != nullptr ? wave.workgroup->launch->observer : nullptr;
  if (observer != nullptr) {
    if (const auto time = observer->time(wave)) return *time;
  }
  return {.cycles = wave.cycles(), .ticks = clock_now()};
}

}  // namespace wavejit::simgpu
