// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/weave.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <utility>
#include <variant>

namespace wavejit::attention_backward {
namespace {

using language::Strand;
using schedule::Modify;
using schedule::Multiply;
using schedule::Queue;

class Walk {
 public:
  Walk(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder, const Buffers& buffers,
       const Fragments& ahead)
      : weaver_(weaver), schedule_(schedule), ladder_(ladder), buffers_(buffers), fragments_(ahead) {
    for (const schedule::Act& act : schedule.acts) {
      const auto* multiply = std::get_if<Multiply>(&act);
      if (multiply == nullptr) continue;
      bool first = true;
      for (Multiplication& one : weaver.multiplications(*multiply))
        all_.push_back({*multiply, std::exchange(first, false), std::move(one)});
    }
  }

  void emit() {
    push(weaver_.receive_columns());
    const int columns = pushed_;
    push(weaver_.fetch());
    weaver_.prepare(all_.front().of);
    const auto is_columns = [](const Each& each) { return !schedule::reads_rows(each.of.product); };
    first_columns_ = static_cast<std::size_t>(std::ranges::find_if(all_, is_columns) - all_.begin());
    readable_ = buffers_.alternate() ? first_columns_ : all_.size();
    turns_ = {{.at = first_columns_, .then = all_.size(), .needs = columns},
              {.at = all_.size(), .then = all_.size() + static_cast<std::size_t>(ladder_.read_ahead)}};
    if (!buffers_.alternate()) turns_.pop_front();
    write(ladder_.opening);
    for (const schedule::Act& act : schedule_.acts) std::visit([&](const auto& each) { perform(each); }, act);
  }
  // The first fragments that a walk asks for of the tile in `buffer`.
  Fragments first_of(int buffer) const {
    Fragments first;
    for (std::size_t i = 0; i < static_cast<std::size_t>(ladder_.read_ahead); ++i)
      first.push_back(all_[i].what.read(buffer));
    return first;
  }
  Fragments ahead() const {
    return {fragments_.begin() + static_cast<std::ptrdiff_t>(std::min(all_.size(), fragments_.size())),
            fragments_.end()};
  }

 private:
  struct Each {
    Multiply of;
    bool first = false;  // of its product
    Multiplication what;
  };

  // A barrier before fragment `at` may be read; then everything before `then` may. `needs`: as many strands are
  // written.
  struct Turn {
    std::size_t at = 0;
    std::size_t then = 0;
    int needs = 0;
  };

  void read_up_to(std::size_t count) {
    while (fragments_.size() < std::min(count, readable_)) {
      const std::size_t at = fragments_.size();
      const Each& next = all_[at % all_.size()];
      if (at != 0 && next.first && at < all_.size()) weaver_.prepare(next.of);
      fragments_.push_back(next.what.read(at < all_.size() ? buffers_.own : buffers_.next));
    }
  }
  void turn_at(std::size_t at) {
    if (turns_.empty() || at + static_cast<std::size_t>(ladder_.turning) != turns_.front().at) return;
    const Turn turn = turns_.front();
    turns_.pop_front();
    while (pushed_ - static_cast<int>(queue_.size()) < (turns_.empty() ? pushed_ : turn.needs)) write_one();
    weaver_.turn();
    readable_ = turn.then;
  }

  // The fragments ahead are asked for behind the first matrix instruction: the memory unit is free for them then.
  void perform(const Multiply& multiply) {
    const int slots = ladder_.behind.at(static_cast<std::size_t>(multiply.product));
    const bool is_last = all_.back().of.product == multiply.product && all_.back().of.block == multiply.block;
    if (is_last) push(weaver_.receive());
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
        if (first) turn_at(at_);
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
    push(weaver_.strand(queue));
    // What other waves take is read before they give again, which they do behind the next barrier.
    if (queue.vector == schedule::Vector::take && buffers_.alternate()) turns_.front().needs = pushed_;
  }

  // Slots that a piece has no use for are the next one's.
  void write(int slots) {
    while (slots > 0 && !queue_.empty()) {
      slots = queue_.front().write(slots);
      if (!queue_.front().empty()) return;
      queue_.pop_front();
    }
  }
  void push(Strand strand) {
    queue_.push_back(std::move(strand));
    ++pushed_;
  }
  void write_one() {
    queue_.front().write_one();
    if (queue_.front().empty()) queue_.pop_front();
  }

  Weaver& weaver_;
  const schedule::Schedule& schedule_;
  const Ladder& ladder_;
  Buffers buffers_;
  std::vector<Each> all_;
  Fragments fragments_;
  std::size_t first_columns_ = 0;
  std::size_t readable_ = 0;
  std::deque<Turn> turns_;
  int pushed_ = 0;
  std::size_t at_ = 0;
  std::deque<Strand> queue_;
  int settling_ = 0;  // matrix instructions with nothing behind them
};

}  // namespace

Fragments weave(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder, const Buffers& buffers,
                const Fragments& ahead) {
  Walk walk(weaver, schedule, ladder, buffers, ahead);
  walk.emit();
  return walk.ahead();
}

Fragments read_first(Weaver& weaver, const schedule::Schedule& schedule, const Ladder& ladder, int buffer) {
  return Walk(weaver, schedule, ladder, {}, {}).first_of(buffer);
}

}  // namespace wavejit::attention_backward
