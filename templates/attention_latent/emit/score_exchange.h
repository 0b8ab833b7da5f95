// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scores of a tile through LDS: of two neighbouring waves, which share rows, the even one has multiplied those of keys
// 0 … 31 and the odd one those of keys 32 … 63. Afterwards both have all, bit for bit as if each had multiplied them.
#pragma once

#include <functional>
#include <vector>

#include "codegen/language/lds.h"
#include "codegen/language/matrix.h"

namespace wavejit::attention_latent {

class ScoreExchange {
 public:
  // A lane writes 16 bytes at a time. The pieces of all lanes lie in rows of LDS at equal distances; after them come
  // the next 16 bytes of each lane, and so on. Each wave has a place of its own.
  struct Place {
    int region;
    int offset;      // bytes, of the first wave
    int row_bytes;   // that are written of a row
    int row_pitch;   // from row to row
    int wave_pitch;  // from wave to wave
  };
  // `lds` must stay.
  ScoreExchange(language::Kernel& kernel, const language::Lds& lds, const Place& place);

  // Uniform: the wave's own block of 32 keys.
  language::Value* own_block() const;
  // Contains one barrier. Another barrier must come before the next exchange, and before it waves must have waited for
  // their LDS reads. `meanwhile`: emitted after the barrier in here, while no read of LDS is in flight.
  std::vector<language::Accumulator> exchange(const language::Accumulator& own,
                                              const std::function<void()>& meanwhile = {}) const;

 private:
  language::Kernel& kernel_;
  const language::Lds& lds_;
  Place place_;
};

}  // namespace wavejit::attention_latent
