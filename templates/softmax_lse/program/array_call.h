// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run softmax_lse`: scores from a file, weights and LSE to files, checked against float64 if asked.
#pragma once

#include <memory>

#include "tools/family.h"

namespace wavejit::softmax_lse::program {

std::unique_ptr<tools::ArrayCall> make_array_call();

}  // namespace wavejit::softmax_lse::program
