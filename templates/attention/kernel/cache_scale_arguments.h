// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel reads of the scales of a cache of 8 bits: f32 in device memory, one for all, for each kv head, or for
// each head of each sequence. A stride of 0 broadcasts.
#pragma once

#include <cstdint>

namespace wavejit::attention {

struct CacheScale {
  std::uint64_t numbers = 0;       // null: 1
  std::uint64_t batch_stride = 0;  // bytes
  std::uint64_t head_stride = 0;
};

struct CacheScales {
  CacheScale k;
  CacheScale v;
};

static_assert(sizeof(CacheScales) == 48);

}  // namespace wavejit::attention
