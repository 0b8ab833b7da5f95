// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which row of a kernel's schedule a stretch of its code is, for `profile`.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "templates/attention_forward/kernel/spec.h"
#include "tools/family.h"

namespace wavejit::attention_forward::program {

// A name for each stretch, as "scores: QK, softmax" or "keys", empty where no row is it; none for pipelines without a
// schedule and kernels that are not the spec's.
std::vector<std::string> step_names(const ForwardKernel& spec, std::string_view kernel,
                                    std::span<const tools::CodeStretch> stretches);

}  // namespace wavejit::attention_forward::program
