// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel of a cache of 8 bits reads beside its other arguments: the scales of K and V. They stand behind
// whatever else any kernel has.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "templates/attention/kernel/cache_scale_arguments.h"
#include "templates/attention_forward/kernel/key_list_arguments.h"
#include "templates/attention_forward/kernel/walks/list_arguments.h"

namespace wavejit::attention_forward {

using attention::CacheScales;

inline constexpr std::size_t cache_scales_at = std::max(sizeof(ListedArguments), sizeof(KeyListedArguments));

struct CacheArguments {
  alignas(8) std::array<std::byte, cache_scales_at> others{};
  CacheScales scales;
};

static_assert(offsetof(CacheArguments, scales) == cache_scales_at);

}  // namespace wavejit::attention_forward
