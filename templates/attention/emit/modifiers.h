// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What scores pass through between the matrix unit and the softmax: soft cap, bias, ALiBi, and the mask last. Exact
// definitions: docs/canonical-arithmetic.md, "Modifiers".
//
// A kernel without modifiers keeps raw scores and lets the softmax scale them in the one fma that it needs anyway. A
// kernel with any of them turns scores into powers of two here, and its softmax scales by 1.
#pragma once

#include <memory>
#include <span>

#include "codegen/language/fragment.h"
#include "templates/attention/emit/query_tile.h"
#include "templates/attention/kernel/modifiers.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// Where the bits of a bool mask begin (i64), of the tile's sequence and head.
language::Value* bits_of_mask(language::Kernel& kernel, const ScoreFields& fields, const QueryTile& queries);

class ScoreModifiers {
 public:
  // `bias_type`: the type of the bias's elements. `fields`: where the kernel's arguments have what modifiers need.
  ScoreModifiers(language::Kernel& kernel, const Modifiers& modifiers, DataType bias_type, const ScoreFields& fields,
                 const QueryTile& queries);

  // c of the softmax that follows.
  language::Value* softmax_scale() const;

  // Begins the loads of what a tile's modifiers read from memory, into 16 registers with a bias (32 where it is f32),
  // into two with bits of a bool mask, else into none. To be called early enough before `apply`, with the same tile.
  language::Values fetch(language::Value* marked) const;

  // Raw scores of a tile → modified, hidden keys −inf. The one call between products and softmax in every pipeline.
  // `marked`: the tile, with its marks where the walk has them. `first_part`: the 32 keys of it with which `scores`
  // begin.
  void apply(language::Value* marked, const language::Values& fetched, std::span<language::Accumulator> scores,
             std::size_t first_part = 0) const;

 private:
  bool scales() const { return modifiers_.any() || queries_.row_scale != nullptr; }
  language::Value* rounded_to_half(language::Value* score, language::Value* bias) const;
  std::size_t field(std::size_t in_scores) const { return fields_.scores + in_scores; }
  language::Value* bias_head_stride() const;
  language::Buffer bias_buffer() const;
  language::Value* bias_offset() const;
  // Bits of a bool mask stand where a bias would: a block of 64 rows after the other, in it tiles, and a row's 64.
  language::Buffer bits_buffer() const;
  language::Value* bits_offset() const;
  // x of the score in register r of a part → with the bias; with slopes.
  language::Value* biased(const language::Values& fetched, std::size_t part, int r, language::Value* limit,
                          language::Value* x) const;
  language::Value* sloped(language::Value* distance, int key, language::Value* x) const;
  void apply_bias_by_tile(language::Value* marked, const language::Values& fetched,
                          std::span<language::Accumulator> scores, std::size_t first_part) const;
  void apply_masks(language::Value* marked, const language::Values& fetched, std::span<language::Accumulator> scores,
                   std::size_t first_part) const;
  language::Value* bias_of(const language::Values& fetched, std::size_t part, int r) const;

  language::Kernel& kernel_;
  Modifiers modifiers_;
  DataType bias_type_;
  ScoreFields fields_;
  const QueryTile& queries_;
  // All uniform but the lane offset, the rate of integers and, with packed heads, the slope; null where nobody asks for
  // them.
  language::Value* cap_ = nullptr;  // powers of two
  language::Value* minus_two_cap_ = nullptr;
  language::Value* cap_rate_ = nullptr;
  language::Value* minus_slope_ = nullptr;  // powers of two a key
  std::unique_ptr<language::Buffer> bias_;  // of this batch, head and sequence
  std::unique_ptr<language::Buffer> bits_;
  language::Value* bias_row_stride_ = nullptr;
  language::Value* bias_offset_ = nullptr;  // where the lane's row and group start; null: made anew
};

}  // namespace wavejit::attention
