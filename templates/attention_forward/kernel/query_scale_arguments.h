// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel whose Q is bytes reads beside the scales of K and V: that of Q, one for each kv head.
#pragma once

#include <cstddef>

#include "templates/attention_forward/kernel/cache_arguments.h"

namespace wavejit::attention_forward {

struct QueryScaleArguments {
  CacheArguments others;
  attention::CacheScale q;
};

inline constexpr std::size_t query_scale_at = offsetof(QueryScaleArguments, q);
static_assert(query_scale_at == sizeof(CacheArguments));

}  // namespace wavejit::attention_forward
