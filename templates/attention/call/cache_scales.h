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

[[gnu::cold]] families::Failure bad_output_scale(const wavejit_output_scale& scale, const wavejit_tensor& o);
families::Result<void> check_scale_of_bytes(const wavejit_output_scale& scale, const wavejit_tensor& o,
                                            const wavejit_tensor& lse);
// `lse`: written beside O; data null: not.
inline families::Result<void> check_output_scale(const wavejit_output_scale& scale, const wavejit_tensor& o,
                                                 const wavejit_tensor& lse) {
  if (element_bytes_of(o) == 1) [[unlikely]]
    return check_scale_of_bytes(scale, o, lse);
  if (scale.o_scale != nullptr || scale.o_scale_value != 0 || scale.unused != 0) [[unlikely]]
    return families::refusal::refuse(bad_output_scale(scale, o));
  return {};
}
inline OutputScale output_scale_argument(const wavejit_output_scale& scale) {
  return {.number = reinterpret_cast<std::uintptr_t>(scale.o_scale), .value = scale.o_scale_value};
}

}  // namespace wavejit::attention
