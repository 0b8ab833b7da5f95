// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Query positions and the rows of a tile, which are positions of several heads where heads are packed.
#pragma once

#include <cstddef>

#include "codegen/language/kernel.h"
#include "templates/attention/emit/integers.h"
#include "templates/attention_forward/kernel/arguments.h"

namespace wavejit::attention_forward {

// The kv head of a query head, without a division: see Arguments::kv_head_multiplier.
inline language::Value* kv_head_of(language::Kernel& kernel, language::Value* query_head) {
  return attention::divided(kernel, query_head, kernel.argument_i32(offsetof(Arguments, kv_head_multiplier)));
}

class Positions {
 public:
  // `group`: how many heads a position has; null where a row is a position.
  Positions(language::Kernel& kernel, language::Value* group) : kernel_(kernel), group_(group) {}

  language::Value* group() const { return group_; }
  language::Value* rows(language::Value* positions) const {
    return group_ ? kernel_.ir().CreateMul(positions, group_) : positions;
  }
  language::Value* position(language::Value* row) const { return group_ ? kv_head_of(kernel_, row) : row; }

 private:
  language::Kernel& kernel_;
  language::Value* group_;
};

}  // namespace wavejit::attention_forward
