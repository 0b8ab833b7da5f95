// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Reads of operands from LDS, a few products ahead of the one that takes them: code comes out in the order in which it
// is emitted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "codegen/language/fragment.h"

namespace wavejit::attention_backward {

// use(i, read(i)) for 0 … count − 1, in order; up to `distance` fragments are in registers.
template <typename Read, typename Use>
void read_ahead(int count, int distance, Read read, Use use) {
  std::vector<language::OperandA> fragments;
  for (int i = 0; i < count; ++i) {
    while (static_cast<int>(fragments.size()) < std::min(i + distance, count))
      fragments.push_back(read(static_cast<int>(fragments.size())));
    use(i, fragments[static_cast<std::size_t>(i)]);
  }
}

}  // namespace wavejit::attention_backward
