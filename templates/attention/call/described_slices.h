// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The slices that kernels bound, of tensors that a problem descriptor says and that lie without gaps: what the check of
// a call refuses, explain, prepare and prebuild refuse with the same words.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "families/call/failure.h"
#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

struct DescribedTensor {
  const char* name = nullptr;
  DataType type = DataType::bf16;
  std::int64_t rows = 0;  // of a sequence, of packed ones the longest; of keys in pages those of a page
  std::int64_t heads = 0;
  std::int64_t dims = 0;
  bool packed = false;
  bool heads_outside = false;  // [heads, rows, dims], else [rows, heads, dims]
  bool scattered = false;      // [heads, dims, rows]
  bool by_head = false;        // TensorRules has it
};

families::Result<void> check_described_slices(std::initializer_list<DescribedTensor> tensors);

}  // namespace wavejit::attention
