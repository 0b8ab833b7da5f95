// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Long queries and short ones in one call, which two kernels share: against float64, bit by bit against one kernel for
// all and against each sequence alone, with every kind of workspace, with lengths that lie.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <span>
#include <string>
#include <vector>

#include "attention/alone.h"
#include "attention/modified.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

struct Dims {
  int qk;
  int v;
};
struct Heads {
  int query;
  int kv;
};

class MixedBatches : public ::testing::TestWithParam<std::string> {
 protected:
  // Packed queries of these lengths over dense keys, this many of which count.
  static AttentionCase make(Storage storage, const Numbers& queries, const Numbers& keys, Heads heads, Dims dims,
                            bool causal, std::uint64_t seed) {
    AttentionCase which = make_case(storage, static_cast<int>(keys.size()), 1, std::ranges::max(keys), heads.query,
                                    heads.kv, dims.qk, causal, seed, 1.0, dims.v);
    AttentionInputs& in = which.inputs;
    in.key_lengths = keys;
    in.query_starts = starts_of(queries);
    in.query_length = std::ranges::max(queries);
    in.q = normal_values(storage, std::size_t(in.query_rows()) * in.query_heads * in.head_dim, 1.0, seed + 1000);
    return which;
  }

  static AttentionOutput run(const Engine& engine, const AttentionCase& which, const char* what) {
    AttentionOutput output = run_attention(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << what << ": " << output.detail;
    EXPECT_EQ(output.reports, "") << what;
    EXPECT_TRUE(output.fence_intact) << what << ": something outside O, LSE or the workspace was written";
    return output;
  }

  static void expect_same(const AttentionOutput& output, const AttentionOutput& wanted, const char* what) {
    EXPECT_TRUE(output.o == wanted.o) << what << ": O differs";
    EXPECT_TRUE(bits_of(output.lse) == bits_of(wanted.lse)) << what << ": LSE differs";
  }

  // What one kernel for all makes of it, which everything else is compared with.
  AttentionOutput check(AttentionCase which, bool every_workspace = false) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    const AttentionOutput one_kernel = run(generic_, which, "one kernel");
    EXPECT_FALSE(one_kernel.kernel_spec.contains(" rows=")) << one_kernel.kernel_spec;
    EXPECT_EQ(compare_rows(which, attention_reference(which.inputs), one_kernel).wrong(), "");
    const auto compare = [&](const AttentionCase& mixed, const char* what) {
      const AttentionOutput output = run(engine_, mixed, what);
      EXPECT_TRUE(output.kernel_spec.contains(" rows=many ")) << what << ": " << output.kernel_spec;
      expect_same(output, one_kernel, what);
    };
    which.own_workspace = true;
    compare(which, "a workspace of the caller's");
    AttentionCase other = which;
    other.splits = 1;
    compare(other, "no splits");
    if (!every_workspace) return one_kernel;
    other = which;
    other.withheld_workspace = 1;
    compare(other, "a workspace for fewer rows");
    other.withheld_workspace = std::size_t{1} << 40;
    compare(other, "a workspace that is too small");
    other.own_workspace = false;
    compare(other, "the engine's workspace");
    return one_kernel;
  }

  void expect_each_alone(const AttentionCase& which, const AttentionOutput& output) {
    const AttentionInputs& in = which.inputs;
    const std::size_t row = std::size_t(in.query_heads) * in.value_dim();
    for (int b = 0; b < in.batch; ++b) {
      if (in.queries(b) == 0) continue;
      const AttentionOutput one = run(engine_, alone(which, b), "alone");
      EXPECT_FALSE(one.kernel_spec.contains(" rows=")) << one.kernel_spec;
      EXPECT_TRUE(std::ranges::equal(one.o, std::span(output.o).subspan(in.first_query(b) * row, in.queries(b) * row)))
          << "sequence " << b;
      for (int h = 0; h < in.query_heads; ++h)
        for (int i = 0; i < in.queries(b); ++i)
          ASSERT_EQ(std::bit_cast<std::uint32_t>(one.lse[std::size_t(h) * in.queries(b) + i]),
                    std::bit_cast<std::uint32_t>(output.lse[std::size_t(h) * in.query_rows() + in.first_query(b) + i]))
              << "sequence " << b << " row " << i;
    }
  }

