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

void add_unused(Kernel& kernel, const Block& block, Values& unused) {
  for (int r = block.differentiated; r < block.weighed; ++r) unused.push_back(element(kernel, block.scores, r));
  for (int r = 2 * block.d_scores.pairs; r < block.differentiated; ++r)
    unused.push_back(element(kernel, block.gradients, r));
  for (const Rounded* rounded : {&block.weights, &block.d_scores})
    for (const language::OperandB& fragment : rounded->fragments) unused.push_back(fragment.value);
}

void ScoreGradient::add_weights(Strand& strand, Block& block, int fragment, const std::function<Value*(int)>& shift,
                                bool rounds) const {
  const int first = fragment * registers();
  const int last = first + registers();
  llvm::IRBuilder<>& ir = kernel_.ir();
  for (int at = first; at < last + (2 * lag); ++at) {
    if (at < last)
      strand.add([=, this, &block, &ir] {
        Value* exponent = ir.CreateIntrinsic(llvm::Intrinsic::fma, {kernel_.f32()},
                                             {element(kernel_, block.scores, at), scale_, shift(at)});
        put(kernel_, block.scores, at, exponent);
        block.weighed = at + 1;
      });
    if (const int r = at - lag; r >= first && r < last)
      strand.add(
          [=, this, &block, &ir] {
            put(kernel_, block.scores, r,
                ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {element(kernel_, block.scores, r)}));
          },
          slots_.exp2);
    if (const int r = at - (2 * lag); rounds && r >= first && r % 2 == 1)
      add_rounding(strand, block.scores, r / 2, block.weights);
  }
}

void ScoreGradient::add_rounded_weights(Strand& strand, Block& block, int fragment) const {
  const int pairs = registers() / 2;
  for (int pair = fragment * pairs; pair < (fragment + 1) * pairs; ++pair)
    add_rounding(strand, block.scores, pair, block.weights);
}

void ScoreGradient::add_d_scores(Strand& strand, Block& block, int fragment) const {
  const int first = fragment * registers();
  const int last = first + registers();
  llvm::IRBuilder<>& ir = kernel_.ir();
  for (int at = first; at < last + lag; ++at) {
    if (at < last)
      strand.add([=, this, &block, &ir] {
        Value* product = ir.CreateFMul(element(kernel_, block.scores, at), element(kernel_, block.gradients, at));
        if (!block.slopes.empty()) product = ir.CreateFMul(product, block.slopes[static_cast<std::size_t>(at)]);
        put(kernel_, block.gradients, at, product);
        block.differentiated = at + 1;
      });
    if (const int r = at - lag; r >= first && r % 2 == 1) add_rounding(strand, block.gradients, r / 2, block.d_scores);
  }
}

// Dwords are gathered as they come.
void ScoreGradient::add_rounding(Strand& strand, const language::Accumulator& from, int pair, Rounded& to) const {
  strand.add(
      [=, this, &from, &to] {
        llvm::IRBuilder<>& ir = kernel_.ir();
        Value* two = ir.CreateShuffleVector(from.value, {2 * pair, (2 * pair) + 1});
        Value* dword = language::convert_pair(kernel_, two, matrix_.element(), nan_);
        const auto fragment = static_cast<std::size_t>(pair / language::OperandLayout::dwords);
        if (to.fragments.size() == fragment)
          to.fragments.push_back(
              matrix_.operand_b(llvm::PoisonValue::get(kernel_.vector(kernel_.i32(), language::OperandLayout::dwords)),
                                language::KOrder::accumulator_rows));
        Value*& dwords = to.fragments[fragment].value;
        dwords =
            ir.CreateInsertElement(dwords, dword, static_cast<std::uint64_t>(pair % language::OperandLayout::dwords));
        to.pairs = pair + 1;
      },
      slots_.convert);
}

}  // namespace wavejit::attention_backward
