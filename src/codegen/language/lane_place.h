// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a lane stands in a wave that holds a tile (targets/wave_shape.h): the row that it owns, and its group.
#pragma once

#include "codegen/language/kernel.h"
#include "targets/wave_shape.h"

namespace wavejit::language {

inline targets::WaveShape wave_shape(const Kernel& kernel) { return targets::wave_shape(kernel.target()); }

// `lane`: its number in the wave.
inline Value* row_of_lane(Kernel& kernel, Value* lane) {
  return kernel.ir().CreateAnd(lane, kernel.constant(wave_shape(kernel).rows - 1));
}
inline Value* group_of_lane(Kernel& kernel, Value* lane) {
  return kernel.ir().CreateLShr(lane, kernel.constant(wave_shape(kernel).row_bits()));
}

}  // namespace wavejit::language