  static wavejit_engine_options generic() {
    wavejit_engine_options options{};
    options.pipeline = "generic";
    return options;
  }

  Engine engine_{GetParam()};
  Engine generic_{GetParam(), generic()};  // a pipeline that is asked for is the only one
};

// Few rows are up to 8, then up to 32, four tiles of them. Sequences without queries, without keys, with fewer keys
// than queries, on both sides of the limit and of a tile.
TEST_P(MixedBatches, HaveTheBitsOfOneKernelAndOfEachSequenceAlone) {
  const AttentionCase which = make(Storage::bf16, {1, 140, 0, 8, 9, 1, 3, 1}, {2100, 1100, 77, 1025, 1100, 0, 2, 20},
                                   {4, 1}, {64, 64}, true, 1);
  expect_each_alone(which, check(which, true));
  check(make(Storage::fp16, {32, 70, 33, 1}, {1030, 1040, 60, 1025}, {4, 1}, {64, 64}, true, 2));
}

// What a server has: one chunk of a prompt among tokens.
TEST_P(MixedBatches, OfPagedKeys) {
  AttentionCase which =
      make(Storage::bf16, {1, 1, 70, 1, 2, 1}, {1100, 1024, 1200, 1, 1030, 5}, {8, 1}, {64, 64}, true, 3);
  const AttentionOutput dense = run(generic_, which, "one kernel");
  which.pages = Pages{.size = 64};
  expect_same(check(which), dense, "pages of whole tiles");
  for (const Pages& pages : {Pages{.size = 16, .list = true}, Pages{.size = 1}}) {
    which.pages = pages;
    expect_same(run(engine_, which, "paged"), dense, "paged");
  }
}

TEST_P(MixedBatches, OfPackedKeysAndOfLeftPadding) {
  if (in_part(0, 2)) {
    AttentionCase packed = make(Storage::fp16, {40, 1, 1}, {1100, 1030, 3}, {2, 2}, {64, 64}, false, 3);
    packed.inputs.key_starts = starts_of({1100, 1030, 3});
    packed.inputs.key_lengths.clear();
    // Rows of packed keys follow each other.
    packed.inputs.k = normal_values(packed.storage, std::size_t(packed.inputs.key_rows()) * 2 * 64, 1.0, 31);
    packed.inputs.v = normal_values(packed.storage, packed.inputs.k.size(), 1.0, 32);
    expect_each_alone(packed, check(packed));
  }
  if (in_part(1, 2)) {
    AttentionCase padded = make(Storage::bf16, {1, 40, 2}, {1060, 70, 3}, {4, 1}, {64, 64}, true, 4);
    const AttentionOutput same = run(generic_, padded, "without padding");
    padded.first_keys = {0, 990, 1057};
    expect_same(check(padded), same, "dense, padded");
    padded.pages = Pages{.size = 32};
    expect_same(check(padded), same, "in pages, padded");
  }
}

TEST_P(MixedBatches, WithModifiersWindowsAndOtherHeads) {
  if (in_part(0, 2)) {
    AttentionCase which = make(Storage::fp16, {1, 40, 3}, {1030, 1040, 50}, {4, 2}, {128, 128}, true, 5);
    add_bias(which, 1, 4, 1.0, 7);
    add_alibi(which, 1);
    add_sink(which, 0.5);
    which.inputs.softcap = 5;
    check(which);
  }
  // A group that does not divide the smallest tile; LSE that nobody wants.
  if (in_part(1, 2)) {
    AttentionCase window = make(Storage::bf16, {1, 33, 2, 1}, {1100, 1060, 1030, 33}, {20, 1}, {64, 64}, false, 8);
    window.inputs.window = true;
    window.inputs.window_left = 1020;
    window.inputs.window_right = 3;
    window.lse = false;
    check(window);
  }
}

