// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Launches that settings rule out before anything of them is queued.
#pragma once

#include <string>

#include "simgpu/config.h"
#include "targets/targets.h"

namespace wavejit::simgpu {

// Why no launch on `target` runs under these settings; empty: they do.
std::string refusal(const Settings& settings, const targets::Target& target);

}  // namespace wavejit::simgpu
