// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts that chunks left of rows, one after the other from the first upward, as a walk over all of them merges
// them. A lane has dims of one row, and works out the row's weights for itself: so rows stand side by side in a wave.
#pragma once

#include <functional>

#include "codegen/language/softmax.h"

namespace wavejit::attention {

class PartsChain {
 public:
  static constexpr int load_bytes = 16;
  static constexpr int load_dims = load_bytes / static_cast<int>(sizeof(float));
  static constexpr int statistics_bytes = 8;  // m and l of a row

  // Where the parts of a slot, which is uniform, come from.
  struct Source {
    // Whether the lane's row sees the chunk. Another part is an empty one, which changes nothing.
    std::function<language::Value*(language::Value* slot)> sees;
    // m and l, then the lane's dims, in loads of 16 bytes: zeros where the row does not see it. Asked for slots behind
    // the last, too, of which nobody sees one.
    std::function<language::Values(language::Value* slot)> load;
  };
  // `loads`: what a lane has of a row's O. What is given must outlive it.
  PartsChain(language::Kernel& kernel, const language::Softmax& softmax, int loads, const Source& source);

  // m, l, and O's dims in vectors of four, of the slots from `first` to `last`, both uniform; an empty row where there
  // are none.
  language::Values merged(language::Value* first, language::Value* last);

 private:
  language::Value* zero_dims() const;
  language::Values merge(language::Value* first, language::Value* last, const language::Values& start);
  language::Values absorb_group(const language::Values& before, bool fetches);
  void absorb(language::Values& row, const language::Values& record, language::Value* sees);

  language::Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const language::Softmax& softmax_;
  int loads_;
  int group_;  // records that are on their way together
  const Source& source_;
};

}  // namespace wavejit::attention
