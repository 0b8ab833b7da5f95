// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The flags of a call (enum wavejit_call_flags) and its scale, which one of them is about.
#pragma once

#include <cstdint>

#include "families/call/failure.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

// `known`: those that the family's calls have.
families::Result<void> check_flags(std::uint32_t flags, std::uint32_t known, float scale);

// A scale of 0 is `otherwise`, unless a flag says that it is meant.
constexpr float meant_scale(float scale, std::uint32_t flags, float otherwise) {
  return scale != 0 || (flags & WAVEJIT_SCALE_IS_ZERO) != 0 ? scale : otherwise;
}

// meant_scale · log2 e, finite.
families::Result<float> check_scale(float scale, std::uint32_t flags, float otherwise);

// In how many launches runs of keys are walked and merged: said, or the plan's to choose.
enum class Launches : std::uint8_t { planned, one, two };
constexpr Launches launches_of(std::uint32_t flags) {
  if ((flags & WAVEJIT_ONE_LAUNCH) != 0) return Launches::one;
  return (flags & WAVEJIT_TWO_LAUNCHES) != 0 ? Launches::two : Launches::planned;
}

}  // namespace wavejit::attention
