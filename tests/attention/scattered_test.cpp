// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Tensors whose dims do not stand side by side: what is refused. Rows of value_rows.txt have the others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "support/attention_run.h"

namespace wavejit::tests {
namespace {

class ScatteredElements : public ::testing::TestWithParam<std::string> {
 protected:
  Engine engine_{GetParam()};
};

TEST_P(ScatteredElements, WhatCannotBeIsRefusedByName) {
  AttentionCase which = make_case(Storage::bf16, 2, 5, 70, 2, 1, 64, false, 71);
  const auto refused = [&](const ChangeForwardCall& change) {
    const AttentionOutput output = run_attention(engine_.get(), which, change);
    EXPECT_NE(output.status, WAVEJIT_OK);
    return output.detail;
  };
  EXPECT_THAT(refused([](auto& call) { call.k.strides[3] = 2; }),
              ::testing::HasSubstr("k.strides[3] (head dim) = 2; accepted: 1, or 1 for strides[1]"));
  EXPECT_THAT(refused([](auto& call) {
                call.v.strides[1] = 0;
                call.v.strides[0] += 1;
              }),
              ::testing::HasSubstr("v.strides[1]"));
  EXPECT_THAT(refused([](auto& call) {
                call.o.strides[1] = 1;
                call.o.strides[3] = 4;
              }),
              ::testing::HasSubstr("with which elements overlap"));
  EXPECT_THAT(refused([](auto& call) {
                call.q.strides[1] = 1;
                call.q.strides[3] = std::int64_t{1} << 25;
              }),
              ::testing::HasSubstr("less than 2147483648 (2 GiB)"));
  wavejit_engine_options options{};
  options.size = sizeof options;
  options.pipeline = GetParam() == "gfx942" ? "interleaved" : "dualwave";
  const Engine pinned(GetParam(), options);
  which.scattered = {.k = Scattered::rows_inside};
  const AttentionOutput output = run_attention(pinned.get(), which);
  EXPECT_EQ(output.status, WAVEJIT_UNSUPPORTED);
  EXPECT_THAT(output.detail, ::testing::HasSubstr("has no kernel where dims of a row need not be contiguous"));
}

INSTANTIATE_TEST_SUITE_P(All, ScatteredElements, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
