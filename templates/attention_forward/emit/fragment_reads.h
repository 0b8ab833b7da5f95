// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// LDS reads that run a few fragments ahead of the matrix instructions that consume them.
#pragma once

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "codegen/language/matrix.h"

namespace wavejit::attention_forward {

// One fragment product: which block of keys, which block of dims.
struct FragmentStep {
  int keys;
  int dims;
};

class FragmentReads {
 public:
  static constexpr std::size_t usual = 4;
  FragmentReads(std::vector<FragmentStep> steps, std::function<language::OperandA(const FragmentStep&)> read,
                std::size_t distance = usual)
      : steps_(std::move(steps)), read_(std::move(read)), distance_(distance) {
    fill(distance_);
  }

  // Calls use(step, fragment) for every step in order. `all_read` is called once all reads have been asked for, and half
  // of the last ones were used.
  template <typename Use>
  void consume(Use use, const std::function<void()>& all_read = {}) {
    for (std::size_t index = 0; index < steps_.size(); ++index) {
      fill(index + distance_);
      if (all_read && index + (distance_ / 2) == steps_.size()) all_read();
      use(steps_[index], fragments_[index]);
    }
  }

 private:
  void fill(std::size_t count) {
    while (fragments_.size() < std::min(count, steps_.size())) fragments_.push_back(read_(steps_[fragments_.size()]));
  }

  std::vector<FragmentStep> steps_;
  std::function<language::OperandA(const FragmentStep&)> read_;
  std::size_t distance_;
  std::vector<language::OperandA> fragments_;
};

}  // namespace wavejit::attention_forward
