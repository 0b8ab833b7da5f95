// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys in pages and behind left padding: which kernels they have, and tables, lengths and paddings that lie. Against float64
// and dense keys they are rows of value_rows.txt. Around every key stands NaN, behind every table garbage
// (support/paged_cache.h); the simulated GPU tells what reads past a table or a cache, also when it does no harm.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;
constexpr std::int32_t least = std::numeric_limits<std::int32_t>::min();
constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();

class PagedKeys : public ::testing::TestWithParam<std::string> {
 protected:
  // Sequences of these lengths; queries are dense.
  static AttentionCase make(int queries, const Numbers& keys, int dim, int heads, int kv_heads, std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), queries, std::ranges::max(keys),
                                    heads, kv_heads, dim, true, seed);
    which.inputs.key_lengths = keys;
    return which;
  }

  // Once, with every check of the simulated GPU.
  static AttentionOutput run(const Engine& engine, const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    AttentionOutput output = run_attention(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }
  AttentionOutput run(const AttentionCase& which) const { return run(engine_, which); }
  AttentionOutput run(AttentionCase which, const Pages& pages) const {
    which.pages = pages;
    return run(which);
  }
  static void expect_same(const AttentionOutput& output, const AttentionOutput& same) {
    EXPECT_TRUE(output.o == same.o) << "O differs: " << output.kernel_spec;
    EXPECT_TRUE(bits_of(output.lse) == bits_of(same.lse)) << "LSE differs: " << output.kernel_spec;
  }
  std::string fast() const { return GetParam() == "gfx950" ? "dualwave" : "interleaved"; }

  Engine engine_{GetParam()};
};

// Other pipelines say that they do not walk them; `auto` takes the generic one whatever the rows.
TEST_P(PagedKeys, VectorisedPagesHaveTheGenericPipeline) {
  AttentionCase which = make(256, {128}, 64, 1, 1, 39);
  which.pages = Pages{.size = 64, .layout = WAVEJIT_PAGES_VECTORISED};
  EXPECT_TRUE(run(which).kernel_spec.contains("paged vectorised pipeline=generic"));
  const Engine forced(GetParam(), nullptr, fast().c_str());
  const AttentionOutput refused = run_attention(forced.get(), which);
  EXPECT_EQ(refused.status, WAVEJIT_UNSUPPORTED);
  EXPECT_TRUE(refused.detail.contains("page_layout=vectorised has no kernel with pipeline=")) << refused.detail;
  which.pages->layout = 3;
  EXPECT_TRUE(run_attention(engine_.get(), which).detail.contains("page_layout = 3; accepted: 0 to 2"));
  which.pages = Pages{.size = 64, .layout = WAVEJIT_PAGES_VECTORISED};
  which.first_keys = {5};
  EXPECT_TRUE(run_attention(engine_.get(), which).detail.contains("page_layout = 1; accepted: 0 beside first_keys"));
}

// `auto` takes them where it takes them for dense keys.
TEST_P(PagedKeys, AutoTakesTheOverlappedPipeline) {
  const AttentionCase which = make(256, {128}, 64, 1, 1, 27);
  const std::string overlapped = "pipeline=" + fast();
  EXPECT_TRUE(run(which).kernel_spec.contains(overlapped));
  EXPECT_TRUE(run(which, {.size = 64}).kernel_spec.contains("paged whole_tiles " + overlapped));
  EXPECT_TRUE(run(which, {.size = 48}).kernel_spec.contains("paged " + overlapped));
  // Keys behind left padding begin anywhere in a page.
  AttentionCase padded = which;
  padded.first_keys = {5};
  EXPECT_TRUE(run(padded, {.size = 64}).kernel_spec.contains("paged first_keys pipeline=generic"));
}

