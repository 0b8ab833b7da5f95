// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that a list of each query names: bit against bit with walks over all keys, and what is refused. Against float64
// they are lines of list_problems.txt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "attention/line_runs.h"
#include "attention/modified.h"
#include "templates/attention/kernel/canon.h"

namespace wavejit::tests {
namespace {

using ::testing::HasSubstr;

class KeyLists : public LineRuns {};

// A list of all keys in their order has the bits of no list while it is one chunk.
TEST_P(KeyLists, OfAllKeysHaveTheBitsOfNone) {
  for (const char* words : {"bf16 b2 q1 k256 h16/2 d128 lse", "fp16 b2 q3 k199 h40/1 d64 causal lse",
                            "bf16 b2 q2 k256 h12/3 d128 causal lse layout=paged:64 k_lengths=256,70 softcap=30"})
    EXPECT_TRUE(run(std::string(words) + " top_k=256").same_as(run(words))) << words;
}

TEST_P(KeyLists, ShowNoPagesNoSlotsAndNoSplits) {
  const std::string words = "bf16 b2 q2 k700 h12/4 d128 lse top_k=600";
  const RanLine dense = run(words + " splits=1");
  for (const char* rest : {" splits=2", " splits=3", " layout=paged:1", " layout=paged:16", " layout=paged:64:hnd"})
    EXPECT_TRUE(run(words + rest).same_as(dense)) << rest;
  EXPECT_TRUE(run(words + ":slots").same_as(dense));
  EXPECT_TRUE(run(words + ":slots layout=paged:64 splits=2").same_as(dense));
}

INSTANTIATE_TEST_SUITE_P(Targets, KeyLists, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// ---- Calls with lists of the test's own -----------------------------------------------------------------------------

class KeyListCalls : public ::testing::TestWithParam<const char*> {
 protected:
  AttentionOutput run(const AttentionCase& which) {
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  static void expect_same(const AttentionOutput& one, const AttentionOutput& other) {
    EXPECT_EQ(one.o, other.o);
    EXPECT_EQ(bits_of(one.lse), bits_of(other.lse));
  }
  Engine engine_{GetParam()};
};

GivenKeyLists named(std::vector<std::int32_t> indices, std::int64_t top_k) {
  return {.top_k = top_k, .heads = 1, .slots = false, .indices = std::move(indices), .counts = {}};
}

// The dense kernels over a list's keys in its order, with chunks of 256: those of a list's chunk stand at the beginning
// of a chunk of 1,024, and all that fills it up has a score of −∞, as has a hole of the list (a last column of −∞,
// where queries have 2 and all other keys 0).
TEST_P(KeyListCalls, HaveTheBitsOfADenseWalkWithChunksOf256) {
  constexpr int chunk = attention::chunk_keys;
  constexpr int list_chunk = attention::list_chunk_keys;
  constexpr int dims = 128;
  for (const int top_k : {256, 513, 1100}) {
    SCOPED_TRACE(top_k);
    AttentionCase listed = make_case(Storage::bf16, 1, 1, 900, 16, 1, dims, false, 31);
    for (std::size_t last = dims - 1; last < listed.inputs.q.size(); last += dims) listed.inputs.q[last] = 2;
    for (std::size_t last = dims - 1; last < listed.inputs.k.size(); last += dims) listed.inputs.k[last] = 0;
    std::vector<std::int32_t> indices;
    for (int place = 0; place < top_k; ++place) indices.push_back(place % 7 == 3 ? -1 : (place * 397) % 900);
    listed.key_lists = named(indices, top_k);
    AttentionCase dense =
        make_case(Storage::bf16, 1, 1, (top_k / list_chunk * chunk) + (top_k % list_chunk), 16, 1, dims, false, 32);
    dense.inputs.q = listed.inputs.q;
    std::ranges::fill(dense.inputs.v, 0.0F);
    for (int key = 0; key < dense.inputs.key_length; ++key) {
      float* to = dense.inputs.k.data() + (std::ptrdiff_t{key} * dims);
      const int place = (key / chunk * list_chunk) + (key % chunk);
      const int entry = key % chunk < list_chunk && place < top_k ? indices[static_cast<std::size_t>(place)] : -1;
      std::fill_n(to, dims, 0.0F);
      if (entry < 0) {
        to[dims - 1] = -std::numeric_limits<float>::infinity();
        continue;
      }
      std::copy_n(listed.inputs.k.begin() + (std::ptrdiff_t{entry} * dims), dims, to);
      std::copy_n(listed.inputs.v.begin() + (std::ptrdiff_t{entry} * dims), dims,
                  dense.inputs.v.begin() + (std::ptrdiff_t{key} * dims));
    }
    const AttentionOutput walk = run(dense);
    for (const int splits : {0, 1, 2}) {
      listed.splits = splits;
      expect_same(run(listed), walk);
    }
  }
}

// FlashMLA's note on top-k: entries beyond the length that point at NaN make NaN, although they are ignored.
TEST_P(KeyListCalls, EntriesBehindACountMayNameNan) {
  AttentionCase which = make_case(Storage::bf16, 1, 2, 90, 8, 2, 64, false, 33);
  std::vector<std::int32_t> indices(std::size_t{2} * 70, 5);
  for (std::size_t at = 0; at < 30; ++at) indices[at] = indices[70 + at] = static_cast<std::int32_t>(6 + at);
  which.key_lists = named(indices, 70);
  which.key_lists->counts = {30, 17};
  const AttentionOutput finite = run(which);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int key = 0; key < 6; ++key)
    for (std::vector<float>* tensor : {&which.inputs.k, &which.inputs.v})
      std::fill_n(tensor->begin() + (std::ptrdiff_t{key} * 2 * 64), 2 * 64, nan);
  expect_same(run(which), finite);
  for (std::size_t at = 30; at < 70; ++at) which.key_lists->indices[at] = std::numeric_limits<std::int32_t>::max();
  expect_same(run(which), finite);
}

// A row has the bits of its own list, whatever its neighbours' say.
TEST_P(KeyListCalls, OfOneHeadShowInNoOther) {
  AttentionCase which = make_case(Storage::fp16, 1, 1, 200, 6, 2, 128, false, 34);
  std::vector<std::int32_t> indices;
  for (std::int32_t at = 0; at < 100; ++at) indices.push_back((at * 31) % 200);
  std::vector<std::int32_t> both = indices;
  for (std::int32_t at = 0; at < 100; ++at) both.push_back(at % 3 == 0 ? -1 : 199 - at);
  which.key_lists = named(indices, 100);
  const AttentionOutput shared = run(which);
  which.key_lists->heads = 2;
  which.key_lists->indices = both;
  const AttentionOutput apart = run(which);
  const auto of_first = static_cast<std::ptrdiff_t>(shared.o.size() / 2);
  EXPECT_TRUE(std::equal(shared.o.begin(), shared.o.begin() + of_first, apart.o.begin()));
  EXPECT_FALSE(std::equal(shared.o.begin() + of_first, shared.o.end(), apart.o.begin() + of_first));
}

// An engine's cache before its first key: pages of no keys have no slot that an entry could name.
TEST_P(KeyListCalls, OverACacheWithoutSlotsSeeNothing) {
  AttentionCase which = make_case(Storage::bf16, 2, 3, 80, 6, 2, 64, false, 35);
  which.key_lists = named(std::vector<std::int32_t>(std::size_t{2} * 3 * 300, 5), 300);
  which.key_lists->slots = true;
  for (const bool has_memory : {true, false}) {
    const AttentionOutput output = run_attention(engine_.get(), which, [&](auto& call) {
      call.k.sizes[1] = call.v.sizes[1] = 0;
      if (!has_memory) call.k.data = call.v.data = nullptr;
    });
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    EXPECT_TRUE(std::ranges::all_of(output.o, [](std::uint16_t bits) { return bits == 0; }));
    for (const float lse : output.lse) EXPECT_EQ(lse, -std::numeric_limits<float>::infinity());
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, KeyListCalls, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

// ---- What bad input gets --------------------------------------------------------------------------------------------

class KeyListRefusals : public ::testing::Test {
 protected:
  KeyListRefusals() { which_.key_lists = named(std::vector<std::int32_t>(std::size_t{3} * 40, 1), 40); }
  void expect(wavejit_status status, const std::string& detail) {
    const AttentionOutput output = run_attention(engine_.get(), which_);
    EXPECT_EQ(output.status, status) << detail;
    EXPECT_THAT(output.detail, HasSubstr(detail));
  }
  AttentionCase which_ = make_case(Storage::fp16, 1, 3, 70, 4, 2, 64, false, 35);
  Engine engine_{"gfx950"};
};

TEST_F(KeyListRefusals, NameTheField) {
  GivenKeyLists& lists = *which_.key_lists;
  const GivenKeyLists good = lists;
  lists.top_k = 0;
  expect(WAVEJIT_INVALID_ARGUMENT, "top_k = 0; accepted: the entries of a list, 1 to 1048576");
  lists = good;
  lists.heads = 4;
  expect(WAVEJIT_INVALID_ARGUMENT, "key_list_heads = 4; accepted: 0 or 1 (all heads have one list), 2 (kv heads)");
  lists = good;
  lists.row_stride = 39;
  expect(WAVEJIT_INVALID_ARGUMENT, "key_indices_row_stride = 39; accepted: 0, or top_k = 40");
  lists = good;
  lists.slots = true;
  which_.inputs.causal = true;
  expect(WAVEJIT_INVALID_ARGUMENT, "mask = 1; accepted: 0 beside key_slots = 1");
  lists = good;
  which_.inputs.causal = false;
  which_.inputs.window = true;
  which_.inputs.window_left = 9;
  expect(WAVEJIT_UNSUPPORTED, "key_indices beside window; accepted: causal, or no mask");
  which_.inputs.window = false;
  add_bias(which_, 1, 1, 1.0, 36);
  expect(WAVEJIT_UNSUPPORTED, "key_indices beside bias; accepted: no bias and no slopes");
  which_.inputs.bias.clear();
  add_alibi(which_, 1);
  expect(WAVEJIT_UNSUPPORTED, "key_indices beside alibi; accepted: no bias and no slopes");
  which_.inputs.alibi.clear();
  which_.inputs.lists = random_lists(64, 64, 1, 1, 3, 70, 2, 0, 0);
  expect(WAVEJIT_UNSUPPORTED, "key_indices beside lists of key blocks; accepted: one of the two");
}

// What only the device knows is taken as it is, and told with the flag that reads it.
TEST_F(KeyListRefusals, OfTheDeviceWhereTheFlagAsks) {
  which_.key_lists->counts = {40, 41, -1};
  EXPECT_EQ(run_attention(engine_.get(), which_).status, WAVEJIT_OK);
  which_.flags = WAVEJIT_CHECK_LENGTHS;
  expect(WAVEJIT_INVALID_ARGUMENT, "key_counts[1] = 41; accepted: 0 to 40");
  which_.key_lists->counts = {40, 3, 0};
  EXPECT_EQ(run_attention(engine_.get(), which_).status, WAVEJIT_OK);
}

TEST_F(KeyListRefusals, OfLinesNameTheWord) {
  for (const auto& [words, detail] : {std::pair{"top_k=0", "is no length of lists"},
                                      {"top_k=5:mixed:slots", "is not known"},
                                      {"top_k=5 bias=1", "top_k beside bias"},
                                      {"top_k=5 lists=64x64", "top_k beside lists of key blocks"},
                                      {"top_k=5:slots causal", "top_k with :slots"},
                                      {"top_k=5 layout=paged:16:vectorised", "top_k beside vectorised pages"},
                                      {"top_k=5 first_keys", "top_k beside first_keys"},
                                      {"top_k=5 window=3,0", "top_k beside window"}}) {
    const std::string line = std::string("attention_forward bf16 b1 q1 k70 h4/2 d64 ") + words;
    EXPECT_NE(wavejit_describe(line.c_str(), [](void*, const char*) {}, nullptr), WAVEJIT_OK) << line;
    EXPECT_THAT(wavejit_last_detail(), HasSubstr(detail));
  }
}

}  // namespace
}  // namespace wavejit::tests
