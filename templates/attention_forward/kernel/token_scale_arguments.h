// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel of a cache of 8 bits reads where each key of each kv head has scales of its own. Of what stands with
// the scales of heads a batch is then what it is of K and V: a sequence, or a page.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention/kernel/arguments.h"
#include "templates/attention_forward/kernel/cache_arguments.h"

namespace wavejit::attention_forward {

// From one key to the next, in bytes.
struct TokenStrides {
  std::uint32_t k = 0;
  std::uint32_t v = 0;
};

struct TokenScaleArguments {
  CacheArguments others;
  TokenStrides strides;
};

inline constexpr std::size_t token_strides_at = offsetof(TokenScaleArguments, strides);
static_assert(token_strides_at == sizeof(CacheArguments));

// As those of a tensor.
constexpr attention::TensorFields token_scale_fields(std::size_t scale, std::size_t stride) {
  const std::size_t at = cache_scales_at + scale;
  return {.pointer = at + offsetof(attention::CacheScale, numbers),
          .batch_stride = at + offsetof(attention::CacheScale, batch_stride),
          .head_stride = at + offsetof(attention::CacheScale, head_stride),
          .row_stride = token_strides_at + stride};
}
inline constexpr attention::TensorFields k_token_fields =
    token_scale_fields(offsetof(CacheScales, k), offsetof(TokenStrides, k));
inline constexpr attention::TensorFields v_token_fields =
    token_scale_fields(offsetof(CacheScales, v), offsetof(TokenStrides, v));

}  // namespace wavejit::attention_forward
