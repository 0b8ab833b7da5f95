// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An engine on a simulated device, and a stream of HIP's own that is captured and replayed.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>
#include <wavejit/wavejit.hpp>

#include "hip_abi/hip_functions.h"
#include "support/kept.h"
#include "support/test_device.h"

namespace wavejit::tests {

using namespace hip_abi;

inline constexpr std::int64_t length = 40;
inline constexpr std::int64_t heads = 2;
inline constexpr std::int64_t head_dim = 64;

inline EngineOptions on(const std::string& device) {
  EngineOptions options;
  options.device = device;
  // What is asked here is whether a call waits for its kernel, not who made that.
  options.cache_directory = kept_kernels() != nullptr ? kept_kernels() : "";
  options.cache_mode = kept_kernels() != nullptr ? "rw" : "off";
  return options;
}

// fp16 numbers between 0.5 and 2, so that outputs differ from row to row.
inline std::vector<std::uint16_t> pattern(std::uint32_t seed, std::int64_t count = length * heads * head_dim) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(count));
  for (std::uint16_t& value : values) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<std::uint16_t>(0x3800U + (seed >> 21U));
  }
  return values;
}

// Ordinals depend on what a process has opened before.
inline int device_of(const DeviceBuffer& buffer) {
  hipPointerAttribute_t attributes = {};
  EXPECT_EQ(hipPointerGetAttributes(&attributes, buffer.data()), hipSuccess);
  return attributes.device;
}

class CaptureTest : public ::testing::TestWithParam<hipStreamCaptureMode> {
 protected:
  explicit CaptureTest(const std::string& target = a_target()) : engine_(on(test_device(target))) {}
  void SetUp() override {
    ASSERT_EQ(hipSetDevice(device_of(engine_.allocate(16))), hipSuccess);
    ASSERT_EQ(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking), hipSuccess);
  }
  void TearDown() override { EXPECT_EQ(hipStreamDestroy(stream_), hipSuccess); }

  hipStreamCaptureStatus status() const {
    auto status = hipStreamCaptureStatusInvalidated;
    EXPECT_EQ(hipStreamIsCapturing(stream_, &status), hipSuccess);
    return status;
  }

  Engine engine_;  // before the stream: it makes the device
  hipStream_t stream_ = nullptr;
};

// What a launch of a graph leaves in `array`, after `values` went into `input`.
template <typename Input, typename Output>
std::vector<Output> replayed(hipGraphExec_t graph, hipStream_t stream, DeviceBuffer& input,
                             const std::vector<Input>& values, DeviceBuffer& array, const std::vector<Output>& before) {
  input.write(values);
  array.write(before);
  EXPECT_EQ(hipGraphLaunch(graph, stream), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream), hipSuccess);
  return array.read<Output>();
}

}  // namespace wavejit::tests
