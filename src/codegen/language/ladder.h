// Matrix instructions with other work in their shadow.
//
// A matrix instruction occupies its unit for several issue slots in which the wave may issue to the vector unit. A
// ladder says how many operations stand behind each matrix instruction; with the backend's schedulers off, the order
// written here is the order that runs.
#pragma once

#include <deque>
#include <functional>
#include <span>
#include <utility>

namespace wavejit::language {

// `matrix` matrix instructions, each followed by `vector` operations.
struct Rung {
  int matrix = 0;
  int vector = 0;
};

// Operations in the order in which they will be written; each is one machine instruction or a few.
class Strand {
 public:
  using Operation = std::function<void()>;
  void add(Operation operation) { operations_.push_back(std::move(operation)); }
  // Writes the next `count` operations, or as many as there are.
  void write(int count) {
    for (; count > 0 && !operations_.empty(); --count) {
      operations_.front()();
      operations_.pop_front();
    }
  }
  void write_rest() {
    while (!operations_.empty()) write(1);
  }

 private:
  std::deque<Operation> operations_;
};

// Writes both along the ladder. What does not fit on it comes at the end: nothing is lost, only late.
inline void interleave(Strand& matrix, Strand& vector, std::span<const Rung> ladder) {
  for (const Rung& rung : ladder) {
    for (int index = 0; index < rung.matrix; ++index) {
      matrix.write(1);
      vector.write(rung.vector);
    }
  }
  matrix.write_rest();
  vector.write_rest();
}

}  // namespace wavejit::language
