// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scores of a tile through LDS: of two neighbouring waves, which share rows, the even one has multiplied those of keys
// 0 … 31 and the odd one those of keys 32 … 63. Afterwards both have all, bit for bit as if each had multiplied them.
#pragma once

#include <vector>

#include "codegen/language/lds.h"
#include "codegen/language/matrix.h"

namespace wavejit::attention_latent {

class ScoreExchange {
 public:
  // In `region`, from byte `offset` on. `lds` must stay.
  ScoreExchange(language::Kernel& kernel, const language::Lds& lds, int region, int offset);

  // Uniform: the wave's own block of 32 keys.
  language::Value* own_block() const;
  // Behind a barrier of its own. Before the next exchange another one must stand, for which waves have waited for their
  // reads of LDS.
  std::vector<language::Accumulator> exchange(const language::Accumulator& own) const;

 private:
  language::Kernel& kernel_;
  const language::Lds& lds_;
  int region_;
  int offset_;
};

}  // namespace wavejit::attention_latent
