// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations of matrix instructions.
#include "simgpu/checkers/clock/roofline.h"

#include <gtest/gtest.h>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/device/rooms.h"
#include "targets/targets.h"

namespace wavejit::simgpu::clock {
namespace {

std::uint64_t operations_of(std::string_view mnemonic) {
  Registry registry(*targets::find_target("gfx950"));
  register_rooms(registry);
  const Registry::Entry* entry = registry.find(mnemonic);
  if (entry == nullptr) {
    ADD_FAILURE() << mnemonic;
    return 0;
  }
  Instruction instruction;
  instruction.record = &entry->record;
  return matrix_operations(instruction);
}

TEST(Roofline, OperationsAreTheShapes) {
  EXPECT_EQ(operations_of("v_mfma_f32_32x32x16_bf16"), 2U * 32 * 32 * 16);
  EXPECT_EQ(operations_of("v_mfma_f32_16x16x16_f16"), 2U * 16 * 16 * 16);
  EXPECT_EQ(operations_of("v_mfma_f32_4x4x4_16b_f16"), 2U * 4 * 4 * 4 * 16);
  EXPECT_EQ(operations_of("v_mfma_f64_16x16x4_f64"), 2U * 16 * 16 * 4);
  EXPECT_EQ(operations_of("v_mfma_scale_f32_16x16x128_f8f6f4"), 2U * 16 * 16 * 128);
}

TEST(Roofline, OthersHaveNone) {
  for (const char* name : {"v_add_f32", "v_dot2_f32_f16", "s_nop", "ds_read_b128"}) EXPECT_EQ(operations_of(name), 0U);
  EXPECT_EQ(matrix_operations(Instruction{}), 0U);
}

}  // namespace
}  // namespace wavejit::simgpu::clock
