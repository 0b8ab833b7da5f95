// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a caller writes into a struct is compared with something, or refused by its name: fields that mean nothing in a
// call, arrays that are not aligned, memory that is written and given twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "good_calls.h"
#include "wavejit/wavejit.h"

namespace wavejit::tests {
namespace {

using ::testing::StartsWith;

template <typename Arguments>
struct Wrong {
  const char* begins;  // what the refusal begins with
  std::size_t call;    // of those in good_calls.h
  std::function<void(Arguments& call)> change;
};

class ComparedFields : public ::testing::Test {
 protected:
  void SetUp() override {
    wavejit_engine_options options{};
    options.size = sizeof options;
    options.device = "sim:gfx950";
    options.cache_mode = "off";
    options.log_level = "off";
    ASSERT_EQ(wavejit_engine_create(&options, &engine_), WAVEJIT_OK) << wavejit_last_detail();
  }
  void TearDown() override { wavejit_engine_destroy(engine_); }

  template <typename Arguments>
  void refused(const std::vector<Arguments>& calls, const std::vector<Wrong<Arguments>>& wrong,
               wavejit_status status = WAVEJIT_INVALID_ARGUMENT) {
    for (const auto& [begins, number, change] : wrong) {
      Arguments call = calls[number];
      EXPECT_EQ(wavejit_call_supported(engine_, &call.head), WAVEJIT_OK) << number << ": " << wavejit_last_detail();
      change(call);
      EXPECT_EQ(wavejit_call_supported(engine_, &call.head), status) << begins;
      EXPECT_THAT(wavejit_last_detail(), StartsWith(begins));
    }
  }

