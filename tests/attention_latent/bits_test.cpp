// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What shows in no bit of a row: splits, rounds, pages, other sequences, other heads, rows a workgroup, where the
// latent and the rope stand, and whether a query comes alone, among others, or with a prompt.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention_latent/latent_run.h"

namespace wavejit::tests {
namespace {

class LatentBits : public ::testing::TestWithParam<const char*> {
 protected:
  LatentOutput run(const LatentArrays& arrays, const ChangeLatentCall& change = {}) {
    LatentOutput output = run_latent(engine_.get(), arrays, change);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    return output;
  }
  LatentOutput run(const std::string& words) { return run(latent_arrays(words)); }

  Engine engine_{GetParam()};
};

TEST_P(LatentBits, ShowNoSplits) {
  const LatentOutput whole = run("bf16 b1 q1 k3000 h16 d576/512 lse splits=1");
  for (const char* splits : {"2", "3", "16"})
    EXPECT_EQ(run("bf16 b1 q1 k3000 h16 d576/512 lse splits=" + std::string(splits)), whole) << splits;
  EXPECT_EQ(run("bf16 b1 q1 k3000 h16 d576/512 lse"), whole);
}

// A workspace with room for one sequence: three rounds.
TEST_P(LatentBits, ShowNoRounds) {
  const std::string words = "bf16 b3 q1 k1500 h8 d576/512 lse k_lengths=1500,40,1025";
  const LatentOutput all = run(words + " splits=1");
  const LatentOutput rounds = run(latent_arrays(words), [](wavejit_attention_latent_arguments& call) {
    if (call.split.workspace_bytes != 0) call.split.workspace_bytes = call.split.workspace_bytes / 3;
  });
  EXPECT_EQ(rounds, all);
}

// The arrays of the same descriptor but for where keys stand hold the same numbers.
TEST_P(LatentBits, ShowNoPagesAndNotWhereTheRopeStands) {
  const std::string words = "bf16 b2 q2 k150 h12 d576/512 causal lse";
  const LatentOutput dense = run(words + " k_lengths=150,67");
  for (const char* layout : {"layout=paged:1", "layout=paged:16", "layout=paged:64", "apart", "apart layout=paged:32"})
    EXPECT_EQ(run(words + " " + layout + " k_lengths=150,67"), dense) << layout;
}

// Queries of one position each, against all of them at once: decode, speculation and a prompt.
TEST_P(LatentBits, ShowNotWhichQueriesComeTogether) {
  const LatentArrays prompt = latent_arrays("bf16 b1 q9 k140 h16 d576/512 causal lse");
  const LatentOutput all = run(prompt);
  const auto of_rows = [&](std::int64_t first, std::int64_t count) {
    return run(prompt, [&](wavejit_attention_latent_arguments& call) {
      const std::int64_t rows = call.q.sizes[1];
      call.q.data = static_cast<std::uint16_t*>(call.q.data) + (first * call.q.strides[1]);
      call.o.data = static_cast<std::uint16_t*>(call.o.data) + (first * call.o.strides[1]);
      call.lse.data = static_cast<float*>(call.lse.data) + first;
      call.q.sizes[1] = call.o.sizes[1] = call.lse.sizes[2] = count;
      call.k.sizes[1] -= rows - (first + count);
    });
  };
  for (const auto& [first, count] : {std::pair<std::int64_t, std::int64_t>{0, 1}, {8, 1}, {3, 4}, {1, 8}}) {
    const LatentOutput some = of_rows(first, count);
    for (std::int64_t row = first; row < first + count; ++row)
      for (std::int64_t head = 0; head < 16; ++head)
        ASSERT_EQ(row_of(prompt, some, 0, row, head), row_of(prompt, all, 0, row, head)) << first << " " << row;
  }
}

// A head by itself, or among those of wider tiles; a sequence alone, or in a batch of others.
TEST_P(LatentBits, ShowNoOtherHeadsAndNoOtherSequences) {
  const LatentArrays batch = latent_arrays("bf16 b3 q1 k100 h48 d576/512 lse k_lengths=100,9,64");
  const LatentOutput all = run(batch);
  const LatentOutput few = run(batch, [](wavejit_attention_latent_arguments& call) {
    constexpr std::int64_t first = 20;
    call.q.data = static_cast<std::uint16_t*>(call.q.data) + (first * call.q.strides[2]);
    call.o.data = static_cast<std::uint16_t*>(call.o.data) + (first * call.o.strides[2]);
    call.lse.data = static_cast<float*>(call.lse.data) + first;
    call.q.sizes[2] = call.o.sizes[2] = call.lse.sizes[1] = 7;
  });
  for (std::int64_t sequence = 0; sequence < 3; ++sequence)
    for (std::int64_t head = 20; head < 27; ++head)
      ASSERT_EQ(row_of(batch, few, sequence, 0, head), row_of(batch, all, sequence, 0, head)) << sequence;
  const LatentOutput alone = run(batch, [](wavejit_attention_latent_arguments& call) {
    for (wavejit_tensor* tensor : {&call.q, &call.k, &call.o})
      tensor->data = static_cast<std::uint16_t*>(tensor->data) + tensor->strides[0];
    call.lse.data = static_cast<float*>(call.lse.data) + call.lse.strides[0];
    call.q.sizes[0] = call.k.sizes[0] = call.o.sizes[0] = call.lse.sizes[0] = 1;
    ++call.sequences.key_lengths;
  });
  for (std::int64_t head = 0; head < 48; ++head)
    ASSERT_EQ(row_of(batch, alone, 1, 0, head), row_of(batch, all, 1, 0, head)) << head;
}

// As `wavejit tune` pins them: 32 and 64, whatever the rows of a sequence, or of a query with a list, are.
TEST_P(LatentBits, ShowNotHowManyRowsAWorkgroupHas) {
  for (const char* words :
       {"bf16 b2 q1 k130 h12 d576/512 lse k_lengths=130,33", "bf16 b1 q3 k1100 h16 d576/512 causal lse splits=2",
        "fp16 b1 q2 k150 h40 d320/256 lse layout=paged:16 top_k=70:mixed"}) {
    const LatentArrays arrays = latent_arrays(words);
    const LatentOutput usual = run(arrays);
    for (const std::string rows : {"32", "64"}) {
      const std::string pipeline = "auto tile_queries=" + rows;
      wavejit_engine_options options{};
      options.pipeline = pipeline.c_str();
      const Engine pinned(GetParam(), options);
      const LatentOutput output = run_latent(pinned.get(), arrays);
      ASSERT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
      EXPECT_TRUE(output.kernel_spec.contains(" rows=" + rows + " ")) << output.kernel_spec;
      EXPECT_EQ(output, usual) << words << ", " << rows;
    }
  }
}

// Over parts that workgroups leave in any order.
TEST_P(LatentBits, AreTheSameTwice) {
  const LatentArrays arrays = latent_arrays("fp16 b2 q1 k1100 h16 d576/512 lse");
  const LatentOutput first = run(arrays);
  for (int again = 0; again < 2; ++again) EXPECT_EQ(run(arrays), first);
}

// A board of one compute unit, which has no place for more workgroups: they have 128 rows there.
TEST(LatentRows, OfAWorkgroupShowInNoBit) {
  const Engine many("gfx950");
  const Engine one("gfx950@1x1");
  for (const char* words :
       {"bf16 b1 q1 k150 h128 d576/512 lse", "fp16 b1 q3 k1100 h48 d576/512 causal lse splits=2",
        "bf16 b1 q1 k1100 h65 d576/512 lse sink splits=1",
        "bf16 b2 q2 k90 h96 d512 causal lse layout=paged:16 k_lengths=90,0",
        "bf16 b1 q9 k100 h20 d320/256 causal lse layout=paged:1", "bf16 b1 q1 k90 h100 d576/512 lse apart top_k=70"}) {
    SCOPED_TRACE(words);
    const LatentArrays arrays = latent_arrays(words);
    const LatentOutput of_64 = run_latent(many.get(), arrays);
    const LatentOutput of_128 = run_latent(one.get(), arrays);
    EXPECT_THAT(of_64.kernel_spec, ::testing::HasSubstr(" rows=64 "));
    EXPECT_THAT(of_128.kernel_spec, ::testing::HasSubstr(" rows=128 "));
    for (const LatentOutput* output : {&of_64, &of_128}) {
      ASSERT_EQ(output->status, WAVEJIT_OK) << output->detail << output->reports;
      EXPECT_EQ(output->reports, "");
      EXPECT_TRUE(output->fence_intact);
    }
    EXPECT_EQ(of_128, of_64);
    EXPECT_EQ(wrong_latent(arrays, of_128, 13), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, LatentBits, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& parameter) { return std::string(parameter.param); });

}  // namespace
}  // namespace wavejit::tests
