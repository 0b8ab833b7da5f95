// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// cache_append as C++ callers write it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "support/test_device.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

TEST(CacheAppendInterface, ACallOfWavejitHpp) {
  wavejit::EngineOptions options;
  options.device = test_device(a_target());
  options.cache_mode = "off";
  wavejit::Engine engine(options);
  const std::vector<std::uint16_t> numbers(std::size_t{2} * 8, 0x3C00);
  const wavejit::DeviceBuffer k(engine, numbers);
  const wavejit::DeviceBuffer cache(engine, std::vector<std::uint16_t>(std::size_t{4} * 16 * 8));
  const wavejit::DeviceBuffer slots(engine, std::vector<std::int32_t>{33, -1});
  wavejit::CacheAppend call;
  call.k = wavejit::dense(k, WAVEJIT_FP16, 1, 2, 1, 8);
  call.k_cache = wavejit::dense(cache, WAVEJIT_FP16, 4, 16, 1, 8);
  call.slots = slots.data();
  EXPECT_TRUE(engine.supports(call));
  EXPECT_FALSE(engine.is_ready(call));
  EXPECT_THAT(engine.describe(call), HasSubstr("cache_append fp16 b1 q2 h1 d8 page=16 no_values"));
  engine.cache_append(call);
  engine.synchronize();
  EXPECT_TRUE(engine.is_ready(call));
  const auto found = cache.read<std::uint16_t>();
  for (std::size_t at = 0; at < found.size(); ++at) EXPECT_EQ(found[at], at / 8 == 33 ? 0x3C00 : 0) << at;
}

}  // namespace
}  // namespace wavejit::tests
