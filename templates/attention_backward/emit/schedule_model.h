// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The schedules as a model: every block's arithmetic comes once and in order, blocks ascend in each sum, nothing reads
// what is not there. It also counts the tiles of 16 registers that live at once beside operands and sums.
// schedule.cpp asks it when it is compiled, tests/attention_backward/schedule_test.cpp with tables that are wrong.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "templates/attention_backward/emit/schedule.h"

namespace wavejit::attention_backward::schedule {

// The dK/dV kernel also with a walk for each of its sums, and with a wave for each of them: then the one gives weights
// and the other takes them.
enum class Kernel : std::uint8_t { queries, keys, values_alone, keys_alone, giving, taking };
// Which tile's products of columns a tile of waves that share keys has.
enum class Sum : std::uint8_t { of_tile, of_tile_before };

class Model {
 public:
  static constexpr int most_blocks = 2;
  constexpr Model(Kernel kernel, int blocks, Sum sum = Sum::of_tile) : kernel_(kernel), blocks_(blocks), sum_(sum) {
    if (sum != Sum::of_tile_before) return;
    for (int block = 0; block < blocks; ++block) before_.at(static_cast<std::size_t>(block)) = left_by_a_tile();
  }

  constexpr Fault run(const Schedule& schedule) {
    for (const Act& act : schedule.acts) {
      std::visit([&](const auto& each) { perform(each); }, act);
      most_alive_ = std::max(most_alive_, alive());
    }
    row_ = "the end";
    for (int block = 0; block < blocks_; ++block) {
      const Block& of = block_of(block);
      const Block& summed = block_of(block, sum_ == Sum::of_tile_before);
      block_ = block;
      require(makes(Product::queries) == summed.queries && makes(Product::values) == summed.values &&
                  makes(Product::keys) == summed.keys,
              "a block is missing in a sum");
      require((kernel_ == Kernel::giving) == of.giving, "weights of a block are not handed over");
      require(sum_ == Sum::of_tile || leaves_what_the_next_sums(of), "a tile leaves too little to the next");
    }
    return fault_;
  }
  // Accumulators of 16 registers that hold scores, weights or gradients, for each block that a wave owns; rounded ones
  // count half.
  constexpr double most_alive() const { return most_alive_; }

 private:
  struct Block {
    bool scores = false, modified = false, weighing = false, weighed = false, gradients = false,
         differentiating = false, differentiated = false, values = false, keys = false, queries = false, giving = false,
         given = false, rounding = false, rounded = false;
  };
  // What a tile has of the one before.
  constexpr Block left_by_a_tile() const {
    Block of;
    of.scores = of.modified = of.weighing = of.weighed = of.giving = of.given = kernel_ == Kernel::giving;
    of.gradients = kernel_ == Kernel::taking;
    return of;
  }
  constexpr bool leaves_what_the_next_sums(const Block& of) const {
    return kernel_ == Kernel::giving ? of.weighing && of.giving && !of.rounding : of.gradients && !of.differentiating;
  }
  constexpr bool rounds_late() const { return kernel_ == Kernel::giving && sum_ == Sum::of_tile_before; }

  constexpr bool makes(Product sum) const {
    switch (sum) {
      case Product::queries:
        return kernel_ == Kernel::queries;
      case Product::values:
        return kernel_ == Kernel::keys || kernel_ == Kernel::values_alone || kernel_ == Kernel::giving;
      case Product::keys:
        return kernel_ == Kernel::keys || kernel_ == Kernel::keys_alone || kernel_ == Kernel::taking;
      case Product::scores:
      case Product::gradients:
        break;
    }
    return false;
  }
  constexpr void require(bool holds, std::string_view what) {
    if (!holds && !fault_) fault_ = {.row = row_, .tile = block_, .what = what};
  }
  constexpr Block& block_of(int block, bool before = false) {
    require(block >= 0 && block < blocks_, "there is no such block");
    require(!before || sum_ == Sum::of_tile_before, "nothing is left of the tile before");
    return (before ? before_ : all_).at(static_cast<std::size_t>(std::clamp(block, 0, most_blocks - 1)));
  }

