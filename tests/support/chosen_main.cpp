// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gtest/gtest.h>

#include "support/chosen.h"

int main(int count, char** words) {
  ::testing::InitGoogleTest(&count, words);
  return wavejit::tests::run_chosen();
}
