// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// sparse_indexer as C++ callers write it, and every field that is refused, by its name.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "support/test_device.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

wavejit::EngineOptions options_of_test() {
  wavejit::EngineOptions options;
  options.device = test_device(a_target());
  options.cache_mode = "off";
  return options;
}

TEST(SparseIndexerInterface, ACallOfWavejitHpp) {
  wavejit::Engine engine(options_of_test());
  // Key j is j ones in its first dims; the two heads see it as j and as −j.
  constexpr std::int64_t keys = 20;
  std::vector<std::uint16_t> queries(std::size_t{2} * 128);
  for (std::size_t d = 0; d < 128; ++d) {
    queries[d] = 0x3F80;        // 1
    queries[128 + d] = 0xBF80;  // −1
  }
  std::vector<std::uint16_t> vectors(static_cast<std::size_t>(keys) * 128);
  for (std::size_t key = 0; key < keys; ++key)
    for (std::size_t d = 0; d < key; ++d) vectors[(key * 128) + d] = 0x3F80;
  const wavejit::DeviceBuffer q(engine, queries);
  const wavejit::DeviceBuffer k(engine, vectors);
  const wavejit::DeviceBuffer w(engine, std::vector<float>{0.5F, 3.0F});
  const wavejit::DeviceBuffer scores(engine, static_cast<std::size_t>(keys) * sizeof(float));
  const wavejit::DeviceBuffer list(engine, std::size_t{4} * sizeof(std::int32_t));
  wavejit::SparseIndexer call;
  call.queries = wavejit::dense(q, WAVEJIT_BF16, 1, 1, 2, 128);
  call.keys = wavejit::dense(k, WAVEJIT_BF16, 1, keys, 1, 128);
  call.weights = wavejit::dense(w, WAVEJIT_FP32, 1, 1, 2, 1);
  call.scores = wavejit::dense(scores, WAVEJIT_FP32, 1, 1, 1, keys);
  call.indices = static_cast<std::int32_t*>(list.data());
  call.top_k = 4;
  EXPECT_TRUE(engine.supports(call));
  EXPECT_FALSE(engine.is_ready(call));
  EXPECT_EQ(engine.describe(call), "sparse_indexer bf16 b1 q1 k20 h2 top=4 scores");
  engine.sparse_indexer(call);
  engine.synchronize();
  EXPECT_TRUE(engine.is_ready(call));
  EXPECT_EQ(list.read<std::int32_t>(), (std::vector<std::int32_t>{16, 17, 18, 19}));
  const auto found = scores.read<float>();
  for (std::size_t key = 0; key < keys; ++key) EXPECT_EQ(found[key], 0.5F * static_cast<float>(key)) << key;
}

// Memory is looked at as numbers only: nothing is launched.
class SparseIndexerRefusals : public ::testing::Test {
 protected:
  SparseIndexerRefusals() {
    call_.queries = wavejit_dense_tensor(at(0), WAVEJIT_BF16, 2, 3, 64, 128);
    call_.keys = wavejit_dense_tensor(at(1), WAVEJIT_BF16, 2, 100, 1, 128);
    call_.weights = wavejit_dense_tensor(at(2), WAVEJIT_FP32, 2, 3, 64, 1);
    call_.key_scales = wavejit_dense_tensor(at(3), WAVEJIT_FP32, 2, 100, 1, 1);
    call_.scores = wavejit_dense_tensor(at(4), WAVEJIT_FP32, 2, 3, 1, 100);
    call_.indices = static_cast<std::int32_t*>(at(5));
    call_.top_k = 16;
  }
  static void* at(std::uintptr_t number) { return reinterpret_cast<void*>((number + 1) << 30U); }
  using Change = std::function<void(wavejit_sparse_indexer_arguments&)>;
  void refused(const std::string& said, const Change& change, wavejit_status status = WAVEJIT_INVALID_ARGUMENT) {
    wavejit_sparse_indexer_arguments call = call_;
    change(call);
    EXPECT_EQ(wavejit_call_supported(engine_.get(), &call.head), status) << said;
    EXPECT_THAT(wavejit_last_detail(), HasSubstr(said));
    EXPECT_EQ(wavejit_sparse_indexer(engine_.get(), &call, nullptr), status) << said;
  }

  wavejit::Engine engine_{options_of_test()};
  wavejit::SparseIndexer call_;
};

