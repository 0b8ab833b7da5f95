// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel whose last workgroup to arrive merges the parts reads beside its other arguments.
#pragma once

#include <cstddef>
#include <cstdint>

#include "templates/attention_forward/kernel/paged_arguments.h"

namespace wavejit::attention_forward {

// Where they stand, whether keys stand in pages or not.
struct ArrivalArguments {
  PagedArguments all;
  // i32 counters (templates/attention/emit/arrivals.h): [z of the grid][kv head][tile of rows][wave].
  std::uint64_t counters = 0;
};

inline constexpr std::size_t arrival_counters_at = offsetof(ArrivalArguments, counters);

static_assert(sizeof(ArrivalArguments) == 352);
static_assert(arrival_counters_at == sizeof(PagedArguments));

}  // namespace wavejit::attention_forward
