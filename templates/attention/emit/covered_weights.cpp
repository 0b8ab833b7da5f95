// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/emit/covered_weights.h"

#include <functional>
#include <utility>

#include "codegen/language/convert.h"
#include "codegen/language/strand.h"
#include "codegen/language/synchronize.h"

namespace wavejit::attention {
namespace {

using language::Accumulator;
using language::Value;
using language::Values;

// Plain operations that cover an exponential, of which one is issued in a cycle.
constexpr int covering = 3;
// Exponents that are there before the first exponential: it would wait for its own.
constexpr int exponents_before = 4;
// A weight is used only after this many later exponentials.
constexpr int weights_between = 2;

class TileInOrder {
 public:
  TileInOrder(language::Kernel& kernel, const language::Softmax& softmax, const language::MatrixUnit& matrix,
              std::span<const Accumulator> scores, language::SoftmaxState& state)
      : kernel_(kernel),
        softmax_(softmax),
        matrix_(matrix),
        scores_(scores),
        state_(state),
        registers_(scores.front().layout.registers()),
        half_(static_cast<int>(scores.size()) * registers_ / 2),
        shift_(softmax.shift(state.maximum)),
        weights_(at(2 * half_)),
        sums_(at(half_)),
        dwords_(at(half_)) {}

  std::vector<language::OperandB> emit() {
    for (int index = 0; index < exponents_before; ++index) exponent(order(index));
    for (int index = exponents_before; index < 2 * half_; ++index)
      exponents_.add([=, this] { exponent(order(index)); });
    for (int index = 0; index < 2 * half_; ++index) {
      Value*& weight = weights_[at(order(index))];
      weight = softmax_.exp2(weight);
      if (index % quad == quad - 1) add_quad(index / quad);
      cover(index);
    }
    while (next_ != parts_.size()) parts_[next_++].operation();
    return operands();
  }

 private:
  // Four weights are used together: two neighbours, and those that they are added to.
  static constexpr int quad = 4;
  struct Part {
    int ready = 0;  // behind which exponential
    int slots = 0;
    std::function<void()> operation;
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  // Which of all registers in a row comes as which.
  int order(int index) const { return (2 * (index / quad)) + (index % quad / 2) + (index % 2 * half_); }

  void exponent(int index) {
    Value* score = kernel_.ir().CreateExtractElement(scores_[at(index / registers_)].value, index % registers_);
    weights_[at(index)] = softmax_.exponent(score, shift_);
  }

  // Writes operations after exponential `index`: one exponent, so that exponents stay ahead, and other waiting
  // operations; if there are none, more exponents.
  void cover(int index) {
    int slots = 0;
    const auto write_exponent = [&] {
      exponents_.write_one();
      ++exponents_written_;
      ++slots;
    };
    if (!exponents_.empty() && exponents_written_ <= index) write_exponent();
    while (slots < covering) {
      if (next_ != parts_.size() && parts_[next_].ready <= index) {
        parts_[next_].operation();
        slots += parts_[next_++].slots;
      } else if (!exponents_.empty()) {
        write_exponent();
      } else {
        return;
      }
    }
  }

  void add_quad(int number) {
    const int ready = (quad * number) + quad - 1 + weights_between;
    const int r = 2 * number;
    const int conversion = matrix_.element() == language::Element::bf16 ? 5 : 3;
    const auto add_part = [&](int slots, std::function<void()> operation) {
      parts_.push_back({.ready = ready, .slots = slots, .operation = std::move(operation)});
    };
    // Neighbours, which the backend pairs.
    add_part(2, [=, this] {
      for (const int each : {r, r + 1}) sums_[at(each)] = add(weights_[at(each)], weights_[at(each + half_)]);
    });
    add_part(conversion, [=, this] { pack(r); });
    add_part(conversion, [=, this] { pack(r + half_); });
    if (r % quad != 0) add_part(4, [=, this] { end_sum(r - 2); });
  }

  Value* add(Value* a, Value* b) { return kernel_.ir().CreateFAdd(a, b); }

  // The tree's levels behind the first (sum_tree), and the running sum.
  void end_sum(int first) {
    for (const int each : {first, first + 1}) sums_[at(each)] = add(sums_[at(each)], sums_[at(each + 2)]);
    Value*& running = state_.sums[at(first / quad)];
    running = softmax_.accumulated(running, add(sums_[at(first)], sums_[at(first + 1)]));
  }

  void pack(int index) {
    llvm::IRBuilder<>& ir = kernel_.ir();
    Value* pair = llvm::PoisonValue::get(kernel_.vector(kernel_.f32(), 2));
    for (const int each : {0, 1}) pair = ir.CreateInsertElement(pair, weights_[at(index + each)], at(each));
    dwords_[at(index / 2)] = language::convert_pair(kernel_, pair, matrix_.element(), language::NanInput::irrelevant);
  }

  std::vector<language::OperandB> operands() const {
    std::vector<language::OperandB> packed;
    constexpr std::size_t dwords = language::OperandLayout::dwords;
    Values pinned(state_.sums.begin(), state_.sums.end());
    for (std::size_t first = 0; first < dwords_.size(); first += dwords) {
      packed.push_back(matrix_.operand_b(language::gather_dwords(kernel_, std::span(dwords_).subspan(first, dwords)),
                                         language::KOrder::accumulator_rows));
      pinned.push_back(packed.back().value);
    }
    language::pin(kernel_, pinned);
    return packed;
  }

  language::Kernel& kernel_;
  const language::Softmax& softmax_;
  const language::MatrixUnit& matrix_;
  std::span<const Accumulator> scores_;
  language::SoftmaxState& state_;
  int registers_;  // of an accumulator
  int half_;       // of all of them
  Value* shift_;
  Values weights_;  // exponents before they are weights
  Values sums_;
  Values dwords_;
  language::Strand exponents_;
  int exponents_written_ = 0;
  std::vector<Part> parts_;
  std::size_t next_ = 0;
};

}  // namespace

std::vector<language::OperandB> covered_weights(language::Kernel& kernel, const language::Softmax& softmax,
                                                const language::MatrixUnit& matrix, std::span<const Accumulator> scores,
                                                language::SoftmaxState& state) {
  return TileInOrder(kernel, softmax, matrix, scores, state).emit();
}

}  // namespace wavejit::attention
