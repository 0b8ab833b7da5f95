// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A call of cache_append that must go well, and write what its reference says.
#pragma once

#include <gtest/gtest.h>

#include "cache_append/append_run.h"

namespace wavejit::tests {

inline AppendOutput run_well(wavejit_engine* engine, const AppendCase& which) {
  AppendOutput output = run_append(engine, which);
  EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
  EXPECT_EQ(output.reports, "");
  EXPECT_TRUE(output.rest_intact) << "something that no token names was written";
  return output;
}

inline AppendOutput run_matching(wavejit_engine* engine, const AppendCase& which) {
  AppendOutput output = run_well(engine, which);
  const AppendOutput wanted = expected_append(which);
  EXPECT_EQ(output.k, wanted.k);
  EXPECT_EQ(output.v, wanted.v);
  EXPECT_EQ(output.q, wanted.q);
  EXPECT_EQ(output.k_scales, wanted.k_scales);
  EXPECT_EQ(output.v_scales, wanted.v_scales);
  return output;
}

}  // namespace wavejit::tests
