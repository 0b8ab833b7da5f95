// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// attention_merge as C++ callers write it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/test_device.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

TEST(AttentionMergeInterface, ACallOfWavejitHpp) {
  wavejit::EngineOptions options;
  options.device = test_device(a_target());
  options.cache_mode = "off";
  wavejit::Engine engine(options);
  const wavejit::DeviceBuffer ones(engine, std::vector<float>(2 * 8, 1.0F));
  const wavejit::DeviceBuffer fives(engine, std::vector<float>(2 * 8, 5.0F));
  const wavejit::DeviceBuffer zeros(engine, std::vector<float>(2));
  const wavejit::DeviceBuffer out(engine, std::vector<float>(2 * 8));
  const wavejit::DeviceBuffer out_lse(engine, std::vector<float>(2));
  wavejit::AttentionMerge call;
  call.add(wavejit::dense(ones, WAVEJIT_FP32, 1, 1, 2, 8), wavejit::dense(zeros, WAVEJIT_FP32, 1, 2, 1, 1));
  call.add(wavejit::dense(fives, WAVEJIT_FP32, 1, 1, 2, 8), wavejit::dense(zeros, WAVEJIT_FP32, 1, 2, 1, 1));
  call.o = wavejit::dense(out, WAVEJIT_FP32, 1, 1, 2, 8);
  call.lse = wavejit::dense(out_lse, WAVEJIT_FP32, 1, 2, 1, 1);
  EXPECT_TRUE(engine.supports(call));
  EXPECT_FALSE(engine.is_ready(call));
  EXPECT_EQ(engine.describe(call), "attention_merge fp32 b1 q1 h2 d8 parts=2 lse");
  engine.attention_merge(call);
  engine.synchronize();
  EXPECT_TRUE(engine.is_ready(call));
  for (const float value : out.read<float>()) EXPECT_EQ(value, 3.0F);
  for (const float value : out_lse.read<float>()) EXPECT_FLOAT_EQ(value, 0.6931472F);
  for (int more = 2; more < WAVEJIT_MAX_ATTENTION_PARTS; ++more) call.add(call.parts[0].o, call.parts[0].lse);
  EXPECT_THROW(call.add(call.parts[0].o, call.parts[0].lse), wavejit::Error);
}

}  // namespace
}  // namespace wavejit::tests
