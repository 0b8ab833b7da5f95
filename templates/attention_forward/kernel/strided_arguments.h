// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel of tensors whose dims need not stand side by side reads beside its other arguments: how far apart they
// are. They stand behind whatever else any kernel has.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/cache_arguments.h"

namespace wavejit::attention_forward {

// Bytes. Read only by kernels whose spec has the tensor's word.
struct DimStrides {
  std::uint32_t q = 0;
  std::uint32_t k = 0;
  std::uint32_t v = 0;
  std::uint32_t o = 0;
};

struct StridedArguments {
  CacheArguments others;
  DimStrides dims;
};

inline constexpr std::size_t dim_strides_at = offsetof(StridedArguments, dims);
static_assert(dim_strides_at == sizeof(CacheArguments));

}  // namespace wavejit::attention_forward
