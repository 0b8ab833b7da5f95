// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Split keys together with packed sequences, lengths in device memory, windows, modifiers and sinks: against float64,
// the same bits in every pipeline and schedule, and the same bits for a sequence alone.
#include <gtest/gtest.h>

#include <format>
#include <span>
#include <string>
#include <tuple>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

using Combination = std::tuple<std::string, Storage, int>;

class SplitModified : public ::testing::TestWithParam<Combination> {
 protected:
  static constexpr int heads = 2;
  Storage storage() const { return std::get<1>(GetParam()); }
  int head_dim() const { return std::get<2>(GetParam()); }
  AttentionCase make(int queries, int keys, bool causal, int splits, std::uint64_t seed) const {
    AttentionCase which = make_case(storage(), 1, queries, keys, heads, 1, head_dim(), causal, seed);
    which.splits = splits;
    return which;
  }

  Pipelines pipelines_{std::get<0>(GetParam())};
};

// The sequences one after the other, as one packed call.
AttentionCase packed(const std::vector<AttentionCase>& sequences) {
  AttentionCase whole = sequences.front();
  AttentionInputs& in = whole.inputs;
  in.batch = static_cast<int>(sequences.size());
  in.query_starts = in.key_starts = {0};
  in.q.clear(), in.k.clear(), in.v.clear();
  for (const AttentionCase& one : sequences) {
    in.query_length = std::max(in.query_length, one.inputs.query_length);
    in.key_length = std::max(in.key_length, one.inputs.key_length);
    in.query_starts.push_back(in.query_starts.back() + one.inputs.query_length);
    in.key_starts.push_back(in.key_starts.back() + one.inputs.key_length);
    for (const auto field : {&AttentionInputs::q, &AttentionInputs::k, &AttentionInputs::v})
      (in.*field).insert((in.*field).end(), (one.inputs.*field).begin(), (one.inputs.*field).end());
  }
  return whole;
}

TEST_P(SplitModified, PackedSequencesAreThoseAlone) {
  for (const int splits : {2, 5}) {
    SCOPED_TRACE(std::format("splits {}", splits));
    std::vector<AttentionCase> sequences;
    for (const auto& [queries, keys] : {std::pair{3, 1300}, {0, 5}, {140, 2100}, {1, 0}, {1, 700}, {5, 1024}})
      sequences.push_back(make(queries, keys, true, splits, 800 + keys));
    const AttentionCase whole = packed(sequences);
    const AttentionOutput together = pipelines_.check(whole);
    if (HasFailure()) return;
    const std::size_t row = std::size_t{heads} * head_dim();
    for (std::size_t b = 0; b < sequences.size(); ++b) {
      const AttentionInputs& one = sequences[b].inputs;
      if (one.query_length == 0) continue;
      const AttentionOutput alone = run_attention(pipelines_.generic().get(), sequences[b]);
      ASSERT_EQ(alone.status, WAVEJIT_OK) << alone.detail;
      const std::size_t first = whole.inputs.query_starts[b];
      EXPECT_TRUE(std::ranges::equal(alone.o, std::span(together.o).subspan(first * row, alone.o.size()))) << b;
      for (int h = 0; h < heads; ++h)
        for (int i = 0; i < one.query_length; ++i)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(alone.lse[std::size_t(h) * one.query_length + i]),
                    std::bit_cast<std::uint32_t>(together.lse[std::size_t(h) * whole.inputs.query_rows() + first + i]))
              << "sequence " << b << " row " << i;
    }
  }
}

// Dense keys of which only some count: padding does not show, whatever it holds.
TEST_P(SplitModified, KeyLengthsCutChunksOfTheSequence) {
  AttentionCase which = make_case(storage(), 3, 20, 2300, heads, 1, head_dim(), false, 820);
  which.inputs.key_lengths = {2300, 1057, 0};
  which.splits = 3;
  const AttentionOutput together = pipelines_.check(which);
  AttentionCase second = make(20, 1057, false, 3, 0);
  const std::size_t q = which.inputs.q.size() / 3;
  const std::size_t k = which.inputs.k.size() / 3;
  second.inputs.q.assign(which.inputs.q.begin() + q, which.inputs.q.begin() + 2 * q);
  second.inputs.k.assign(which.inputs.k.begin() + k, which.inputs.k.begin() + k + 1057 * head_dim());
  second.inputs.v.assign(which.inputs.v.begin() + k, which.inputs.v.begin() + k + 1057 * head_dim());
  const AttentionOutput alone = run_attention(pipelines_.generic().get(), second);
  ASSERT_EQ(alone.status, WAVEJIT_OK) << alone.detail;
  EXPECT_TRUE(std::ranges::equal(alone.o, std::span(together.o).subspan(q, q)));
}

