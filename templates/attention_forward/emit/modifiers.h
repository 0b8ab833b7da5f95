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
#include "templates/attention_forward/emit/workgroup.h"

namespace wavejit::attention_forward {

// The f32 that the lane's query head has in an array of one for each head: uniform, but for packed heads.
language::Value* number_of_head(language::Kernel& kernel, const Workgroup& workgroup, language::Value* numbers);

class ScoreModifiers {
 public:
  ScoreModifiers(language::Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup);

  // c of the softmax that follows.
  language::Value* softmax_scale() const;

  // Begins the loads of what a tile's modifiers read from memory, into 16 registers with a bias, else into none.
  // To be called early enough before `apply`.
  language::Values fetch(language::Value* tile) const;

  // Raw scores of a tile → modified, hidden keys −inf. The one call between products and softmax in every pipeline.
  void apply(language::Value* tile, const language::Values& fetched, std::span<language::Accumulator> scores) const;

 private:
  language::Value* bias_offset() const;
  language::Value* bias_of(const language::Values& fetched, std::size_t part, int r) const;

  language::Kernel& kernel_;
  const KernelSpec& spec_;
  const Workgroup& workgroup_;
  // All uniform but the lane offset and, with packed heads, the slope; null where the spec does not ask for them.
  language::Value* cap_ = nullptr;  // powers of two
  language::Value* minus_two_cap_ = nullptr;
  language::Value* cap_rate_ = nullptr;
  language::Value* minus_slope_ = nullptr;  // powers of two a key
  std::unique_ptr<language::Buffer> bias_;  // of this batch, head and sequence
  language::Value* bias_row_stride_ = nullptr;
  language::Value* bias_offset_ = nullptr;  // where the lane's row and group start; null: made anew
};

}  // namespace wavejit::attention_forward