// vllm#48450: beyond 2 GiB another kernel runs, and nobody says so.
TEST_P(PagedKeys, ALargeCacheHasTheKernelOfASmallOne) {
  const AttentionCase which = make(1, {40}, 64, 2, 1, 6);
  const AttentionOutput same = run(which);
  for (const std::int32_t layout : {WAVEJIT_PAGES_OF_ROWS, WAVEJIT_PAGES_VECTORISED}) {
    const AttentionOutput small = run(which, {.size = 64, .layout = layout});
    const AttentionOutput large = run(which, {.size = 64, .total = 200'000, .layout = layout});
    EXPECT_EQ(large.kernel_spec, small.kernel_spec);
    expect_same(small, same);
    expect_same(large, same);
  }
}

// What the device says is never followed outside the cache, in any form of pages, by any pipeline.
TEST_P(PagedKeys, TablesThatLieStayInsideTheCache) {
  AttentionCase which = make(33, {64, 130}, 64, 2, 1, 13);
  const AttentionCase vectorised = make(4, {500, 300}, 128, 4, 4, 38);
  AttentionCase tiles = make(5, {1300, 64}, 128, 2, 1, 26);
  AttentionCase granules = make(40, {1300, 33, 16, 49}, 128, 2, 1, 32);
  const Engine overlapped(GetParam(), nullptr, fast().c_str());
  for (const std::int32_t lie : {-1, -2147483647, 2147483647, 9}) {
    for (const bool list : {false, true})
      for (const int size : {1, 16}) run(which, {.size = size, .list = list, .every_entry = lie});
    for (const std::int32_t layout : {WAVEJIT_PAGES_VECTORISED, WAVEJIT_PAGES_VECTORISED_KEYS})
      run(vectorised, {.size = 16, .list = lie > 0, .every_entry = lie, .layout = layout});
    if (lie == -2147483647) continue;
    tiles.pages = Pages{.size = 64, .every_entry = lie};
    granules.pages = Pages{.size = 16, .every_entry = lie};
    for (const AttentionCase& each : {tiles, granules})
      EXPECT_TRUE(run(overlapped, each).kernel_spec.contains("pipeline=" + fast()));
  }
}

// Lengths beyond the host's maximum show no key beyond it, whatever the device says. Their diagonals stand where they
// put them, so that both rows see all keys.
TEST_P(PagedKeys, LengthsBeyondTheMaximumAreCutToIt) {
  AttentionCase which = make(2, {130, 130}, 64, 2, 1, 8);
  AttentionCase without_diagonal = which;
  without_diagonal.inputs.causal = false;
  const AttentionOutput same = run(without_diagonal);
  EXPECT_EQ(compare_rows(without_diagonal, attention_reference(without_diagonal.inputs), same).wrong(), "");
  which.told_key_lengths = {131, most};
  for (const Pages& pages : {Pages{.size = 1, .tight = true}, Pages{.size = 16, .tight = true},
                             Pages{.size = 16, .tight = true, .layout = WAVEJIT_PAGES_VECTORISED}})
    expect_same(run(which, pages), same);
  which.told_key_lengths = {-1, least};
  EXPECT_TRUE(std::ranges::all_of(run(which, {.size = 16}).o, [](std::uint16_t bits) { return bits == 0; }));
}

// A sequence whose length goes beyond its list of pages has no entry behind the list's end, and no other sequence's bits
// change. The table of the last sequence ends where its memory does.
TEST_P(PagedKeys, AListThatIsTooShortIsNotReadPastItsEnd) {
  AttentionCase which = make(1, {130, 40}, 64, 2, 1, 10);
  const AttentionOutput same = run(which);
  which.told_key_lengths = {130, 130};
  for (const int size : {1, 16}) {
    const AttentionOutput output = run(which, {.size = size, .list = true, .tight = true});
    const std::size_t elements = same.o.size() / 2;
    EXPECT_TRUE(std::ranges::equal(std::span(output.o).first(elements), std::span(same.o).first(elements)))
        << "page size " << size;
  }
}

// Padding that the device's array makes up is never followed outside K and V.
TEST_P(PagedKeys, PaddingThatLiesStaysInsideTheTensors) {
  AttentionCase which = make(33, {64, 130}, 64, 2, 1, 13);
  which.first_keys = {66, 0};
  for (const Numbers& lie : {Numbers{-1, 131}, {least, most}, {129, most - 63}}) {
    which.told_first_keys = lie;
    for (const int splits : {1, 2}) {
      which.splits = splits;
      run(which);
    }
  }
  for (const int size : {1, 16})
    for (const Numbers& lie : {Numbers{-1, 4097}, {least, most}, {1 << 26, (1 << 26) - 1}}) {
      which.told_first_keys = lie;
      run(which, {.size = size});
    }
}

INSTANTIATE_TEST_SUITE_P(All, PagedKeys, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
