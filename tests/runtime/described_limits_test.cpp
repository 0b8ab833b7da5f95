// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The limit of 4 GiB of what a kernel bounds with one descriptor: what a call of these sizes is told, a line of them is
// told in the same words, by explain and by prepare.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "wavejit/wavejit.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

constexpr const char* limits_target = "gfx950";

// NOLINTNEXTLINE(performance-no-int-to-ptr)
void* limits_memory(std::uint64_t number) { return reinterpret_cast<void*>(number << 40U); }
wavejit_tensor of_sizes(std::uint64_t number, std::int64_t batch, std::int64_t length, std::int64_t heads,
                        std::int64_t dims, wavejit_dtype dtype = WAVEJIT_BF16) {
  return wavejit_dense_tensor(limits_memory(number), dtype, batch, length, heads, dims);
}
// [batch, heads, length, dims] in memory.
wavejit_tensor heads_first(wavejit_tensor tensor) {
  tensor.strides[1] = tensor.sizes[3];
  tensor.strides[2] = tensor.sizes[1] * tensor.sizes[3];
  return tensor;
}
const std::int32_t* limits_numbers(std::uint64_t number) {
  return static_cast<const std::int32_t*>(limits_memory(number));
}

wavejit_attention_forward_arguments forward_of(std::int64_t batch, std::int64_t queries, std::int64_t keys,
                                               std::int64_t query_heads, std::int64_t kv_heads, std::int64_t dims) {
  wavejit_attention_forward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_FORWARD;
  call.q = of_sizes(1, batch, queries, query_heads, dims);
  call.k = of_sizes(2, batch, keys, kv_heads, dims);
  call.v = of_sizes(3, batch, keys, kv_heads, dims);
  call.o = of_sizes(4, batch, queries, query_heads, dims);
  return call;
}
wavejit_attention_forward_arguments packed_forward_of(std::int64_t sequences, std::int64_t queries, std::int64_t keys,
                                                      std::int64_t query_heads, std::int64_t kv_heads,
                                                      std::int64_t dims) {
  auto call = forward_of(1, sequences * queries, sequences * keys, query_heads, kv_heads, dims);
  call.sequences.query_starts = limits_numbers(5);
  call.sequences.key_starts = limits_numbers(6);
  call.sequences.count = sequences;
  call.sequences.max_query_length = queries;
  call.sequences.max_key_length = keys;
  return call;
}

wavejit_attention_backward_arguments backward_of(std::int64_t queries, std::int64_t keys, std::int64_t query_heads,
                                                 std::int64_t kv_heads, std::int64_t dims) {
  wavejit_attention_backward_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_BACKWARD;
  std::uint64_t number = 1;
  for (wavejit_tensor* tensor : {&call.q, &call.o, &call.d_o, &call.dq})
    *tensor = of_sizes(number++, 1, queries, query_heads, dims);
  for (wavejit_tensor* tensor : {&call.k, &call.v, &call.dk, &call.dv})
    *tensor = of_sizes(number++, 1, keys, kv_heads, dims);
  call.lse = of_sizes(number, 1, query_heads, queries, 1, WAVEJIT_FP32);
  return call;
}

wavejit_attention_latent_arguments latent_of(std::int64_t queries, std::int64_t keys, std::int64_t heads) {
  wavejit_attention_latent_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_ATTENTION_LATENT;
  call.q = of_sizes(1, 1, queries, heads, 576);
  call.k = of_sizes(2, 1, keys, 1, 576);
  call.o = of_sizes(3, 1, queries, heads, 512);
  call.modifiers.scale = 0.07F;
  return call;
}

wavejit_sparse_indexer_arguments indexer_of(std::int64_t queries, std::int64_t keys, std::int64_t heads) {
  wavejit_sparse_indexer_arguments call{};
  call.head.size = sizeof call;
  call.head.family = WAVEJIT_SPARSE_INDEXER;
  call.queries = of_sizes(1, 1, queries, heads, 128);
  call.keys = of_sizes(2, 1, keys, 1, 128);
  call.weights = of_sizes(3, 1, queries, heads, 1, WAVEJIT_FP32);
  call.indices = static_cast<std::int32_t*>(limits_memory(4));
  call.top_k = 2048;
  return call;
}

