// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Kernels of gfx1201 for called_test.cpp.
#pragma once

#include <vector>

#include "called_case.h"

namespace wavejit::tests {

std::vector<CalledCase> rdna_cases();

}  // namespace wavejit::tests
