// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What the environment says of the clock beside how much it looks at (config.h).
#pragma once

namespace wavejit::simgpu {

struct ClockConfig {
  bool warm = false;  // launches find in caches what an equal launch before left (WAVEJIT_SIM_WARM=on)
};

// As config.h reads it.
ClockConfig read_clock_config();

}  // namespace wavejit::simgpu
