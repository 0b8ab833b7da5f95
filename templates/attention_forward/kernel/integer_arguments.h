// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel of integer queries and keys reads beside its other arguments: their scales. They stand behind whatever
// else any kernel has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/strided_arguments.h"

namespace wavejit::attention_forward {

// f32 in device memory. Strides are bytes, 0 broadcasts. Rows count as those of the tensor do.
struct RowScale {
  std::uint64_t numbers = 0;  // null: 1
  std::uint64_t batch_stride = 0;
  std::uint64_t head_stride = 0;
  std::uint64_t row_stride = 0;  // of k: read only by kernels whose spec has cache_scales=token
};

struct IntegerScales {
  RowScale q;
  RowScale k;
  float scale = 1;  // read only by kernels whose spec has scores=fp16: without log2 e
  std::uint32_t nothing = 0;
};

struct IntegerArguments {
  StridedArguments others;
  IntegerScales scales;
};

// The arguments that follow the scales of a cache.
struct BehindOfIntegers {
  DimStrides dims;
  IntegerScales scales;
};

inline constexpr std::size_t integer_scales_at = offsetof(IntegerArguments, scales);
static_assert(integer_scales_at == sizeof(StridedArguments));
static_assert(dim_strides_at + offsetof(BehindOfIntegers, scales) == integer_scales_at);
static_assert(sizeof(IntegerScales) == 72);

}  // namespace wavejit::attention_forward
