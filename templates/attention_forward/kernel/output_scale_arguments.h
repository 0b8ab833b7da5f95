// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a kernel whose O is 8 bits reads beside its other arguments: the scale of O. It stands behind whatever else any
// kernel has.
#pragma once

#include <cstddef>

#include "templates/attention/kernel/output_scale.h"
#include "templates/attention_forward/kernel/integer_arguments.h"

namespace wavejit::attention_forward {

struct OutputScaleArguments {
  IntegerArguments others;
  attention::OutputScale scale;
};

inline constexpr std::size_t output_scale_at = offsetof(OutputScaleArguments, scale);
static_assert(output_scale_at == sizeof(IntegerArguments));

}  // namespace wavejit::attention_forward
