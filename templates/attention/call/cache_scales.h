// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scales of a cache of 8 bits in a call: fp32 [B or 1, 1, Hkv or 1, 1], data null: none. The scale of an O of 8 bits.
#pragma once

#include "families/call/family.h"
#include "families/call/refusal.h"
#include "templates/attention/call/data_type.h"
#include "templates/attention/kernel/cache_scale_arguments.h"
#include "templates/attention/kernel/output_scale.h"

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

// The scale of O as a call gives it: one number, in device memory or here.
struct GivenOutputScale {
  const float* address;
  float value;
  std::int32_t unused;
  const wavejit_tensor* lse = nullptr;  // written beside O; null: not
};
[[gnu::cold]] families::Failure bad_output_scale(const wavejit_tensor& o, const GivenOutputScale& scale);
families::Result<void> check_scale_of_bytes(const wavejit_tensor& o, const GivenOutputScale& scale);
inline families::Result<void> check_output_scale(const wavejit_tensor& o, const GivenOutputScale& scale) {
  const bool given = scale.address != nullptr || scale.value != 0 || scale.unused != 0;
  if (element_bytes_of(o) == 1) [[unlikely]]
    return check_scale_of_bytes(o, scale);
  if (given) [[unlikely]]
    return families::refusal::refuse(bad_output_scale(o, scale));
  return {};
}
inline OutputScale output_scale_argument(const GivenOutputScale& scale) {
  return {.number = reinterpret_cast<std::uintptr_t>(scale.address), .value = scale.value};
}

}  // namespace wavejit::attention
