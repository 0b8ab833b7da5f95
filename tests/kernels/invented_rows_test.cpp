// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Rows that no table has, over processors that LLVM has: another wave size, another shape of the matrix instruction.
// Whatever the kernel language emits for them comes from the row.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include <array>
#include <string>

#include "codegen/language/buffer.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lane_place.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "codegen/language/synchronize.h"

namespace wavejit::language {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// What a kernel of two waves makes of a product, a wait, a barrier, the other half of a wave and a row's sum.
std::string text_of(const targets::Target& row, Element element, int* registers) {
  llvm::LLVMContext context;
  Kernel kernel(context, row, {.name = "k", .threads = 2 * row.wave_size, .waves_per_simd = 2, .argument_bytes = 32});
  const int rows = wave_shape(kernel).rows;
  const MatrixUnit matrix(kernel, rows, rows, element);
  Value* dwords = llvm::Constant::getNullValue(kernel.vector(kernel.i32(), OperandLayout::dwords));
  const Accumulator sum = matrix.mma(matrix.operand_a(dwords, KOrder::contiguous),
                                     matrix.operand_b(dwords, KOrder::contiguous), matrix.zeros());
  *registers = sum.layout.registers();
  wait_for_lds(kernel);
  barrier(kernel);
  both_halves(kernel, kernel.constant(1.0F));
  const auto module = kernel.finish();
  if (!module) return module.error();
  std::string text;
  llvm::raw_string_ostream(text) << **module;
  return text;
}

TEST(InventedRows, WavesOf32ThatHaveHalvesOnly) {
  constexpr std::array<targets::MatrixInstruction, 1> halves = {
      {{targets::MatrixId::wmma_f32_16x16x16_f16, 16, 16, 16, Element::fp16, "llvm.amdgcn.wmma.f32.16x16x16.f16"}}};
  targets::Target row = *targets::find_target("gfx1200");
  row.matrix = halves;
  row.permlanex16 = false;
  int registers = 0;
  const std::string text = text_of(row, Element::fp16, &registers);
  EXPECT_EQ(registers, 8);
  EXPECT_THAT(text, AllOf(HasSubstr("llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v8f16"),
                          HasSubstr("call void @llvm.amdgcn.s.wait.dscnt(i16 0)"), HasSubstr("llvm.amdgcn.ds.bpermute"),
                          HasSubstr("\"target-cpu\"=\"gfx1200\""), Not(HasSubstr("s.waitcnt("))));
  EXPECT_THAT(text_of(row, Element::bf16, &registers), HasSubstr("has no matrix instruction of 16x16"));
}

TEST(InventedRows, SmallSquaresOver64Lanes) {
  constexpr std::array<targets::MatrixInstruction, 1> small = {
      {{targets::MatrixId::f32_16x16x16_bf16_1k, 16, 16, 16, Element::bf16, "llvm.amdgcn.mfma.f32.16x16x16bf16.1k"}}};
  targets::Target row = *targets::find_target("gfx90a");
  row.matrix = small;
  int registers = 0;
  const std::string text = text_of(row, Element::bf16, &registers);
  EXPECT_EQ(registers, 4);
  EXPECT_THAT(text, AllOf(HasSubstr("llvm.amdgcn.mfma.f32.16x16x16bf16.1k"), HasSubstr("llvm.amdgcn.s.waitcnt("),
                          HasSubstr("\"target-cpu\"=\"gfx90a\""), Not(HasSubstr("wmma"))));
}

TEST(InventedRows, TheOtherHalfIsOneInstructionWhereTheRowSaysSo) {
  int registers = 0;
  EXPECT_THAT(text_of(*targets::find_target("gfx1201"), Element::bf16, &registers),
              AllOf(HasSubstr("llvm.amdgcn.permlanex16"), HasSubstr("llvm.amdgcn.wmma.f32.16x16x16.bf16.v8f32.v8i16"),
                    Not(HasSubstr("ds.bpermute"))));
}

// Barriers in two, and loads that turn blocks: where the row has them, else refused by name.
TEST(InventedRows, BarriersInTwoAndTransposingLoadsAreOfTheRow) {
  const auto text_of_both = [](const targets::Target& row) {
    llvm::LLVMContext context;
    Kernel kernel(context, row, {.name = "k", .threads = 2 * row.wave_size, .waves_per_simd = 2, .argument_bytes = 32});
    pin(kernel, {load_transposed(kernel, kernel.argument_i64(0), kernel.lane(), 64)});
    arrive(kernel);
    await_others(kernel);
    const auto module = kernel.finish();
    if (!module) return module.error();
    std::string text;
    llvm::raw_string_ostream(text) << **module;
    return text;
  };
  targets::Target row = *targets::find_target("gfx1200");
  EXPECT_THAT(text_of_both(row), AllOf(HasSubstr("llvm.amdgcn.global.load.tr.b128.v8i16"),
                                       HasSubstr("call void @llvm.amdgcn.s.barrier.signal(i32 -1)"),
                                       HasSubstr("call void @llvm.amdgcn.s.barrier.wait(i16 -1)")));
  row.transposing_load = false;
  EXPECT_EQ(text_of_both(row), "a transposing load needs global_load_tr_b128, which gfx1200 does not have");
  row.transposing_load = true;
  row.split_barriers = false;
  EXPECT_EQ(text_of_both(row), "a barrier in two needs s_barrier_signal, which gfx1200 does not have");
}

}  // namespace
}  // namespace wavejit::language
