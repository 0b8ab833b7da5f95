// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The kernel language refuses what would be a silent bug or a crash of the backend, and says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/Support/raw_ostream.h>

#include <string>

#include "codegen/language/buffer.h"
#include "codegen/language/convert.h"
#include "codegen/language/cross_lane.h"
#include "codegen/language/lds.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "templates/attention_forward/emit/emit.h"
#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/words.h"

namespace wavejit::language {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Language : public ::testing::Test {
 protected:
  const targets::Target& gfx942_ = *targets::find_target("gfx942");
  const targets::Target& gfx950_ = *targets::find_target("gfx950");
  llvm::LLVMContext context_;

  Kernel kernel_for(const targets::Target& target) {
    return Kernel(context_, target, {.name = "k", .threads = 256, .waves_per_simd = 2, .argument_bytes = 32});
  }
  static Value* dwords(Kernel& kernel) { return llvm::Constant::getNullValue(kernel.vector(kernel.i32(), 4)); }
  static std::string reason(Kernel& kernel) {
    const auto module = kernel.finish();
    return module ? "" : module.error();
  }
};

TEST_F(Language, MmaTakesOperandsThatAgree) {
  for (const targets::Target* target : {&gfx942_, &gfx950_}) {
    for (const Element element : {Element::bf16, Element::fp16}) {
      Kernel kernel = kernel_for(*target);
      const MatrixUnit matrix(kernel, 32, 32, element);
      const Accumulator sum = matrix.mma(matrix.operand_a(dwords(kernel), KOrder::contiguous),
                                         matrix.operand_b(dwords(kernel), KOrder::contiguous), matrix.zeros());
      EXPECT_EQ(sum.layout.registers(), 16);
      EXPECT_EQ(reason(kernel), "");
    }
  }
}

// LLVM 22 lets the next instruction overwrite what such a store has yet to read (llvm/llvm-project#197267).
TEST_F(Language, StoresOf16BytesRefuseUniformOffsetsInRegisters) {
  const auto refused = [&](int dwords, bool in_register) {
    Kernel kernel = kernel_for(gfx950_);
    const Buffer buffer(kernel, kernel.argument_i64(0), kernel.constant(64));
    Value* offset = in_register ? kernel.argument_i32(8) : kernel.constant(16);
    buffer.store(llvm::Constant::getNullValue(kernel.vector(kernel.i32(), dwords)), kernel.lane(), offset);
    return reason(kernel);
  };
  EXPECT_THAT(refused(4, true), HasSubstr("more than 8 bytes has a uniform offset that is no constant"));
  EXPECT_EQ(refused(4, false), "");
  EXPECT_EQ(refused(2, true), "");
}

TEST_F(Language, MmaRefusesOperandsInDifferentKeyOrdersAndNamesBoth) {
  Kernel kernel = kernel_for(gfx950_);
  const MatrixUnit matrix(kernel, 32, 32, Element::bf16);
  matrix.mma(matrix.operand_a(dwords(kernel), KOrder::contiguous),
             matrix.operand_b(dwords(kernel), KOrder::accumulator_rows), matrix.zeros());
  EXPECT_THAT(reason(kernel),
              AllOf(HasSubstr("operand A holds 32 rows, k block of 16 in contiguous order, bf16"),
                    HasSubstr("operand B holds 32 rows, k block of 16 in accumulator-row order, bf16")));
}

TEST_F(Language, MmaRefusesFragmentsOfAnotherShapeTypeOrAccumulator) {
  Kernel kernel = kernel_for(gfx950_);
  const MatrixUnit wide(kernel, 32, 32, Element::bf16);
  const MatrixUnit narrow(kernel, 16, 16, Element::bf16);
  narrow.mma(wide.operand_a(dwords(kernel), KOrder::contiguous), wide.operand_b(dwords(kernel), KOrder::contiguous),
             narrow.zeros());
  EXPECT_THAT(reason(kernel), AllOf(HasSubstr("32 rows"), HasSubstr("the instruction takes 16 rows")));

  Kernel types = kernel_for(gfx950_);
  const MatrixUnit half(types, 32, 32, Element::fp16);
  const MatrixUnit brain(types, 32, 32, Element::bf16);
  half.mma(half.operand_a(dwords(types), KOrder::contiguous), brain.operand_b(dwords(types), KOrder::contiguous),
           half.zeros());
  EXPECT_THAT(reason(types), AllOf(HasSubstr("fp16"), HasSubstr("bf16")));

  Kernel sums = kernel_for(gfx950_);
  const MatrixUnit thirty_two(sums, 32, 32, Element::bf16);
  const MatrixUnit sixteen(sums, 16, 16, Element::bf16);
  thirty_two.mma(thirty_two.operand_a(dwords(sums), KOrder::contiguous),
                 thirty_two.operand_b(dwords(sums), KOrder::contiguous), sixteen.zeros());
  EXPECT_THAT(reason(sums), AllOf(HasSubstr("accumulator holds 16x16"), HasSubstr("takes 32x32")));
}

TEST_F(Language, AccumulatorRowsAreThoseOfTheHardware) {
  // 32x32: row = 8 · (r / 4) + 4 · (lane / 32) + r % 4; 16x16: row = 4 · (lane / 16) + r.
  const AccumulatorLayout wide{.rows = 32, .columns = 32, .wave_size = 64};
  for (int r = 0; r < 16; ++r) EXPECT_EQ(wide.row_of_register(r), 8 * (r / 4) + r % 4);
  const AccumulatorLayout narrow{.rows = 16, .columns = 16, .wave_size = 64};
  EXPECT_EQ(narrow.registers(), 4);
  for (int r = 0; r < 4; ++r) EXPECT_EQ(narrow.row_of_register(r), r);
  // gfx12's: 16x16 over 32 lanes in blocks of eight rows.
  const AccumulatorLayout gfx12{.rows = 16, .columns = 16, .wave_size = 32, .row_block = 8};
  EXPECT_EQ(gfx12.registers(), 8);
  for (int r = 0; r < 8; ++r) EXPECT_EQ(gfx12.row_of_register(r), r);
}

TEST_F(Language, RefusesWhatTheTargetLacksInsteadOfCrashingTheBackend) {
  Kernel swap = kernel_for(gfx942_);
  swap_halves(swap, swap.lane(), swap.lane());
  EXPECT_THAT(reason(swap), AllOf(HasSubstr("v_permlane32_swap"), HasSubstr("gfx942")));

  Kernel transpose = kernel_for(gfx942_);
  Lds(transpose, 1024, 1).read_transposed(0, transpose.lane(), 0);
  EXPECT_THAT(reason(transpose), AllOf(HasSubstr("ds_read_b64_tr_b16"), HasSubstr("gfx942")));

  for (const auto& [target, bytes, accepted] : {std::tuple{&gfx942_, 16, false}, std::tuple{&gfx942_, 4, true},
                                                std::tuple{&gfx950_, 16, true}, std::tuple{&gfx950_, 8, false}}) {
    Kernel dma = kernel_for(*target);
    const Buffer from(dma, dma.argument_i64(0), dma.argument_i32(8));
    Lds(dma, 8192, 1).fill(0, from, bytes, dma.lane(), dma.constant(0), dma.constant(0), 0);
    EXPECT_EQ(reason(dma).empty(), accepted) << target->id << " " << bytes;
  }

  Kernel matrix = kernel_for(gfx950_);
  const MatrixUnit absent(matrix, 64, 64, Element::bf16);
  EXPECT_THAT(reason(matrix), HasSubstr("no matrix instruction of 64x64"));
}

TEST_F(Language, RefusesArgumentsOutsideTheStruct) {
  for (const auto& [offset, good] :
       {std::pair{0, true}, std::pair{24, true}, std::pair{28, false}, std::pair{32, false}}) {
    Kernel kernel = kernel_for(gfx950_);
    kernel.argument_i64(static_cast<std::size_t>(offset));
    EXPECT_EQ(reason(kernel).empty(), good) << offset;
  }
}

TEST_F(Language, TheFirstReasonIsTheOneThatIsTold) {
  Kernel kernel = kernel_for(gfx950_);
  kernel.refuse("first");
  kernel.refuse("second");
  EXPECT_EQ(reason(kernel), "first");
}

// Every access to LDS carries its region's scope and the others as not aliasing: without them on both sides the backend
// waits for everything, or for nothing.
TEST_F(Language, LdsAccessesCarryTheirRegion) {
  Kernel kernel = kernel_for(gfx950_);
  const Lds lds(kernel, 4096, 3);
  const Buffer from(kernel, kernel.argument_i64(0), kernel.argument_i32(8));
  lds.read(0, 16, kernel.constant(0), 0);
  lds.read_transposed(1, kernel.constant(0), 0);
  lds.write(2, kernel.constant(0), kernel.constant(0), 0);
  lds.fill(1, from, 16, kernel.lane(), kernel.constant(0), kernel.constant(0), 0);
  const auto module = kernel.finish();
  ASSERT_TRUE(module) << module.error();
  int marked = 0;
  for (const llvm::Function& function : **module)
    for (const llvm::BasicBlock& block : function)
      for (const llvm::Instruction& instruction : block) {
        const llvm::MDNode* own = instruction.getMetadata(llvm::LLVMContext::MD_alias_scope);
        const llvm::MDNode* others = instruction.getMetadata(llvm::LLVMContext::MD_noalias);
        if (!own) continue;
        ++marked;
        EXPECT_EQ(own->getNumOperands(), 1U);
        ASSERT_TRUE(others);
        EXPECT_EQ(others->getNumOperands(), 2U);
        EXPECT_THAT(std::vector<const llvm::Metadata*>(others->op_begin(), others->op_end()),
                    ::testing::Not(::testing::Contains(own->getOperand(0).get())));
      }
  EXPECT_EQ(marked, 4);
}

// docs/canonical-arithmetic.md, step 5: bits 5, 1 and 0 of the key are added up, in this order, and what bits 4 and 3
// tell apart never meets.
TEST(SumTree, IsTheCanonicalOne) {
  const auto key_of = [](int term) { return 32 * (term / 16) + 8 * (term % 16 / 4) + term % 4; };
  const auto levels = sum_tree(16);
  ASSERT_EQ(levels.size(), 3U);
  const int bits[] = {32, 2, 1};
  std::size_t count = 16;
  for (std::size_t level = 0; level < levels.size(); ++level, count /= 2) {
    ASSERT_EQ(levels[level].size(), count);
    for (const Addition& addition : levels[level])
      EXPECT_EQ(key_of(addition.other), key_of(addition.into) + bits[level]) << "level " << level;
  }
  for (std::size_t j = 0; j < running_sums; ++j) EXPECT_EQ(levels.back()[j].into, 4 * static_cast<int>(j));
}

std::string text_of(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, nullptr);
  return text;
}

