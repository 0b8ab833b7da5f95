// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Operations in a row, and two such rows in one: matrix instructions with other work in their shadow.
//
// A matrix instruction occupies its unit for a while in which the wave may issue to the vector unit. With the backend's
// schedulers off, the order written here is the order that runs. A ladder says how much stands behind each matrix
// instruction, in slots. A slot is what one short operation takes; longer ones may be given more (Strand::add).
#pragma once

#include <deque>
#include <functional>
#include <iterator>
#include <utility>

namespace wavejit::language {

// Operations in the order in which they will be written. Each is one machine instruction or a few, and takes a given
// number of slots.
class Strand {
 public:
  using Operation = std::function<void()>;
  void add(Operation operation, int slots = 1) { operations_.emplace_back(std::move(operation), slots); }
  bool empty() const { return operations_.empty(); }
  int size() const { return static_cast<int>(operations_.size()); }
  // Writes the operations of the next `slots` slots, or as many as there are. If an operation does not fit, its slots
  // are kept for the next call; slots without an operation are returned.
  int write(int slots) {
    slots_ += slots;
    while (slots_ > 0 && !operations_.empty() && operations_.front().second <= slots_) {
      slots_ -= operations_.front().second;
      write_next();
    }
    return operations_.empty() ? slots_ : 0;
  }
  void write_one() {
    if (!operations_.empty()) write_next();
  }
  void write_rest() {
    while (!operations_.empty()) write_next();
  }
  // Puts the operations of `other` behind `slots` of these.
  void insert(int slots, Strand other) {
    auto at = operations_.begin();
    for (; at != operations_.end() && slots > 0; ++at) slots -= at->second;
    operations_.insert(at, std::make_move_iterator(other.operations_.begin()),
                       std::make_move_iterator(other.operations_.end()));
  }

 private:
  void write_next() {
    const Operation operation = std::move(operations_.front().first);
    operations_.pop_front();
    operation();
  }

  std::deque<std::pair<Operation, int>> operations_;
  int slots_ = 0;
};

// Writes both along a ladder. Its rungs are `matrix` matrix instructions, each followed by operations of `vector`
// slots. What of `vector` does not fit on it is left.
template <typename Ladder>
void interleave_what_fits(Strand& matrix, Strand& vector, const Ladder& ladder) {
  for (const auto& rung : ladder) {
    for (int index = 0; index < rung.matrix; ++index) {
      matrix.write(1);
      vector.write(rung.vector);
    }
  }
  matrix.write_rest();
}

// The same, and what does not fit comes at the end: nothing is lost, only late.
template <typename Ladder>
void interleave(Strand& matrix, Strand& vector, const Ladder& ladder) {
  interleave_what_fits(matrix, vector, ladder);
  vector.write_rest();
}

}  // namespace wavejit::language
