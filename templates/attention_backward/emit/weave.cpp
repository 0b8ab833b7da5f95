// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/weave.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <optional>
#include <utility>
#include <variant>

namespace wavejit::attention_backward {
namespace {

using language::OperandA;
using language::Strand;
using schedule::Modify;
using schedule::Multiply;
using schedule::Product;
using schedule::Queue;
using schedule::Vector;

// The vector queue. A slot that a piece has no use for is the next one's.
class VectorQueue {
 public:
  void add(const Queue& what, Strand strand) { pieces_.push_back({what, std::move(strand)}); }
  void write(int slots) {
    while (slots > 0 && !pieces_.empty()) {
      slots = pieces_.front().strand.write(slots);
      if (!pieces_.front().strand.empty()) return;
      pieces_.pop_front();
    }
  }
  void drain(Vector vector, int block) {
    const auto is_it = [&](const Piece& piece) { return piece.what.vector == vector && piece.what.block == block; };
    while (std::ranges::any_of(pieces_, is_it)) {
      pieces_.front().strand.write_rest();
      pieces_.pop_front();
    }
  }

 private:
  struct Piece {
    Queue what;
    Strand strand;
  };
  std::deque<Piece> pieces_;
};

class Walk {
 public:
  Walk(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder)
      : weaver_(weaver), schedule_(schedule), ladder_(ladder) {
    for (const schedule::Act& act : schedule.acts)
      if (const auto* multiply = std::get_if<Multiply>(&act))
        for (Multiplication& one : weaver.multiplications(*multiply)) all_.push_back({*multiply, std::move(one)});
  }

  void emit() {
    for (const schedule::Act& act : schedule_.acts) std::visit([&](const auto& each) { perform(each); }, act);
  }

 private:
  struct Each {
    Multiply of;
    Multiplication what;
  };

  void read_up_to(std::size_t count) {
    while (fragments_.size() < std::min(count, all_.size())) fragments_.push_back(all_[fragments_.size()].what.read());
  }

  void perform(const Multiply& multiply) {
    if (multiply.product == Product::values) queue_.drain(Vector::weigh, multiply.block);
    if (multiply.product == Product::keys || multiply.product == Product::queries)
      queue_.drain(Vector::differentiate, multiply.block);
    weaver_.begin(multiply);
    const int slots = ladder_.behind.at(static_cast<std::size_t>(multiply.product));
    for (; at_ < all_.size() && all_[at_].of.product == multiply.product && all_[at_].of.block == multiply.block;
         ++at_) {
      read_up_to(at_ + static_cast<std::size_t>(ladder_.read_ahead));
      for (const auto& instruction : all_[at_].what.instructions) {
        instruction(fragments_[at_]);
        queue_.write(slots);
      }
    }
  }
  void perform(const Modify& modify) { weaver_.modify(modify); }
  void perform(const Queue& queue) { queue_.add(queue, weaver_.strand(queue)); }

  Weaver& weaver_;
  const schedule::Schedule& schedule_;
  const Ladder& ladder_;
  std::vector<Each> all_;
  std::vector<OperandA> fragments_;
  std::size_t at_ = 0;
  VectorQueue queue_;
};

}  // namespace

void weave(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder) {
  Walk(weaver, schedule, ladder).emit();
}

}  // namespace wavejit::attention_backward
