// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts that chunks left of the rows of a tile, merged from the first upward as a walk over all of them does, and
// the rows' end. Whoever merges: the waves of a second launch (combine.h), or those of the walk's workgroup that was
// the last to leave its parts (arrivals.h).
#pragma once

#include <optional>

#include "codegen/language/buffer.h"
#include "codegen/language/softmax.h"
#include "templates/attention/emit/listed_keys.h"
#include "templates/attention/emit/parts_chain.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/sequence.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent {

// Up to 32 rows of one sequence, whose records stand side by side. Uniform but for the lane.
struct PartsTile {
  language::Value* lane = nullptr;
  language::Value* batch = nullptr;
  attention::Sequence sequence = {};
  language::Value* heads = nullptr;
  language::Value* multiplier = nullptr;  // of a division by them
  language::Value* first = nullptr;       // row of the sequence
  language::Value* behind = nullptr;      // the row behind the last of those that tiles are cut from; beyond `first`
};

// A wave has a tile's rows side by side, as often as they fit; a lane has dims of its row, which follow each other.
class PartsMerge {
 public:
  // `scale`: c > 0. `loads`: what a lane has of a row's O, in loads of 16 bytes. `reach`: as the parts were stored.
  PartsMerge(language::Kernel& kernel, const CombineKernel& spec, language::Value* scale, const PartsTile& tile,
             int loads, language::Reach reach);

  // How many times a wave has the rows side by side, and how many parts of its dims a row has: a lane's each.
  language::Value* beside() const { return beside_; }
  int parts() const { return spec_.head_dim / (loads_ * load_dims); }
  // Parts `before` and on of every row, as many as a wave has. Uniform, less than parts().
  void merge_from(language::Value* before);

 private:
  static constexpr int load_dims = attention::PartsChain::load_dims;
  static_assert(record_load_bytes == attention::PartsChain::load_bytes);
  static constexpr int statistics_bytes = attention::PartsChain::statistics_bytes;

  language::Value* last_key(language::Value* query);
  language::Value* zero_dims();
  language::Value* sees(language::Value* slot);
  language::Values load(const language::Buffer& records, language::Value* slot);
  void store(const language::Values& merged, const attention::QueryTile& tile);

  language::Kernel& kernel_;
  llvm::IRBuilder<>& ir_;
  const CombineKernel& spec_;
  language::Softmax softmax_;
  int loads_;
  PartsTile tile_;
  language::Reach reach_;
  std::optional<attention::ListedParts> listed_;  // of listed keys
  // For the tile and the wave, uniform.
  language::Value* rows_ = nullptr;
  language::Value* beside_ = nullptr;
  language::Value* last_ = nullptr;  // chunk of which some row sees a key; −1: none
  // For the lane.
  language::Value* row_of_tile_ = nullptr;
  language::Value* part_ = nullptr;         // of a row's dims
  language::Value* own_ = nullptr;          // where its dims begin in a record; nowhere: it has none
  language::Value* last_of_row_ = nullptr;  // as last_
};

}  // namespace wavejit::attention_latent
