// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches, queries and keys of 8 bits, each in a kernel that widens or multiplies them in a way of its own.
#pragma once

#include <vector>

#include "called_case.h"

namespace wavejit::tests {

std::vector<CalledCase> byte_cases();

}  // namespace wavejit::tests