  constexpr void perform(const Multiply& multiply) {
    block_ = multiply.block;
    Block& of = block_of(multiply.block, multiply.before);
    const bool first = multiply.block == 0;
    switch (multiply.product) {
      case Product::scores:
        row_ = "scores";
        require(kernel_ != Kernel::taking, "the kernel takes weights");
        require(!of.scores, "comes twice");
        of.scores = true;
        break;
      case Product::gradients:
        row_ = "gradients";
        require(!of.gradients, "comes twice");
        of.gradients = true;
        break;
      case Product::values:
        row_ = "values";
        require(makes(Product::values), "the kernel has no such sum");
        require((rounds_late() ? of.rounding : of.weighing) && !of.values,
                "multiplies weights that nobody makes, or twice");
        require(first || block_of(multiply.block - 1, multiply.before).values, "blocks do not ascend in a sum");
        if (rounds_late())
          drain(of.rounded, Vector::round, multiply);
        else
          drain(of.weighed, Vector::weigh, multiply);
        of.values = true;
        break;
      case Product::keys:
      case Product::queries: {
        const bool keys = multiply.product == Product::keys;
        row_ = keys ? "keys" : "queries";
        require(makes(multiply.product), "the kernel has no such sum");
        bool Block::* done = keys ? &Block::keys : &Block::queries;
        require(of.differentiating && !(of.*done), "multiplies gradients that nobody makes, or twice");
        require(first || block_of(multiply.block - 1, multiply.before).*done, "blocks do not ascend in a sum");
        drain(of.differentiated, Vector::differentiate, multiply);
        of.*done = true;
        break;
      }
    }
  }

  constexpr void perform(const Modify& modify) {
    row_ = "modify";
    block_ = modify.block;
    Block& of = block_of(modify.block);
    require(of.scores && !of.modified && !of.weighing, "modifies what is no score, or twice");
    of.modified = true;
  }

  constexpr void perform(const Queue& queue) {
    block_ = queue.block;
    Block& of = block_of(queue.block, queue.before);
    // What is on the queue reads its operands when it is written, which may be at once.
    switch (queue.vector) {
      case Vector::weigh:
        row_ = "weigh";
        require(of.modified && !of.weighing, "weighs scores that are not modified, or twice");
        of.weighing = true;
        break;
      case Vector::differentiate:
        row_ = "differentiate";
        require(of.weighing && of.gradients && !of.differentiating, "differentiates before dP is there, or twice");
        of.differentiating = true;
        break;
      case Vector::give:
        row_ = "give";
        require(kernel_ == Kernel::giving, "the kernel gives no weights");
        require(of.weighing && !of.giving, "gives weights that nobody makes, or twice");
        of.giving = true;
        break;
      case Vector::take:
        row_ = "take";
        require(kernel_ == Kernel::taking, "the kernel takes no weights");
        require(!of.weighing, "takes weights twice");
        of.weighing = true;
        break;
      case Vector::round:
        row_ = "round";
        require(rounds_late(), "weights are rounded where they are made");
        require(of.weighing && !of.rounding, "rounds weights that nobody makes, or twice");
        of.rounding = true;
        break;
    }
    queue_.add(queue);
  }

  static constexpr bool& done_by(Block& of, Vector vector) {
    switch (vector) {
      case Vector::weigh:
      case Vector::take:
        return of.weighed;
      case Vector::differentiate:
        return of.differentiated;
      case Vector::round:
        return of.rounded;
      case Vector::give:
        break;
    }
    return of.given;
  }

  // The queue is in order: all before a piece is done with it.
  constexpr void drain(bool done, Vector vector, const Multiply& multiply) {
    if (done) return;
    for (Queue& piece : queue_) {
      Block& of = block_of(piece.block, piece.before);
      done_by(of, piece.vector) = true;
      if (piece.vector == vector && piece.block == multiply.block && piece.before == multiply.before) return;
    }
  }

  // By everybody who takes them as they are.
  constexpr bool weights_are_used(const Block& of) const {
    if (kernel_ == Kernel::giving) return of.given && (of.rounded || !rounds_late());
    return kernel_ == Kernel::values_alone ? of.weighed : of.differentiated;
  }

  // As if the queue were written where it must be at the latest.
  constexpr double alive() const {
    double sum = 0;
    for (const auto* tile : {&all_, &before_})
      for (const Block& of : *tile) {
        const bool weights = (of.scores || (kernel_ == Kernel::taking && of.weighing)) && !weights_are_used(of);
        const bool gradients = of.gradients && !of.differentiated;
        const bool rounded = makes(Product::values) && (rounds_late() ? of.rounded : of.weighed) && !of.values;
        const bool d_scores = of.differentiated && !of.keys && !of.queries;
        sum += (weights ? 1 : 0) + (gradients ? 1 : 0) + (rounded ? 0.5 : 0) + (d_scores ? 0.5 : 0);
      }
    return sum;
  }

  Kernel kernel_;
  int blocks_;
  Sum sum_;
  std::array<Block, most_blocks> all_{};
  std::array<Block, most_blocks> before_{};
  List<Queue, 8> queue_;
  double most_alive_ = 0;
  Fault fault_;
  std::string_view row_;
  int block_ = 0;
};

}  // namespace wavejit::attention_backward::schedule
