// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scores of integer queries and keys (docs/canonical-arithmetic.md, "Integers"): exact sums, and the scales of rows and
// keys.
#pragma once

#include <vector>

#include "codegen/language/integer_matrix.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/emit/tiles.h"
#include "templates/attention_forward/kernel/spec.h"

namespace wavejit::attention_forward {

// What the lane's row and the sequence's keys count for, one product: q_scale · k_scale, without a scale a key has of
// its own.
struct IntegerScale {
  language::Value* q;  // per lane
  language::Value* k;  // uniform; null where each key has one
};
IntegerScale integer_scale(language::Kernel& kernel, const ForwardKernel& spec, const attention::QueryTile& tile,
                           language::Value* kv_head);

class IntegerProducts {
 public:
  IntegerProducts(language::Kernel& kernel, const ForwardKernel& spec, const attention::QueryTile& tile,
                  language::Value* kv_head, language::Value* key_start, language::Value* key_length);

  // As many as load_query loads where elements have 16 bits.
  static int loaded_dims(const ForwardKernel& spec) { return spec.head_dim_qk / 2; }

  // Scales of the tile's keys on their way, none without; four of neighbouring keys each.
  language::Values fetch(language::Value* tile) const;
  // Raw scores of a tile in f32, each key's times its own scale.
  std::vector<language::Accumulator> scores(attention::TileStream& keys, int buffer, const language::Values& query,
                                            const language::Values& fetched) const;

 private:
  language::Kernel& kernel_;
  language::IntegerMatrix matrix_;
  std::optional<language::Buffer> key_scales_;
  language::Value* row_stride_ = nullptr;
  language::Value* lane_group_ = nullptr;
};

}  // namespace wavejit::attention_forward
