// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The scores of a row as a workgroup walks them: eight of a lane a step, in two loads, as 32-bit numbers that ascend
// with them. The number 0 is that of no key.
#pragma once

#include <array>
#include <functional>

#include "codegen/language/buffer.h"
#include "codegen/language/kernel.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::sparse_indexer {

inline constexpr int quad_keys = 4;  // of a lane's load
inline constexpr int quad_bytes = 16;
inline constexpr int loads = 2;  // of a lane at a time
inline constexpr int load_keys = select_lanes * quad_keys;
inline constexpr int wave_keys = load_keys * loads;
inline constexpr int walk_keys = wave_keys * select_waves;

class RowScores {
 public:
  // `count`: how many keys the row has, uniform.
  RowScores(language::Kernel& kernel, const language::Buffer& scores, language::Value* count);

  // What a load brings: its first key in the row, scores as f32 bits, and numbers.
  struct Four {
    language::Value* first;
    std::array<language::Value*, quad_keys> bits;
    std::array<language::Value*, quad_keys> numbers;
  };
  // Load `load` of a lane, from key `first` of the walk on.
  Four ordered(language::Value* quad, language::Value* first, int load) const;

  // (first key of the walk's step, its loads, state) → state
  using Step = std::function<language::Values(language::Value*, const language::Values&, const language::Values&)>;
  // Over the row. The next step's loads are on their way meanwhile; those behind the row read zeros.
  language::Values walk(const language::Values& initial, const Step& body) const;

  // The wave's first key of a step.
  language::Value* wave_first() const { return wave_first_; }

 private:
  language::Value* first_of(language::Value* first, int load) const;
  language::Values read(language::Value* first) const;

  language::Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  language::Buffer scores_;
  language::Value* count_;
  language::Value* wave_first_;
  language::Value* lane_first_;  // of a step's keys, the lane's first
};

}  // namespace wavejit::sparse_indexer
