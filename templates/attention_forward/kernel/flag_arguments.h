// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kernels of calls with causal_flags read behind the other arguments. Such kernels have no lists (combinations.cpp), whose
// arguments stand in the same place.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/arrival_arguments.h"
#include "templates/attention_forward/kernel/cache_arguments.h"
#include "templates/attention_forward/kernel/row_limits.h"

namespace wavejit::attention_forward {

struct FlaggedArguments {
  LimitedArguments all;
  std::uint64_t causal_flags = 0;  // a byte for each sequence: 0 takes the diagonal away
};

inline constexpr std::size_t causal_flags_at = offsetof(FlaggedArguments, causal_flags);

static_assert(causal_flags_at == sizeof(LimitedArguments));
static_assert(causal_flags_at >= sizeof(ArrivalArguments));
static_assert(sizeof(FlaggedArguments) <= cache_scales_at);

}  // namespace wavejit::attention_forward