TEST_F(SparseIndexerRefusals, NameTheField) {
  EXPECT_EQ(wavejit_call_supported(engine_.get(), &call_.head), WAVEJIT_OK) << wavejit_last_detail();
  refused("queries.dtype", [](auto& call) { call.queries.dtype = WAVEJIT_FP32; });
  refused("queries.dtype", [](auto& call) { call.queries.dtype = WAVEJIT_E5M2; });
  refused("keys.dtype", [](auto& call) { call.queries.dtype = WAVEJIT_E4M3; });
  refused("queries.data", [](auto& call) { call.queries.data = static_cast<char*>(call.queries.data) + 2; });
  refused("queries.sizes[2]", [](auto& call) { call.queries.sizes[2] = 129; });
  refused("queries.sizes[3]", [](auto& call) { call.queries.sizes[3] = 64; });
  refused("queries.strides[1]", [](auto& call) { call.queries.strides[1] = 12; });
  refused("keys.dtype", [](auto& call) { call.keys.dtype = WAVEJIT_FP16; });
  refused("keys.sizes[0]", [](auto& call) { call.keys.sizes[0] = 3; });
  refused("keys.sizes[2]", [](auto& call) { call.keys.sizes[2] = 2; });
  refused("keys.sizes[3]", [](auto& call) { call.keys.sizes[3] = 96; });
  refused("weights.dtype", [](auto& call) { call.weights.dtype = WAVEJIT_BF16; });
  refused("weights.sizes[2]", [](auto& call) { call.weights.sizes[2] = 63; });
  refused("weights.strides[2]", [](auto& call) { call.weights.strides[2] = 2; });
  refused("weights.data", [](auto& call) { call.weights.data = nullptr; });
  refused("key_scales.sizes[1]", [](auto& call) { call.key_scales.sizes[1] = 99; });
  refused("scores.sizes[3]", [](auto& call) { call.scores.sizes[3] = 101; });
  refused("scores.dtype", [](auto& call) { call.scores.dtype = WAVEJIT_FP16; });
  refused("scores.strides[3]", [](auto& call) { call.scores.strides[3] = 2; });
  refused("scores.data", [](auto& call) { call.scores.data = call.keys.data; });
  refused("indices = null", [](auto& call) { call.indices = nullptr; });
  refused("indices = ", [](auto& call) { call.indices = reinterpret_cast<std::int32_t*>(0x123456789A); });
  refused("indices = ", [](auto& call) { call.indices = static_cast<std::int32_t*>(call.scores.data); });
  refused("values = ", [](auto& call) { call.values = reinterpret_cast<float*>(call.indices); });
  refused("counts = ", [](auto& call) { call.counts = call.indices + 1; });
  refused("indices_row_stride = 15", [](auto& call) { call.indices_row_stride = 15; });
  refused("top_k = -1", [](auto& call) { call.top_k = -1; });
  refused("top_k = 1048577", [](auto& call) { call.top_k = 1048577; });
  refused("indices = ", [](auto& call) { call.top_k = 0; });
  refused("mask = 16", [](auto& call) { call.mask.bits = 16; });
  refused("mask = 8", [](auto& call) { call.mask.bits = WAVEJIT_MASK_CHUNKED; }, WAVEJIT_UNSUPPORTED);
  refused("window_left", [](auto& call) { call.mask.window_left = 3; });
  refused("causal_prefix", [](auto& call) { call.mask.causal_prefix = 3; });
  refused("flags", [](auto& call) { call.head.flags = WAVEJIT_SCALE_IS_ZERO; });
  refused("key_lengths", [](auto& call) { call.key_lengths = reinterpret_cast<std::int32_t*>(0x1002); });
  refused("key_begins", [](auto& call) { call.key_begins = reinterpret_cast<std::int32_t*>(0x1002); });
  refused("key_ends", [](auto& call) { call.key_ends = reinterpret_cast<std::int32_t*>(0x1002); });
  refused("max_key_length", [](auto& call) { call.max_key_length = 100; });
  refused("table_columns", [](auto& call) { call.pages.table_columns = 4; });
  refused("workspace = ", [](auto& call) { call.split.workspace = reinterpret_cast<void*>(0x1080); });
  refused("workspace_bytes", [](auto& call) { call.split.workspace_bytes = 512; });
  refused("size", [](auto& call) { call.head.size = 8; });
}

TEST_F(SparseIndexerRefusals, OfPages) {
  const auto paged = [](auto& call) {
    call.keys.sizes[0] = 9;
    call.keys.sizes[1] = 64;
    call.keys.strides[0] = 64 * 128;
    call.key_scales.data = nullptr;
    call.pages.block_table = static_cast<std::int32_t*>(at(8));
    call.pages.table_columns = 2;
    call.max_key_length = 100;
  };
  paged(call_);
  EXPECT_EQ(wavejit_call_supported(engine_.get(), &call_.head), WAVEJIT_OK) << wavejit_last_detail();
  refused("table_columns = 1", [](auto& call) { call.pages.table_columns = 1; });
  refused("max_key_length = 0", [](auto& call) { call.max_key_length = 0; });
  refused("keys.sizes[1] (page size) = 17", [](auto& call) { call.keys.sizes[1] = 17; });
  refused("keys.strides", [](auto& call) { call.keys.strides[0] = 64; });
  refused("block_table", [](auto& call) { call.pages.block_table = reinterpret_cast<std::int32_t*>(0x1002); });
}

TEST_F(SparseIndexerRefusals, OfGivenScores) {
  const auto given = [](auto& call) {
    call.queries.data = call.keys.data = call.weights.data = call.key_scales.data = nullptr;
  };
  refused("keys.data", [](auto& call) { call.queries.data = nullptr; });
  refused("top_k = 0", [&](auto& call) {
    given(call);
    call.top_k = 0;
  });
  refused("scores.sizes[2]", [&](auto& call) {
    given(call);
    call.scores.sizes[2] = 2;
  });
  refused("queries.data", [&](auto& call) {
    given(call);
    call.scores.data = nullptr;
  });
  given(call_);
  EXPECT_EQ(engine_.describe(call_), "sparse_indexer fp32 b2 q3 k100 top=16");
  EXPECT_EQ(wavejit_call_supported(engine_.get(), nullptr), WAVEJIT_INVALID_ARGUMENT);
}

TEST_F(SparseIndexerRefusals, TheWorkspaceOfACall) {
  std::size_t bytes = 1;
  EXPECT_EQ(wavejit_call_workspace(engine_.get(), &call_.head, &bytes), WAVEJIT_OK);
  EXPECT_EQ(bytes, 0U) << "scores have a tensor";
  call_.scores.data = nullptr;
  EXPECT_EQ(wavejit_call_workspace(engine_.get(), &call_.head, &bytes), WAVEJIT_OK);
  EXPECT_EQ(bytes, std::size_t{2} * 3 * 512);
  call_.split.workspace = at(9);
  refused("workspace_bytes = 511", [](auto& call) { call.split.workspace_bytes = 511; });
}

}  // namespace
}  // namespace wavejit::tests