  wavejit_engine* engine_ = nullptr;
};

const std::int32_t* odd(const std::int32_t* array) {
  return reinterpret_cast<const std::int32_t*>(reinterpret_cast<const char*>(array) + 2);
}

TEST_F(ComparedFields, OfAttentionForward) {
  constexpr std::size_t modified = 4;
  constexpr std::size_t masked = 5;
  constexpr std::size_t few_rows = 6;
  constexpr std::size_t blocks = 7;
  constexpr std::size_t split = 13;
  std::vector<Wrong<Forward>> wrong = {
      {"list_counts = ", blocks, [](Forward& call) { call.blocks.list_counts = odd(call.blocks.list_counts); }},
      {"list_indices = ", blocks, [](Forward& call) { call.blocks.list_indices = odd(call.blocks.list_indices); }},
      {"o.data = ", modified, [](Forward& call) { call.o.data = call.modifiers.sink.data; }},
      {"o.data = ", modified, [](Forward& call) { call.o.data = call.modifiers.alibi.data; }},
      {"lse.data = ", modified, [](Forward& call) { call.lse.data = call.modifiers.bias.data; }},
      {"lse.data = ", masked, [](Forward& call) { call.lse.data = call.modifiers.bool_mask.data; }},
      {"workspace = ", split, [](Forward& call) { call.split.workspace = call.scales.k_scale.data; }},
  };
  // With a bool mask the fields of lists are not read.
  for (const std::size_t call : {masked, few_rows}) {
    wrong.push_back({"list_counts = ", call, [](Forward& c) { c.blocks.list_counts = numbers(13); }});
    wrong.push_back({"full_starts = ", call, [](Forward& c) { c.blocks.full_starts = numbers(13); }});
    wrong.push_back({"list_rows = 64", call, [](Forward& c) { c.blocks.list_rows = 64; }});
    wrong.push_back({"list_heads = 8", call, [](Forward& c) { c.blocks.list_heads = 8; }});
    wrong.push_back({"full_capacity = 4", call, [](Forward& c) { c.blocks.full_capacity = 4; }});
    wrong.push_back({"flags = 2", call, [](Forward& c) { c.head.flags = WAVEJIT_LISTS_ALIKE; }});
  }
  refused(forward_calls(WAVEJIT_E4M3), wrong);
}

// A second cache of 8 bits ends where its bytes end, and O may stand right behind it.
TEST_F(ComparedFields, WhatStandsBehindASecondCacheIsNoPartOfIt) {
  Forward call = forward_calls(WAVEJIT_E4M3)[10];
  for (wavejit_tensor* cache : {&call.k, &call.v, &call.second_k, &call.second_v}) cache->dtype = WAVEJIT_E4M3;
  const std::int64_t bytes = call.second_k.sizes[0] * call.second_k.strides[0];
  call.o.data = static_cast<char*>(call.second_k.data) + bytes;
  EXPECT_EQ(wavejit_call_supported(engine_, &call.head), WAVEJIT_OK) << wavejit_last_detail();
  call.o.data = static_cast<char*>(call.second_k.data) + (bytes - 256);
  EXPECT_EQ(wavejit_call_supported(engine_, &call.head), WAVEJIT_INVALID_ARGUMENT);
}

TEST_F(ComparedFields, OfAttentionLatent) {
  refused<Latent>(latent_calls(WAVEJIT_E4M3),
                  {{"o.data = ", 2, [](Latent& call) { call.o.data = call.modifiers.sink.data; }}});
}

TEST_F(ComparedFields, OfAttentionBackward) {
  constexpr std::size_t delta = 2;  // which brings its workspace
  refused<Backward>(backward_calls(),
                    {{"workspace = ", delta, [](Backward& call) { call.split.workspace = call.dq.data; }},
                     {"workspace = ", delta, [](Backward& call) { call.split.workspace = call.delta.data; }}});
}

TEST_F(ComparedFields, OfSparseIndexer) {
  constexpr std::size_t given_scores = 2;
  refused<Indexer>(indexer_calls(),
                   {{"table_starts = ", given_scores, [](Indexer& call) { call.pages.table_starts = numbers(9); }},
                    {"max_key_length = 64", given_scores, [](Indexer& call) { call.max_key_length = 64; }},
                    {"table_columns = 64", given_scores, [](Indexer& call) { call.pages.table_columns = 64; }},
                    {"table_row_stride = 64", given_scores, [](Indexer& call) { call.pages.table_row_stride = 64; }},
                    {"workspace = ", 0, [](Indexer& call) {
                       call.split.workspace = call.keys.data;
                       call.split.workspace_bytes = std::size_t{1} << 26U;
                     }}});
}

// Slots and positions are read while rows are written.
TEST_F(ComparedFields, OfCacheAppend) {
  const auto inside = [](const wavejit_tensor& tensor) { return static_cast<char*>(tensor.data) + 4096; };
  std::vector<Append> calls = append_calls(WAVEJIT_E4M3);
  Append vectorised = calls[0];
  vectorised.page_layout = WAVEJIT_PAGES_VECTORISED;
  vectorised.k_cache.strides[1] = 8;
  vectorised.k_cache.strides[2] = std::int64_t{16} * 128;
  vectorised.v_cache.strides[1] = 1;
  vectorised.v_cache.strides[2] = std::int64_t{16} * 256;
  vectorised.v_cache.strides[3] = 16;
  calls.push_back(vectorised);
  const std::size_t last = calls.size() - 1;
  refused<Append>(calls, {{"k_cache.data = ", 0, [&](Append& call) { call.slots = inside(call.k_cache); }},
                          {"v_cache.data = ", 1, [&](Append& call) { call.positions = inside(call.v_cache); }},
                          {"q_out.data = ", 1, [&](Append& call) { call.positions = inside(call.q_out); }},
                          {"k_scale.data = ", 3, [&](Append& call) { call.slots = inside(call.scales.k_scale); }},
                          {"k_cache.data = ", 4, [&](Append& call) { call.slots = inside(call.k_cache); }},
                          {"k_cache.data = ", last, [&](Append& call) { call.slots = inside(call.k_cache); }},
                          {"k_cache.data = ", last, [&](Append& call) { call.k.data = inside(call.k_cache); }},
                          {"v_cache.data = ", last, [&](Append& call) { call.slots = inside(call.v_cache); }},
                          {"position_bytes = 7", 0, [](Append& call) { call.position_bytes = 7; }}});
}

// ---- Parts of calls: what a family does not have of them stays 0 ------------------------------------------------------

TEST_F(ComparedFields, AForwardCallHasNoRowScales) {
  refused<Forward>(forward_calls(WAVEJIT_E4M3), {{"row_scales = 1", 0, [](Forward& c) { c.scales.row_scales = 1; }}},
                   WAVEJIT_UNSUPPORTED);
}

TEST_F(ComparedFields, WhatGradientsHaveNotIsRefused) {
  refused<Backward>(
      backward_calls(),
      {{"local_chunk = 8", 0, [](Backward& c) { c.mask.local_chunk = 8; }},
       {"causal_flags = ", 0, [](Backward& c) { c.mask.causal_flags = static_cast<std::uint8_t*>(place(30)); }},
       {"score_rounding = 1", 0, [](Backward& c) { c.modifiers.score_rounding = 1; }},
       {"bool_mask.data = ", 0, [](Backward& c) { c.modifiers.bool_mask.data = place(30); }},
       {"first_keys = ", 0, [](Backward& c) { c.sequences.first_keys = numbers(30); }},
       {"max_total_keys = 9", 0, [](Backward& c) { c.sequences.max_total_keys = 9; }},
       {"splits = 2", 0, [](Backward& c) { c.split.splits = 2; }}},
      WAVEJIT_UNSUPPORTED);
}

TEST_F(ComparedFields, WhatLatentAttentionHasNotIsRefused) {
  refused<Latent>(
      latent_calls(WAVEJIT_E4M3),
      {{"window_left = 3", 0, [](Latent& c) { c.mask.window_left = 3; }},
       {"window_right = -1", 0, [](Latent& c) { c.mask.window_right = -1; }},
       {"local_chunk = 8", 0, [](Latent& c) { c.mask.local_chunk = 8; }},
       {"causal_flags = ", 0, [](Latent& c) { c.mask.causal_flags = static_cast<std::uint8_t*>(place(30)); }},
       {"score_rounding = 1", 0, [](Latent& c) { c.modifiers.score_rounding = 1; }},
       {"bias.data = ", 0, [](Latent& c) { c.modifiers.bias.data = place(30); }},
       {"alibi.data = ", 0, [](Latent& c) { c.modifiers.alibi.data = place(30); }},
       {"bool_mask.data = ", 0, [](Latent& c) { c.modifiers.bool_mask.data = place(30); }},
       {"first_keys = ", 0, [](Latent& c) { c.sequences.first_keys = numbers(30); }},
       {"page_layout = 1", 0, [](Latent& c) { c.pages.page_layout = WAVEJIT_PAGES_VECTORISED; }},
       {"v_scale.data = ", 0, [](Latent& c) { c.scales.v_scale.data = place(30); }},
       {"q_scale.data = ", 0, [](Latent& c) { c.scales.q_scale.data = place(30); }},
       {"token_scales = 1", 0, [](Latent& c) { c.scales.token_scales = 1; }}},
      WAVEJIT_UNSUPPORTED);
}

TEST_F(ComparedFields, WhatOtherFamiliesHaveNotIsRefused) {
  refused<Softmax>(softmax_calls(), {{"local_chunk = 8", 0, [](Softmax& c) { c.mask.local_chunk = 8; }}},
                   WAVEJIT_UNSUPPORTED);
  refused<Indexer>(
      indexer_calls(),
      {{"page_layout = 2", 0, [](Indexer& c) { c.pages.page_layout = WAVEJIT_PAGES_VECTORISED_KEYS; }},
       {"page_layout = 1", 1, [](Indexer& c) { c.pages.page_layout = WAVEJIT_PAGES_VECTORISED; }},  // dense keys
       {"splits = 2", 0, [](Indexer& c) { c.split.splits = 2; }}},
      WAVEJIT_UNSUPPORTED);
  refused<Append>(append_calls(WAVEJIT_E4M3),
                  {{"q_scale.data = ", 0, [](Append& c) { c.scales.q_scale.data = place(30); }},
                   {"row_scales = 2", 0, [](Append& c) { c.scales.row_scales = 2; }}},
                  WAVEJIT_UNSUPPORTED);
}

// The second list has the fields of the first, and two of them say what the first says.
TEST_F(ComparedFields, ASecondListSaysOfSlotsAndHeadsWhatTheFirstSays) {
  constexpr std::size_t two_lists = 10;
  Forward call = forward_calls(WAVEJIT_E4M3)[two_lists];
  call.second_list.slots = 1;
  EXPECT_EQ(wavejit_call_supported(engine_, &call.head), WAVEJIT_OK) << wavejit_last_detail();
  refused<Forward>(forward_calls(WAVEJIT_E4M3),
                   {{"second_list.slots = 2", two_lists, [](Forward& c) { c.second_list.slots = 2; }},
                    {"second_list.heads = 2", two_lists, [](Forward& c) { c.second_list.heads = 2; }},
                    {"second_list.slots = 1", 0, [](Forward& c) { c.second_list.slots = 1; }}});
}

TEST_F(ComparedFields, ACallSaysWhoseItIs) {
  Forward call = forward_calls(WAVEJIT_E4M3)[0];
  call.head.family = WAVEJIT_ATTENTION_LATENT;
  EXPECT_EQ(wavejit_attention_forward(engine_, &call, nullptr), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(wavejit_last_detail(), StartsWith("head.family = 3; accepted: 1"));
  // Asked as a call of the other family, it is too small for one, or not what one is.
  EXPECT_EQ(wavejit_call_supported(engine_, &call.head), WAVEJIT_INVALID_ARGUMENT);
  call.head.family = 77;
  EXPECT_EQ(wavejit_call_supported(engine_, &call.head), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(wavejit_last_detail(), StartsWith("head.family = 77; accepted: 1 (attention_forward)"));
  call.head.size = 3;
  EXPECT_EQ(wavejit_call_supported(engine_, &call.head), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(wavejit_last_detail(), StartsWith("head.size = 3"));
  EXPECT_EQ(wavejit_call_ready(engine_, nullptr), WAVEJIT_INVALID_ARGUMENT);
  EXPECT_THAT(wavejit_last_detail(), StartsWith("call = null"));
}

}  // namespace
}  // namespace wavejit::tests
