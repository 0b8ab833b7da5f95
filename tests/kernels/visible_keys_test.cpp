// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which keys a row sees and which rows see a key, as emission computes both: every case against the definition, by
// working out the integers that were emitted.
#include "templates/attention/emit/visible_keys.h"

#include <gtest/gtest.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "templates/attention/kernel/arguments.h"

namespace wavejit::attention {
namespace {

using language::Value;

struct Arguments {
  std::int32_t causal_offset = 0;
  std::uint32_t bottom_right_mask = 0;
  std::int32_t left = 0;
  std::int32_t right = 0;
};
constexpr DiagonalFields diagonal_fields = {.causal_offset = offsetof(Arguments, causal_offset),
                                            .bottom_right_mask = offsetof(Arguments, bottom_right_mask)};
constexpr WindowFields window_fields = {.left = offsetof(Arguments, left), .right = offsetof(Arguments, right)};

// Whole numbers of 32 bits, made of constants and of the kernel's arguments.
class Evaluator {
 public:
  Evaluator(language::Kernel& kernel, const Arguments& arguments) : kernel_(kernel), arguments_(arguments) {}

  std::int32_t of(const llvm::Value* value) const {
    if (const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(value))
      return static_cast<std::int32_t>(constant->getSExtValue());
    if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(value)) {
      const llvm::DataLayout& layout = kernel_.module().getDataLayout();
      llvm::APInt offset(layout.getIndexTypeSizeInBits(load->getPointerOperandType()), 0);
      load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true);
      std::int32_t bits = 0;
      std::memcpy(&bits, reinterpret_cast<const char*>(&arguments_) + offset.getZExtValue(), sizeof bits);
      return bits;
    }
    if (const auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(value)) {
      const std::int32_t a = of(call->getArgOperand(0));
      const std::int32_t b = of(call->getArgOperand(1));
      switch (call->getIntrinsicID()) {
        case llvm::Intrinsic::smin:
          return std::min(a, b);
        case llvm::Intrinsic::smax:
          return std::max(a, b);
        default:
          break;
      }
    }
    if (const auto* select = llvm::dyn_cast<llvm::SelectInst>(value))
      return of(of(select->getCondition()) != 0 ? select->getTrueValue() : select->getFalseValue());
    if (const auto* compare = llvm::dyn_cast<llvm::ICmpInst>(value);
        compare != nullptr && compare->getPredicate() == llvm::CmpInst::ICMP_SLE)
      return of(compare->getOperand(0)) <= of(compare->getOperand(1)) ? 1 : 0;
    if (const auto* binary = llvm::dyn_cast<llvm::BinaryOperator>(value)) {
      const auto a = static_cast<std::uint32_t>(of(binary->getOperand(0)));
      const auto b = static_cast<std::uint32_t>(of(binary->getOperand(1)));
      switch (binary->getOpcode()) {
        case llvm::Instruction::Add:
          return static_cast<std::int32_t>(a + b);
        case llvm::Instruction::Sub:
          return static_cast<std::int32_t>(a - b);
        case llvm::Instruction::And:
          return static_cast<std::int32_t>(a & b);
        default:
          break;
      }
    }
    ADD_FAILURE() << "an operation that this test does not know";
    return 0;
  }

 private:
  language::Kernel& kernel_;
  const Arguments& arguments_;
};

// The definition.
bool sees(Mask mask, std::int64_t row, std::int64_t key, std::int64_t rows, std::int64_t keys,
          const Arguments& arguments) {
  if (key >= keys || row >= rows) return false;
  const std::int64_t diagonal = row + arguments.causal_offset + (arguments.bottom_right_mask != 0 ? keys - rows : 0);
  if (mask == Mask::none) return true;
  if (mask == Mask::causal) return key <= diagonal;
  return key >= diagonal - arguments.left && key <= diagonal + arguments.right;
}

TEST(VisibleKeys, RowsOfATileOfKeysAreThoseThatSeeOne) {
  llvm::LLVMContext context;
  const targets::Target& target = *targets::find_target("gfx950");
  int tiles = 0;
  for (const Mask mask : {Mask::none, Mask::causal, Mask::window})
    for (const auto& [rows, keys] : {std::pair{1, 1}, {5, 130}, {130, 70}, {200, 200}, {64, 0}})
      for (const Arguments& arguments : {Arguments{.left = unlimited_window, .right = 0},
                                         Arguments{.bottom_right_mask = ~0U, .left = 40, .right = 3},
                                         Arguments{.causal_offset = 17, .left = 0, .right = unlimited_window},
                                         Arguments{.bottom_right_mask = ~0U, .left = 2, .right = 100}}) {
        language::Kernel kernel(context, target,
                                {.name = "k", .threads = 64, .waves_per_simd = 1, .argument_bytes = sizeof arguments});
        const Sequence sequence = {.query_start = kernel.constant(0),
                                   .query_length = kernel.constant(rows),
                                   .key_start = kernel.constant(0),
                                   .key_length = kernel.constant(keys),
                                   .told_keys = kernel.constant(keys)};
        const KeyLimits limits = key_limits(kernel, mask, false, diagonal_fields, window_fields, sequence);
        const Evaluator evaluator(kernel, arguments);
        for (int first = 0; first < std::max(keys, 1); first += 64) {
          const RowRange range =
              visible_rows(kernel, limits, sequence, kernel.constant(first), kernel.constant(first + 63));
          std::optional<int> begin;
          int end = 0;
          for (int row = 0; row < rows; ++row)
            for (int key = first; key < first + 64; ++key)
              if (sees(mask, row, key, rows, keys, arguments)) {
                if (!begin) begin = row;
                end = row + 1;
              }
          const int emitted_begin = evaluator.of(range.begin);
          const int emitted_end = evaluator.of(range.end);
          if (begin) {
            EXPECT_EQ(emitted_begin, *begin) << rows << "x" << keys << " key " << first;
            EXPECT_EQ(emitted_end, end) << rows << "x" << keys << " key " << first;
          } else {
            EXPECT_LE(emitted_end, emitted_begin) << rows << "x" << keys << " key " << first;
          }
          ++tiles;
        }
        static_cast<void>(kernel.finish());
      }
  EXPECT_GT(tiles, 60);
}

}  // namespace
}  // namespace wavejit::attention
