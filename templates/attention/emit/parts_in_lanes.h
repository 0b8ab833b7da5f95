// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts that chunks left of rows, merged as by PartsChain, to the bit, where sixteen lanes that stand together have
// a row. Each of the first eight works out what one of eight parts weighs, and what came before it; then all sixteen
// merge their dims, part after part, and have its weights from that lane. So a part costs what its dims cost.
#pragma once

#include <functional>

#include "codegen/language/softmax.h"

namespace wavejit::attention {

class PartsInLanes {
 public:
  static constexpr int group = 8;  // parts that are on their way together

  struct Source {
    // Whether the lane's row sees the chunk in the lane's slot `slot`. The part of a chunk that it does not see is
    // empty and changes nothing.
    std::function<language::Value*(language::Value* slot)> sees;
    // Every row sees every chunk from the first to the last.
    bool all_see_all = false;
    // m and l of the lane's row: of a slot of the lane, from the first to the last.
    std::function<language::Value*(language::Value* slot)> statistics;
    // The lane's dims, in loads of 16 bytes. Of a slot that is uniform, and may be behind the last: nobody looks at
    // what comes of it. Zeros where the row does not see it, unless all see all.
    std::function<language::Values(language::Value* slot)> dims;
  };
  // `loads`: what a lane has of a row's O. `lane`: its number. What is given must outlive it.
  PartsInLanes(language::Kernel& kernel, const language::Softmax& softmax, int loads, language::Value* lane,
               const Source& source);

  // m, l, and O's dims in vectors of four, of the slots from `first` to `last`, both uniform; an empty row where there
  // are none.
  language::Values merged(language::Value* first, language::Value* last);

 private:
  // The weights of the lanes, a part each.
  struct Weights {
    language::MergeWeights of_part;
    language::Value* sum;  // l
  };

  language::Values merge(const language::Values& start);
  // A row, m and l of the parts that are on their way, their dims, and the first of them.
  language::Values absorb_group(const language::Values& state, bool fetches);
  Weights weigh(language::Value* first, language::Value* maximum, language::Value* statistics);
  void absorb(language::Values& row, const Weights& weights, const language::Values& state, int each);
  // The rest of a group, behind part `each`.
  language::Values absorb_rest(const language::Values& row, const Weights& weights, const language::Values& state,
                               int each);
  language::Value* slot_of_lane(language::Value* first);
  std::size_t row_values() const { return 2 + static_cast<std::size_t>(loads_); }

  language::Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const language::Softmax& softmax_;
  int loads_;
  language::Value* part_of_lane_;  // among a group's
  const Source& source_;
  language::Value* first_ = nullptr;
  language::Value* last_ = nullptr;
};

}  // namespace wavejit::attention
