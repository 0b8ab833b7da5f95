// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How much of a long list a test does: a part in ./dev test, all of it in ./dev soak (wavejit_add_whole_tests).
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace wavejit::tests {

inline bool whole_lists() {
  const char* const said = std::getenv("WAVEJIT_TEST_WHOLE");
  return said != nullptr && std::string(said) == "1";
}

// Whether this test does case `index` of its list: one of `step` cases. Tests with other parameters do others, by their
// names, so that between them a list is covered.
//
//   for (int index = 0; index < count; ++index) {
//     if (!in_part(index, 4)) continue;
inline bool in_part(int index, int step) {
  if (whole_lists()) return true;
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  unsigned turn = 0;
  for (const char letter : name) turn = (turn * 31) + static_cast<unsigned char>(letter);
  return (static_cast<unsigned>(index) + turn) % static_cast<unsigned>(step) == 0;
}

}  // namespace wavejit::tests
