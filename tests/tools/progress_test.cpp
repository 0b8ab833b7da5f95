// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/progress.h"

#include <gtest/gtest.h>

namespace wavejit::tools {
namespace {

TEST(ProgressTest, ShowsCountRateAndTimeLeft) {
  EXPECT_EQ(progress_line(12, 48, "kernels", 4.0, 200), "[######------------------] 12/48 kernels  3.0/s  12 s left");
  EXPECT_EQ(progress_line(0, 48, "kernels", 4.0, 200), "[------------------------] 0/48 kernels");
  EXPECT_EQ(progress_line(48, 48, "kernels", 16.0, 200), "[########################] 48/48 kernels  3.0/s");
  EXPECT_EQ(progress_line(1, 601, "kernels", 1.0, 200),
            "[------------------------] 1/601 kernels  1.0/s  10 min 00 s left");
}

// A run that goes on where another ended: what was there took no time and makes nothing faster.
TEST(ProgressTest, WhatWasThereDoesNotCountAsFast) {
  EXPECT_EQ(progress_line(36, 48, "kernels", 4.0, 200, 24),
            "[##################------] 36/48 kernels  3.0/s  4 s left");
  EXPECT_EQ(progress_line(24, 48, "kernels", 4.0, 200, 24), "[############------------] 24/48 kernels");
}

TEST(ProgressTest, FitsTheTerminalAndOddNumbers) {
  EXPECT_EQ(progress_line(12, 48, "kernels", 4.0, 10), "[######---");
  EXPECT_EQ(progress_line(12, 48, "kernels", 4.0, 0), "");
  EXPECT_EQ(progress_line(0, 0, "kernels", 0.0, 200), "[########################] 0/0 kernels");
}

}  // namespace
}  // namespace wavejit::tools
