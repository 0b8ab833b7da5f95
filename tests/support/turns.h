// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Programs of tests that take turns (TURNS in tests/CMakeLists.txt).
#pragma once

namespace wavejit::tests {

// RUN_ALL_TESTS, in ./dev test without the tests of other turns.
int run_in_turn();

}  // namespace wavejit::tests
