// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// softmax_lse as C++ callers write it, against what the numbers must be.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "support/test_device.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

TEST(SoftmaxInterface, ACallOfWavejitHpp) {
  wavejit::EngineOptions options;
  options.device = test_device(a_target());
  options.cache_mode = "off";
  wavejit::Engine engine(options);
  const std::vector<float> numbers(std::size_t{2} * 4 * 8, 3.0F);  // [1, 2, 4, 8]
  const wavejit::DeviceBuffer scores(engine, numbers);
  const wavejit::DeviceBuffer weights(engine, numbers.size() * sizeof(float));
  const wavejit::DeviceBuffer lse(engine, std::size_t{2} * 4 * sizeof(float));
  wavejit::SoftmaxLse call;
  call.scores = wavejit::dense(scores, WAVEJIT_FP32, 1, 2, 4, 8);
  call.weights = wavejit::dense(weights, WAVEJIT_FP32, 1, 2, 4, 8);
  call.lse = wavejit::dense(lse, WAVEJIT_FP32, 1, 2, 4, 1);
  call.scale = 0.5F;
  call.mask.bits = WAVEJIT_MASK_CAUSAL;
  EXPECT_TRUE(engine.supports(call));
  EXPECT_FALSE(engine.is_ready(call));
  EXPECT_THAT(engine.describe(call), HasSubstr("softmax_lse fp32 b1 h2 q4 k8 causal lse scale=0.5"));
  engine.softmax_lse(call);
  engine.synchronize();
  EXPECT_TRUE(engine.is_ready(call));
  const auto found = weights.read<float>();
  const auto sums = lse.read<float>();
  for (int row = 0; row < 8; ++row) {
    const int seen = 5 + (row % 4);  // the last row sees all 8 keys
    EXPECT_NEAR(sums[static_cast<std::size_t>(row)], 1.5 + std::log(seen), 1e-6) << row;
    for (int key = 0; key < 8; ++key)
      EXPECT_NEAR(found[static_cast<std::size_t>(row * 8) + static_cast<std::size_t>(key)],
                  key < seen ? 1.0 / seen : 0.0, 1e-7)
          << row << ' ' << key;
  }
  call.weights.strides[3] = 2;
  EXPECT_THROW(engine.softmax_lse(call), wavejit::Error);
}

}  // namespace
}  // namespace wavejit::tests