TEST(Emit, GivesTheSameModuleForTheSameSpec) {
  attention_forward::ForwardKernel spec{{}, {.target = "gfx950"}};
  llvm::LLVMContext one;
  llvm::LLVMContext two;
  const targets::Target& target = *targets::find_target("gfx950");
  const auto first = attention_forward::emit(spec, target, one);
  const auto second = attention_forward::emit(spec, target, two);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(text_of(**first), text_of(**second));
}

TEST(Emit, RefusesInTheWordsOfTheParameters) {
  llvm::LLVMContext context;
  attention_forward::ForwardKernel spec{{},
                                        {.output_store = attention_forward::OutputStore::permlane, .target = "gfx942"}};
  const auto refused = attention_forward::emit(spec, *targets::find_target("gfx942"), context);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(), attention_forward::resources_of(spec).error());

  spec.target = "gfx950";
  EXPECT_THAT(attention_forward::emit(spec, *targets::find_target("gfx942"), context).error(), HasSubstr("gfx950"));
}

TEST(Emit, NamesTheKernelAfterItsSpec) {
  attention_forward::ForwardKernel spec{{.mask = attention_forward::Mask::causal, .lse = true}, {.target = "gfx950"}};
  EXPECT_EQ(attention_forward::kernel_name(spec), "attention_forward_fp16_d128_causal_lse_128x64_gfx950");
}

}  // namespace
}  // namespace wavejit::language
