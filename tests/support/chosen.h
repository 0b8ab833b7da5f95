// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The run of a program whose tests are chosen in ./dev test (CHOSEN in tests/CMakeLists.txt), for a main() of its own.
#pragma once

namespace wavejit::tests {

// RUN_ALL_TESTS(), less what the file that WAVEJIT_TEST_CHOSEN names does not have.
int run_chosen();

}  // namespace wavejit::tests
