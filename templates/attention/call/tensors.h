// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The tensors of a call: sizes, types, strides, and memory that outputs have for themselves.
#pragma once

#include <cstdint>
#include <span>

#include "families/call/failure.h"
#include "families/call/refusal.h"
#include "families/call/tensor_memory.h"
#include "templates/attention/kernel/types.h"
#include "wavejit/wavejit.h"

namespace wavejit::attention {

using families::refusal::Named;

// The stride of dimension 1 as kernels use it: a dimension of one row has no stride of its own, and rows of a tile
// beyond it must not fall back onto it.
inline std::int64_t row_stride(const wavejit_tensor& tensor) {
  return tensor.sizes[1] > 1 ? tensor.strides[1] : tensor.sizes[3];
}

// Tensors [batch, length, heads, head dim]: q, k, v, o and their like. `most`: of the batch.
families::Result<void> check_sizes(const Named& named, bool may_have_no_rows, std::int64_t most);

struct TensorRules {
  std::int32_t dtype;        // that of q
  bool may_be_fp32 = false;  // instead
  // That kernels have: strides follow from one, and a refusal names them. Empty: it speaks of the stride.
  std::span<const HeadDims> head_dims = {};
  bool by_head = false;  // a kernel bounds a slice of one head, not of all heads of a batch
};
// Pointer, type and strides; sizes are known to be in range. The stride of a dimension with one element, or of a tensor
// without rows, is never used and may be anything.
families::Result<void> check_tensor(const Named& named, const TensorRules& rules);

// f32 [batch, heads, length, 1] beside q, the rows of a head side by side: lse, and what else has a number a row.
families::Result<void> check_row_numbers(const Named& named, const wavejit_tensor& q);

// Type, alignment, nothing in the reserved field.
families::Result<void> check_kind(const Named& named, std::int32_t dtype, std::uintptr_t alignment);
// The same without the type, of memory that must be there.
families::Result<void> check_memory(const Named& named, std::uintptr_t alignment);

[[gnu::cold]] families::Failure wrong_size(const Named& named, int dimension, const std::string& accepted);
[[gnu::cold]] families::Failure wrong_stride(const Named& named, int dimension, const std::string& accepted);
// `source`: the field that says so. `broadcasts`: or 1.
families::Result<void> check_size(const Named& named, int dimension, std::int64_t wanted, const char* source,
                                  bool broadcasts);

// No two elements of an output share memory; `row_dimension` has `inner` elements side by side.
families::Result<void> check_no_overlap(const Named& output, int row_dimension, std::uint64_t inner);

[[gnu::cold]] families::Failure shared_memory(const Named& output, const char* other);
inline families::Result<void> check_apart(const Named& output, const families::Range& of_output, const char* other,
                                          const families::Range& of_other) {
  if (families::surely_share(of_output, of_other)) [[unlikely]]
    return families::refusal::refuse(shared_memory(output, other));
  return {};
}

}  // namespace wavejit::attention
