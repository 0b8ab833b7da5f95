// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/score_gradient.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/convert.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using language::Kernel;
using language::Strand;
using language::Value;
using language::Values;

Value* cap_rate(Kernel& kernel, const KernelWords& words) {
  if (!words.has(Modifier::softcap)) return nullptr;
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* rate = kernel.argument_i32(offsetof(Arguments, scores) + offsetof(attention::ScoreArguments, softcap_rate));
  rate = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, ir.CreateAnd(rate, ir.getInt32(0x7FFFFFFF)),
                                  ir.getInt32(0x7F7FFFFF));
  return ir.CreateBitCast(rate, kernel.f32());
}

Values cap_slopes(Kernel& kernel, const KernelWords& words, Value* rate, const language::Accumulator& raw) {
  if (!words.has(Modifier::softcap)) return {};
  llvm::IRBuilder<>& ir = kernel.ir();
  Values slopes;
  for (int r = 0; r < raw.layout.registers(); ++r) {
    Value* score = ir.CreateExtractElement(raw.value, static_cast<std::uint64_t>(r));
    Value* power = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel.f32()}, {ir.CreateFMul(score, rate)});
    Value* share =
        ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel.f32()}, {ir.CreateFAdd(power, kernel.constant(1.0F))});
    Value* product = ir.CreateFMul(share, ir.CreateFSub(kernel.constant(1.0F), share));
    slopes.push_back(ir.CreateFMul(product, kernel.constant(4.0F)));
  }
  return slopes;
}

namespace {

// Between an operation and the one that takes its result.
constexpr int lag = 2;

Value* element(Kernel& kernel, const language::Accumulator& of, int r) {
  return kernel.ir().CreateExtractElement(of.value, static_cast<std::uint64_t>(r));
}
void put(Kernel& kernel, language::Accumulator& to, int r, Value* value) {
  to.value = kernel.ir().CreateInsertElement(to.value, value, static_cast<std::uint64_t>(r));
}

}  // namespace

void ScoreGradient::add_weights(Strand& strand, Block& block, const std::function<Value*(int)>& shift,
                                bool rounds) const {
  const int registers = matrix_.accumulator_layout().registers();
  llvm::IRBuilder<>& ir = kernel_.ir();
  for (int at = 0; at < registers + (2 * lag); ++at) {
    if (at < registers)
      strand.add([=, this, &block, &ir] {
        Value* exponent = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()},
                                             {element(kernel_, block.scores, at), scale_, shift(at)});
        put(kernel_, block.scores, at, exponent);
      });
    if (const int r = at - lag; r >= 0 && r < registers)
      strand.add(
          [=, this, &block, &ir] {
            put(kernel_, block.scores, r,
                ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {element(kernel_, block.scores, r)}));
          },
          slots_.exp2);
    if (const int r = at - (2 * lag); rounds && r >= 0 && r % 2 == 1)
      add_rounding(strand, block.scores, r / 2, block.weights);
  }
}

void ScoreGradient::add_d_scores(Strand& strand, Block& block) const {
  const int registers = matrix_.accumulator_layout().registers();
  llvm::IRBuilder<>& ir = kernel_.ir();
  for (int at = 0; at < registers + lag; ++at) {
    if (at < registers)
      strand.add([=, this, &block, &ir] {
        Value* product = ir.CreateFMul(element(kernel_, block.scores, at), element(kernel_, block.gradients, at));
        if (!block.slopes.empty()) product = ir.CreateFMul(product, block.slopes[static_cast<std::size_t>(at)]);
        put(kernel_, block.gradients, at, product);
      });
    if (const int r = at - lag; r >= 0 && r % 2 == 1) add_rounding(strand, block.gradients, r / 2, block.d_scores);
  }
}

// Dwords are gathered as they come: eight registers make a fragment.
void ScoreGradient::add_rounding(Strand& strand, const language::Accumulator& from, int pair,
                                 std::vector<language::OperandB>& to) const {
  strand.add(
      [=, this, &from, &to] {
        llvm::IRBuilder<>& ir = kernel_.ir();
        Value* two = ir.CreateShuffleVector(from.value, {2 * pair, (2 * pair) + 1});
        Value* dword = language::convert_pair(kernel_, two, matrix_.element(), language::NanInput::kept);
        const auto fragment = static_cast<std::size_t>(pair / language::OperandLayout::dwords);
        if (to.size() == fragment)
          to.push_back(
              matrix_.operand_b(llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), language::OperandLayout::dwords)),
                                language::KOrder::accumulator_rows));
        Value*& dwords = to[fragment].value;
        dwords =
            ir.CreateInsertElement(dwords, dword, static_cast<std::uint64_t>(pair % language::OperandLayout::dwords));
      },
      slots_.convert);
}

}  // namespace wavejit::attention_backward
