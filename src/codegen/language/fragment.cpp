// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/fragment.h"

namespace wavejit::language {

std::string OperandLayout::describe() const {
  return std::to_string(rows) + " rows, k block of " + std::to_string(k_block) + " in " +
         (k_order == KOrder::contiguous ? "contiguous" : "accumulator-row") + " order, " +
         (element == Element::bf16 ? "bf16" : "fp16") + " over " + std::to_string(wave_size) + " lanes";
}

std::string AccumulatorLayout::describe() const {
  return std::to_string(rows) + "x" + std::to_string(columns) + " f32 in blocks of " + std::to_string(row_block) +
         " rows over " + std::to_string(wave_size) + " lanes";
}

}  // namespace wavejit::language
