// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What rocMLIR's attention sweeps accept: one number for a whole result, in place of bounds for each element.
#pragma once

#include <string>
#include <string_view>

#include "tools/judge.h"

namespace wavejit::tools::sweep {

// The RMS error of all elements in units of the largest one: 0.005, of bf16 0.01; and 0.15 where heads of more than 64
// dims have scale=1, whose weights are nearly 0 and 1, so that how exp2 rounds is most of the difference.
double rocmlir_rms_limit(std::string_view descriptor);

// What is wrong by that measure; empty: nothing.
std::string wrong_by_rms(const Judgement& judgement, double limit);

}  // namespace wavejit::tools::sweep
