// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What rocMLIR's attention sweeps accept, for those who compare with it: one number for a whole result, in place of
// this project's bounds for each element.
#pragma once

#include <string>
#include <string_view>

#include "tools/checker.h"

namespace wavejit::tools::sweep {

// The most that √(Σ error² / elements) may be in units of the largest element: 0.005, of bf16 0.01; and 0.15 where
// heads of more than 64 dims have scale=1, whose weights are nearly 0 and 1, so that how exp2 rounds is most of the
// difference. As its change 2371 says; no release of it was asked. It has them for attention alone: for judgements that
// know what rounding makes of a row (Comparison::rms).
double rocmlir_limit(std::string_view descriptor);

// What is wrong by that measure; empty: nothing. LSE has none there.
std::string wrong_by_rms(const Comparison& comparison, double limit);

}  // namespace wavejit::tools::sweep
