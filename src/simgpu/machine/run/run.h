// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What every launch does, whoever asked for it.
#pragma once

#include <cstdint>
#include <string>

#include "simgpu/process/config.h"
#include "simgpu/process/status.h"
#include "targets/targets.h"

namespace wavejit::simgpu {

struct Launch;

// Runs the workgroups that the settings choose, on the host's threads; counts, reports and keeps the time.
Status run(Launch& launch);

// What the settings say of arithmetic and of everything else, for a launch on `target`.
void apply_settings(Launch& launch, const Settings& settings);

// Bytes of private memory that a lane gets when its kernel asks for `asked`.
std::uint32_t scratch_bytes(std::uint32_t asked, bool dynamic_stack);

// Why no launch on `target` runs under these settings; empty: they do.
std::string refusal(const Settings& settings, const targets::Target& target);

}  // namespace wavejit::simgpu