class DescribedLimits : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.size = sizeof options_;
    options_.device = "sim:gfx950";
    options_.cache_mode = "off";
    options_.log_level = "off";
    ASSERT_EQ(wavejit_engine_create(&options_, &engine_), WAVEJIT_OK) << wavejit_last_detail();
  }
  void TearDown() override { wavejit_engine_destroy(engine_); }

  // What `status` of a call says of the line, too. Answers whether it was refused.
  bool alike(wavejit_status of_call, const std::string& line) {
    SCOPED_TRACE(line);
    const std::string said = of_call == WAVEJIT_OK ? "" : wavejit_last_detail();
    const wavejit_status explained =
        wavejit_explain(&options_, line.c_str(), limits_target, [](void*, const char*) {}, nullptr);
    EXPECT_EQ(explained, of_call) << said << wavejit_last_detail();
    if (of_call == WAVEJIT_OK) return false;
    EXPECT_EQ(std::string(wavejit_last_detail()), said);
    const char* lines[] = {line.c_str()};
    EXPECT_EQ(wavejit_prepare(engine_, lines, 1, 1, nullptr, nullptr, nullptr), of_call);
    EXPECT_THAT(wavejit_last_detail(), HasSubstr(said));
    EXPECT_THAT(said, HasSubstr("GiB"));
    return true;
  }
  bool asked(const wavejit_attention_forward_arguments& call, const std::string& line) {
    return alike(wavejit_call_supported(engine_, &call.head), "attention_forward bf16 " + line);
  }

  wavejit_engine_options options_{};
  wavejit_engine* engine_ = nullptr;
};

TEST_F(DescribedLimits, OfAttentionForward) {
  EXPECT_TRUE(asked(forward_of(1, 320'000, 4096, 64, 8, 128), "b1 q320000 k4096 h64/8 d128"));
  EXPECT_FALSE(asked(forward_of(9, 260'000, 4096, 64, 8, 128), "b9 q260000 k4096 h64/8 d128"));
  EXPECT_TRUE(asked(forward_of(1, 64, 700'000, 16, 16, 256), "b1 q64 k700000 h16 d256"));
  // The last rows of a tile stand behind the heads here, and behind all rows there.
  auto heads_apart = forward_of(1, 262'100, 4096, 64, 8, 128);
  EXPECT_TRUE(asked(heads_apart, "b1 q262100 k4096 h64/8 d128"));
  for (wavejit_tensor* tensor : {&heads_apart.q, &heads_apart.k, &heads_apart.v, &heads_apart.o})
    *tensor = heads_first(*tensor);
  EXPECT_FALSE(asked(heads_apart, "b1 q262100 k4096 h64/8 d128 layout=bhsd"));
  // 2 GiB where dims do not stand side by side.
  auto transposed = forward_of(1, 200'000, 64, 64, 64, 128);
  EXPECT_FALSE(asked(transposed, "b1 q200000 k64 h64 d128"));
  transposed.q.strides[1] = 1;
  transposed.q.strides[2] = std::int64_t{200'000} * 128;
  transposed.q.strides[3] = 200'000;
  EXPECT_TRUE(asked(transposed, "b1 q200000 k64 h64 d128 trans_q"));
}

TEST_F(DescribedLimits, OfABias) {
  auto call = forward_of(1, 70'000, 70'000, 8, 8, 128);
  EXPECT_FALSE(asked(call, "b1 q70000 k70000 h8 d128"));
  call.modifiers.bias = of_sizes(7, 1, 1, 70'000, 70'000);
  EXPECT_TRUE(asked(call, "b1 q70000 k70000 h8 d128 bias=1"));
}

// Each sequence has a descriptor of its own.
TEST_F(DescribedLimits, OfPackedSequences) {
  EXPECT_FALSE(asked(packed_forward_of(8, 40'000, 40'000, 64, 8, 128), "b8 q40000 k40000 h64/8 d128 layout=packed"));
  EXPECT_TRUE(asked(packed_forward_of(2, 300'000, 1024, 64, 8, 128), "b2 q300000 k1024 h64/8 d128 layout=packed"));
  EXPECT_THAT(wavejit_last_detail(), HasSubstr("q: bytes that one sequence spans"));
}

TEST_F(DescribedLimits, OfOtherFamilies) {
  const auto backward = backward_of(300'000, 1024, 64, 8, 128);
  EXPECT_TRUE(
      alike(wavejit_call_supported(engine_, &backward.head), "attention_backward bf16 b1 q300000 k1024 h64/8 d128"));
  const auto latent = latent_of(40'000, 4096, 128);
  EXPECT_TRUE(
      alike(wavejit_call_supported(engine_, &latent.head), "attention_latent bf16 b1 q40000 k4096 h128 d576/512"));
  const auto fewer = latent_of(28'000, 4096, 128);
  EXPECT_FALSE(
      alike(wavejit_call_supported(engine_, &fewer.head), "attention_latent bf16 b1 q28000 k4096 h128 d576/512"));
  const auto indexer = indexer_of(200'000, 4096, 128);
  EXPECT_TRUE(
      alike(wavejit_call_supported(engine_, &indexer.head), "sparse_indexer bf16 b1 q200000 k4096 h128 top=2048"));
}

}  // namespace
}  // namespace wavejit::tests
