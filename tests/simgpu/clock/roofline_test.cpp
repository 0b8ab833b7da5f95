// Operations of matrix instructions, by their names.
#include "simgpu/clock/roofline.h"

#include <gtest/gtest.h>

namespace wavejit::simgpu::clock {
namespace {

TEST(Roofline, OperationsStandInAnInstructionsName) {
  EXPECT_EQ(matrix_operations("v_mfma_f32_32x32x16_bf16"), 2U * 32 * 32 * 16);
  EXPECT_EQ(matrix_operations("v_mfma_f32_16x16x16_f16"), 2U * 16 * 16 * 16);
  EXPECT_EQ(matrix_operations("v_mfma_f32_4x4x4_16b_f16"), 2U * 4 * 4 * 4 * 16);
  EXPECT_EQ(matrix_operations("v_mfma_f64_16x16x4_f64"), 2U * 16 * 16 * 4);
  EXPECT_EQ(matrix_operations("v_mfma_scale_f32_16x16x128_f8f6f4"), 2U * 16 * 16 * 128);
  EXPECT_EQ(matrix_operations("v_smfmac_f32_16x16x32_bf16"), 2U * 16 * 16 * 32);
}

TEST(Roofline, NamesWithoutAShapeAreNoOperations) {
  for (const char* name : {"", "_", "v_add_f32", "v_mfma_f32_32x32_f16", "v_mfma_f32_32x32x_f16",
                           "v_mfma_f32_32x32x8x_f16", "v_x_2x2x2x2_f16"})
    EXPECT_EQ(matrix_operations(name), 0U) << name;
}

}  // namespace
}  // namespace wavejit::simgpu::clock
