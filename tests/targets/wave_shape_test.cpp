// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "targets/wave_shape.h"

#include <gtest/gtest.h>

#include "isa/matrix.h"

namespace wavejit::targets {
namespace {

TEST(WaveShape, IsOfTheWidestInstruction) {
  for (const Target& target : all_targets()) {
    SCOPED_TRACE(target.id);
    const WaveShape shape = wave_shape(target);
    EXPECT_EQ(shape.lanes, target.wave_size);
    if (target.complete) {
      const isa::MatrixInstruction& cost = *isa::find_matrix_instruction(target.matrix.front().id);
      EXPECT_EQ(static_cast<unsigned>(shape.registers()), cost.results_per_lane());
    }
    EXPECT_EQ(1 << shape.row_bits(), shape.rows);
    // A fragment is one instruction or several whole ones.
    EXPECT_EQ(shape.fragment_k() % target.matrix.front().k, 0);
    EXPECT_EQ(shape.groups() * shape.rows, shape.lanes);
  }
}

TEST(WaveShape, OfWavesOf64AndOf32) {
  constexpr WaveShape wide = {.lanes = 64, .rows = 32, .operand_bytes = 16};
  static_assert(wide.groups() == 2 && wide.registers() == 16 && wide.fragment_k() == 16 && wide.row_bits() == 5);
  constexpr WaveShape narrow = {.lanes = 32, .rows = 16, .operand_bytes = 16};
  static_assert(narrow.groups() == 2 && narrow.registers() == 8 && narrow.fragment_k() == 16 && narrow.row_bits() == 4);
  EXPECT_NE(wide, narrow);
}

}  // namespace
}  // namespace wavejit::targets
