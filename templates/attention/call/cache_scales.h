// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales of a cache of 8 bits in a call: fp32 [B or 1, 1, Hkv or 1, 1], data null: none.
#pragma once

#include "families/call/family.h"
#include "families/call/refusal.h"
#include "templates/attention/kernel/cache_scale_arguments.h"

namespace wavejit::attention {

struct CacheScaleCall {
  const wavejit_tensor& k;
  const wavejit_tensor& o;
  const wavejit_tensor* lse;  // null: not wanted
  std::int64_t batch;
  std::int64_t kv_heads;
};
families::Result<void> check_cache_scale(const families::refusal::Named& named, const CacheScaleCall& call);

// From sequence `first` on.
CacheScale cache_scale_argument(const wavejit_tensor& scale, std::uint32_t first);

}  // namespace wavejit::attention
