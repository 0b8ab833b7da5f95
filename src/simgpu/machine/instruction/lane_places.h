// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How wide registers are laid out, whatever the target.
#pragma once

#include <cstdint>

namespace wavejit::simgpu {

// Places of a vector register: the most lanes that a wave has on any target. Registers are laid out by it, and what
// minds no lane but its own works on every place, so that its loops vectorise. Which places are lanes, the wave says
// (Wave::lane_count): what crosses lanes or reaches memory asks it.
inline constexpr unsigned lane_places = 64;
inline constexpr std::uint64_t every_place = ~std::uint64_t{0};

}  // namespace wavejit::simgpu
