// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What waves that share rows tell each other by LDS: each has a tile, and all want what it makes of it, in the order of
// the tiles. Lanes of all waves own the same rows, so that a lane reads what the same lane of another wave wrote.
//
// Who writes and who reads stand on two sides of a barrier, for which the writer has waited (synchronize.h).
#pragma once

#include <span>
#include <vector>

#include "codegen/language/lds.h"
#include "codegen/language/matrix.h"
#include "codegen/language/softmax.h"
#include "templates/attention_forward/kernel/chunk_exchange_plan.h"

namespace wavejit::attention_forward {

class ChunkExchange {
 public:
  // `lds` must stay; `offset`: bytes, where the room begins.
  ChunkExchange(language::Kernel& kernel, const language::Lds& lds, int region, int offset, int waves);

  // The wave's own.
  void put_maximum(language::Value* maximum) const;
  void put_sums(const language::RunningSums& sums) const;
  void put_weights(int operand, language::Value* dwords) const;

  // The maxima of all tiles in turn.
  language::Values maxima() const;
  language::RunningSums sums(int tile) const;
  language::Value* weights(int tile, int operand) const;

 private:
  language::Value* floats(int offset, int count) const;

  language::Kernel& kernel_;
  const language::Lds& lds_;
  int region_;
  ChunkExchangePlan plan_;
  language::Value* lane_;  // bytes
  // Where the wave writes, as a tile's place.
  language::Value* own_maximum_;
  language::Value* own_sums_;
  language::Value* own_weights_;
};

}  // namespace wavejit::attention_forward
