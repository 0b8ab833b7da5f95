// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// An engine over the fakes with a cache folder of its own, and calls to make on it.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fake_codegen.h"
#include "fake_hip.h"
#include "runtime/call/call_functions.h"
#include "runtime/call/engine.h"
#include "templates/attention_forward/api/calls.h"
#include "tests/support/scratch_directory.h"

namespace wavejit::tests {

// attention_forward on an engine: run, supports, is_ready, prepare, workspace, describe.
using ForwardCalls = runtime::Answers<attention_forward::Calls>;

// Addresses that no launch will follow: the fakes read no device memory.
inline void* fake_address(std::uint64_t number) { return numbered(number << 32U); }

inline wavejit_attention_forward_arguments good_call(std::int64_t batch = 2, std::int64_t query_length = 255,
                                                     std::int64_t key_length = 512, std::int64_t query_heads = 8,
                                                     std::int64_t kv_heads = 2, std::int64_t head_dim = 128) {
  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  call.q = wavejit_dense_tensor(fake_address(1), WAVEJIT_FP16, batch, query_length, query_heads, head_dim);
  call.k = wavejit_dense_tensor(fake_address(2), WAVEJIT_FP16, batch, key_length, kv_heads, head_dim);
  call.v = wavejit_dense_tensor(fake_address(3), WAVEJIT_FP16, batch, key_length, kv_heads, head_dim);
  call.o = wavejit_dense_tensor(fake_address(4), WAVEJIT_FP16, batch, query_length, query_heads, head_dim);
  call.modifiers.scale = 0.125F;
  return call;
}

inline wavejit_tensor good_lse(const wavejit_attention_forward_arguments& call) {
  const std::int64_t batch = call.q.sizes[0];
  const std::int64_t length = call.q.sizes[1];
  const std::int64_t heads = call.q.sizes[2];
  return {.data = fake_address(5),
          .dtype = WAVEJIT_FP32,
          .reserved = 0,
          .sizes = {batch, heads, length, 1},
          .strides = {heads * length, length, 1, 1}};
}

class RuntimeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    reset_fake_hip();
    reset_fake_codegen();
    codegen_ = std::make_unique<runtime::CodegenLibrary>(fake_codegen_table());
    config_.cache_directory.value = directory_.path();
  }

  std::unique_ptr<runtime::Engine> make_engine(const char* architecture = "gfx950:sramecc+:xnack-") {
    auto logger = std::make_unique<runtime::Logger>(
        runtime::LogLevel::debug, [this](runtime::LogLevel level, std::string_view line) {
          const std::scoped_lock lock(mutex_);
          log_.push_back(std::string(runtime::to_text(level)) + ": " + std::string(line));
        });
    auto engine = runtime::Engine::assemble(config_, fake_device(architecture), *codegen_, std::move(logger));
    if (!engine) throw std::runtime_error(engine.error().detail);
    return *std::move(engine);
  }

  static wavejit_statistics statistics_of(const runtime::Engine& engine) {
    wavejit_statistics statistics{};
    engine.fill(statistics);
    EXPECT_EQ(statistics.calls + statistics.prepared,
              statistics.memory_hits + statistics.disk_hits + statistics.misses);
    // Memory hits are what is left of the others: the sum holds whatever was counted. What does not is their sign.
    EXPECT_LE(statistics.memory_hits, statistics.calls + statistics.prepared);
    EXPECT_EQ(statistics.misses, statistics.compiled + statistics.compile_failures + statistics.refused_sealed +
                                     statistics.refused_capturing + statistics.refused_no_compile +
                                     statistics.refused_unsupported);
    return statistics;
  }

  std::vector<std::filesystem::path> cache_files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(directory_.path()))
      if (entry.is_regular_file()) files.push_back(entry.path());
    return files;
  }

  ScratchDirectory directory_;
  runtime::Config config_;
  std::unique_ptr<runtime::CodegenLibrary> codegen_;
  std::mutex mutex_;
  std::vector<std::string> log_;
};

}  // namespace wavejit::tests
