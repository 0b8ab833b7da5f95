// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Long queries and short ones in one call, which two kernels share: lengths that lie, and records beyond 4 GiB. All else
// is rows of value_rows.txt.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
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

  static wavejit_engine_options generic() {
    wavejit_engine_options options{};
    options.pipeline = "generic";
    return options;
  }

  Engine engine_{GetParam()};
  Engine generic_{GetParam(), generic()};  // a pipeline that is asked for is the only one
};

// What the host cannot see: all short, all long, sequences that are longer than they may be, or negative.
TEST_P(MixedBatches, LengthsThatDoNotMixOrLie) {
  AttentionCase which = make(Storage::bf16, {1, 100, 1, 1}, {1100, 1030, 7, 1024}, {4, 1}, {64, 64}, true, 10);
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