// What the host cannot see: all short, all long, sequences that are longer than they may be, or negative.
TEST_P(MixedBatches, LengthsThatDoNotMixOrLie) {
  AttentionCase which = make(Storage::bf16, {1, 100, 1, 1}, {1100, 1030, 7, 1024}, {4, 1}, {64, 64}, true, 10);
  check(which);
  for (const Numbers& starts : {Numbers{0, 1, 2, 3, 4},
                                {0, 26, 52, 78, 103},
                                {0, 103, 103, 103, 103},
                                {-5, 60, 60, INT_MAX, INT_MIN},
                                {9, 8, 7, 6, 5}}) {
    which.query_starts = starts;
    const AttentionOutput one = run(generic_, which, "one kernel");
    expect_same(run(engine_, which, "mixed"), one, "starts");
    which.own_workspace = true;
    expect_same(run(engine_, which, "mixed"), one, "starts, a workspace of the caller's");
  }
}

// Rows as they were before rounding, from the long ones' kernel as from the merge.
TEST_P(MixedBatches, OutputsInFp32) {
  AttentionCase which = make(Storage::fp16, {1, 40, 2}, {1100, 1030, 7}, {4, 1}, {64, 64}, true, 14);
  which.output_fp32 = true;
  check(which);
}

// A call that asks for splits has them, in one kernel for all.
TEST_P(MixedBatches, SplitsThatAreAskedForHaveTheSameBits) {
  AttentionCase which = make(Storage::bf16, {1, 100, 2}, {2100, 1030, 1024}, {4, 1}, {64, 64}, true, 11);
  const AttentionOutput mixed = run(engine_, which, "mixed");
  which.splits = 2;
  const AttentionOutput split = run(engine_, which, "split");
  EXPECT_FALSE(split.kernel_spec.contains(" rows=")) << split.kernel_spec;
  EXPECT_TRUE(split.kernel_spec.contains(" split=1024 ")) << split.kernel_spec;
  expect_same(split, mixed, "split");
}

// Two million keys that a sequence may have are 2,048 records of each row and head, though hardly any is written; those
// of the last rows stand 4 GiB behind the first. Of one kernel that is asked to split as of a mix.
TEST_P(MixedBatches, RecordsBeyondFourGiB) {
  constexpr std::int64_t longest = std::int64_t{2048} * 1024;
  const auto check_far = [&](AttentionCase which) {
    const AttentionOutput near = run(generic_, which, "near");
    which.pages = Pages{.size = 16, .list = true};
    which.told_longest_keys = longest;
    const AttentionOutput far = run(engine_, which, "far");
    EXPECT_TRUE(far.kernel_spec.contains(" split=1024 ") || far.kernel_spec.contains(" rows=many ")) << far.kernel_spec;
    expect_same(far, near, "far");
  };
  if (in_part(0, 2)) {
    Numbers keys(33, 3);
    keys.front() = 1030;
    keys.back() = 1100;
    Numbers queries(33, 1);
    queries[1] = 40;
    AttentionCase split = make(Storage::bf16, queries, keys, {64, 4}, {128, 128}, true, 12);
    split.splits = 2;
    split.engine_workspace = true;
    check_far(split);
  }
  if (whole_lists()) {
    Numbers queries(66, 1);
    queries[1] = 40;
    Numbers keys(66, 3);
    keys.front() = 1030;
    keys.back() = 1100;
    check_far(make(Storage::bf16, queries, keys, {64, 4}, {128, 128}, true, 13));
  }
}

INSTANTIATE_TEST_SUITE_P(All, MixedBatches, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
