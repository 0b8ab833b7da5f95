// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The flags of a call (enum wavejit_call_flags) and its scale, which one of them is about.
#pragma once

#include <cstdint>

#include "families/call/failure.h"
#include "families/call/family.h"

namespace wavejit::attention {

// `known`: those that the family's calls have.
families::Result<void> check_flags(std::uint32_t flags, std::uint32_t known, float scale);

// scale · log2 e. A scale of 0 is `otherwise`, unless a flag says that it is meant.
families::Result<float> check_scale(float scale, std::uint32_t flags, float otherwise);

families::Call::WhenMissing when_missing(std::uint32_t flags);

}  // namespace wavejit::attention
