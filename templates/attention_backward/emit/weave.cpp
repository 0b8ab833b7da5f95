// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/weave.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <variant>

namespace wavejit::attention_backward {
namespace {

using language::OperandA;
using language::Strand;
using schedule::Modify;
using schedule::Multiply;
using schedule::Queue;

class Walk {
 public:
  Walk(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder)
      : weaver_(weaver), schedule_(schedule), ladder_(ladder) {
    for (const schedule::Act& act : schedule.acts) {
      const auto* multiply = std::get_if<Multiply>(&act);
      if (multiply == nullptr) continue;
      bool first = true;
      for (Multiplication& one : weaver.multiplications(*multiply))
        all_.push_back({*multiply, std::exchange(first, false), std::move(one)});
    }
  }

  void emit() {
    for (const schedule::Act& act : schedule_.acts) std::visit([&](const auto& each) { perform(each); }, act);
  }

 private:
  struct Each {
    Multiply of;
    bool first = false;  // of its product
    Multiplication what;
  };

  void read_up_to(std::size_t count) {
    while (fragments_.size() < std::min(count, all_.size())) {
      const Each& next = all_[fragments_.size()];
      if (next.first) weaver_.prepare(next.of);
      fragments_.push_back(next.what.read());
    }
  }

  // The fragments ahead are asked for behind the first matrix instruction: the memory unit is free for them then.
  void perform(const Multiply& multiply) {
    const int slots = ladder_.behind.at(static_cast<std::size_t>(multiply.product));
    int made = -1;
    for (; at_ < all_.size() && all_[at_].of.product == multiply.product && all_[at_].of.block == multiply.block;
         ++at_) {
      const Multiplication& what = all_[at_].what;
      read_up_to(at_ + 1);
      if (std::exchange(made, what.made) != what.made) {
        while (what.is_made && !what.is_made() && !queue_.empty()) write_one();
        weaver_.begin(multiply);
      }
      bool first = true;
      for (const auto& instruction : what.instructions) {
        instruction(fragments_[at_]);
        if (first) read_up_to(at_ + 1 + static_cast<std::size_t>(ladder_.read_ahead));
        if (settling_ == 0)
          write(slots - (first ? ladder_.reading : 0));
        else
          --settling_;
        first = false;
      }
    }
    weaver_.end(multiply);
  }
  void perform(const Modify& modify) { weaver_.modify(modify); }
  // What the piece takes is still in the matrix unit.
  void perform(const Queue& queue) {
    if (queue_.empty()) settling_ = ladder_.settling;
    queue_.push_back(weaver_.strand(queue));
  }

  // Slots that a piece has no use for are the next one's.
  void write(int slots) {
    while (slots > 0 && !queue_.empty()) {
      slots = queue_.front().write(slots);
      if (!queue_.front().empty()) return;
      queue_.pop_front();
    }
  }
  void write_one() {
    queue_.front().write_one();
    if (queue_.front().empty()) queue_.pop_front();
  }

  Weaver& weaver_;
  const schedule::Schedule& schedule_;
  const Ladder& ladder_;
  std::vector<Each> all_;
  std::vector<OperandA> fragments_;
  std::size_t at_ = 0;
  std::deque<Strand> queue_;
  int settling_ = 0;  // matrix instructions with nothing behind them
};

}  // namespace

void weave(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder) {
  Walk(weaver, schedule, ladder).emit();
}

}  // namespace wavejit::attention_backward
