// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_latent/emit/tile_weights.h"

#include "codegen/language/convert.h"

namespace wavejit::attention_latent {
namespace {

using language::Accumulator;
using language::OperandB;
using language::SoftmaxState;
using language::Value;
using language::Values;

// Slots of issue.
constexpr int slots_of_weight = 5;  // a multiply-add, an exponential
constexpr int slots_of_dword = 5;   // two numbers rounded, where no instruction does it at once
constexpr int slots_of_sum = 8;

}  // namespace

TileWeights::TileWeights(language::Kernel& kernel, const language::Softmax& softmax, const language::MatrixUnit& matrix,
                         const SoftmaxState& state, std::span<const Accumulator> scores)
    : kernel_(kernel), softmax_(softmax), matrix_(matrix), state_(state), shift_(softmax.shift(state.maximum)) {
  for (const Accumulator& part : scores) {
    Values numbers;
    for (int r = 0; r < part.layout.registers(); ++r)
      numbers.push_back(kernel.ir().CreateExtractElement(part.value, static_cast<std::uint64_t>(r)));
    weights_.push_back(std::move(numbers));
  }
  // Two operands of an accumulator's half each. A running sum has four registers of both accumulators.
  constexpr std::size_t halves = 2;
  const auto half = static_cast<int>(weights_.front().size() / halves);
  constexpr int registers_of_sum = 4;
  operands_.resize(halves * weights_.size());
  for (std::size_t part = 0; part < weights_.size(); ++part)
    for (std::size_t of_part = 0; of_part < halves; ++of_part) {
      const int first = static_cast<int>(of_part) * half;
      add_weights(part, first, half);
      add_operand(static_cast<int>((part * halves) + of_part));
      if (part + 1 < weights_.size()) continue;
      for (int sum = first / registers_of_sum; sum < (first + half) / registers_of_sum; ++sum)
        add_sum(static_cast<std::size_t>(sum));
    }
}

void TileWeights::add_weights(std::size_t part, int first, int count) {
  for (int r = first; r < first + count; ++r)
    strand_.add(
        [=, this] {
          Value*& number = weights_[part][static_cast<std::size_t>(r)];
          number = softmax_.exp2(softmax_.exponent(number, shift_));
        },
        slots_of_weight);
}

void TileWeights::add_operand(int key_block) {
  const auto of = static_cast<std::size_t>(key_block);
  const Values& part = weights_[of / 2];
  const std::size_t half = part.size() / 2;
  for (std::size_t r = of % 2 * half; r < (of % 2 + 1) * half; r += 2)
    strand_.add(
        [=, this, &part] {
          llvm::IRBuilder<>& ir = kernel_.ir();
          Value* pair = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), 2));
          pair = ir.CreateInsertElement(pair, part[r], std::uint64_t{0});
          pair = ir.CreateInsertElement(pair, part[r + 1], std::uint64_t{1});
          operands_[of].push_back(
              language::convert_pair(kernel_, pair, matrix_.element(), language::NanInput::irrelevant));
        },
        slots_of_dword);
}

// sum_tree: bit 5 of the key, then bit 1, then bit 0.
void TileWeights::add_sum(std::size_t running) {
  strand_.add(
      [=, this] {
        llvm::IRBuilder<>& ir = kernel_.ir();
        const auto both = [&](std::size_t r) { return ir.CreateFAdd(weights_[0][r], weights_[1][r]); };
        const std::size_t first = 4 * running;
        Value* even = ir.CreateFAdd(both(first), both(first + 2));
        Value* odd = ir.CreateFAdd(both(first + 1), both(first + 3));
        state_.sums[running] = softmax_.accumulated(state_.sums[running], ir.CreateFAdd(even, odd));
      },
      slots_of_sum);
}

OperandB TileWeights::of(int key_block) {
  Values& dwords = operands_[static_cast<std::size_t>(key_block)];
  const std::size_t half = weights_.front().size() / 2;
  while (dwords.size() < half / 2) strand_.write_one();
  return matrix_.operand_b(language::gather_dwords(kernel_, dwords), language::KOrder::accumulator_rows);
}

SoftmaxState TileWeights::finish() {
  strand_.write_rest();
  return state_;
}

}  // namespace wavejit::attention_latent