// Windows that reach over the cut, lie inside a run, or leave runs empty; a row whose window has no key.
TEST_P(SplitModified, Windows) {
  for (const auto& [left, right] : {std::pair{1200, 40}, {20, 0}, {-1, 500}}) {
    SCOPED_TRACE(std::format("window {},{}", left, right));
    AttentionCase which = make(150, 2500, false, 3, 830);
    which.inputs.window = true;
    which.inputs.window_left = left;
    which.inputs.window_right = right;
    pipelines_.check(which);
  }
}

TEST_P(SplitModified, Modifiers) {
  AttentionCase which = make(70, 2200, true, 3, 840);
  add_bias(which, 1, heads, 1.0, 841);
  pipelines_.check(which);
  which.inputs.bias.clear();
  add_alibi(which, 1);
  which.inputs.softcap = 20;
  pipelines_.check(which);
}

// The sink counts once, however many runs there are, and alone for rows that see no key.
TEST_P(SplitModified, SinksCountOnce) {
  for (const double center : {-3.0, 4.0}) {
    SCOPED_TRACE(std::format("sinks around {}", center));
    AttentionCase which = make(40, 2100, false, 3, 850);
    add_sink(which, center);
    pipelines_.check(which);
  }
  // The first rows see no key.
  AttentionCase hidden = make(1070, 1030, true, 2, 851);
  add_sink(hidden, 4.0);
  pipelines_.check(hidden);
  // One chunk in a batch that is split: the bits of the kernel that does not split, sink and all.
  std::vector<AttentionCase> sequences = {make(9, 200, true, 2, 852), make(9, 1100, true, 2, 853)};
  add_sink(sequences[0], 1.0);
  const AttentionOutput together = pipelines_.check(packed(sequences));
  sequences[0].splits = 1;
  const AttentionOutput alone = run_attention(pipelines_.generic().get(), sequences[0]);
  ASSERT_EQ(alone.status, WAVEJIT_OK) << alone.detail;
  EXPECT_TRUE(alone.kernel_spec.find(" split=") == std::string::npos);
  EXPECT_TRUE(together.kernel_spec.find(" split=") != std::string::npos);
  EXPECT_TRUE(std::ranges::equal(alone.o, std::span(together.o).first(alone.o.size())));
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < 9; ++i) EXPECT_EQ(alone.lse[h * 9 + i], together.lse[h * 18 + i]);
}

// The larger head dims, whose rows take more lanes to combine; of the generic pipeline.
TEST_P(SplitModified, LargeHeadDims) {
  for (const auto& [qk, v] : {std::pair{192, 128}, {256, 256}}) {
    if (qk == 256 && std::get<0>(GetParam()) != "gfx950") continue;
    SCOPED_TRACE(std::format("head dims {}/{}", qk, v));
    AttentionCase which = make_case(storage(), 1, 37, 2100, heads, 1, qk, true, 860, 1.0, v);
    which.splits = 3;
    const AttentionOutput output = run_attention(pipelines_.generic().get(), which);
    ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), output).wrong(), "");
  }
}

std::string name_of(const ::testing::TestParamInfo<Combination>& info) {
  const auto [target, storage, head_dim] = info.param;
  return std::format("{}_{}_d{}", target, storage == Storage::fp16 ? "fp16" : "bf16", head_dim);
}

INSTANTIATE_TEST_SUITE_P(All, SplitModified,
                         ::testing::Values(Combination{"gfx942", Storage::fp16, 128},
                                           Combination{"gfx950", Storage::bf16, 128},
                                           Combination{"gfx950", Storage::fp16, 64}),
                         name_of);

}  // namespace
}  // namespace wavejit::tests
