// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// `wavejit run attention_backward`: a forward call's arrays and dO from files, dQ, dK and dV to files, checked against
// float64 if asked.
#pragma once

#include <memory>

#include "tools/family.h"

namespace wavejit::attention_backward::program {

std::unique_ptr<tools::ArrayCall> make_array_call();

}  // namespace wavejit::attention_backward::program
