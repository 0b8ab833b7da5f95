// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys in pages, bit by bit against the same keys without pages, for every page size, order of pages and form of the
// table. Against float64 they are rows of value_rows.txt. Around every key stands NaN, behind every table garbage
// (support/paged_cache.h).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "attention/modified.h"

namespace wavejit::tests {
namespace {

class PagedKeys : public ::testing::TestWithParam<std::string> {
 protected:
  struct Dims {
    int qk;
    int v;
  };

  // Sequences of these lengths; queries are dense.
  static AttentionCase make(Storage storage, int queries, const std::vector<std::int32_t>& keys, Dims dims, int heads,
                            int kv_heads, bool causal, std::uint64_t seed) {
    AttentionCase which = make_case(storage, static_cast<int>(keys.size()), queries, std::ranges::max(keys), heads,
                                    kv_heads, dims.qk, causal, seed, 1.0, dims.v);
    which.inputs.key_lengths = keys;
    return which;
  }
  // Packed queries of these lengths.
  static AttentionCase packed(AttentionCase which, const std::vector<std::int32_t>& queries) {
    AttentionInputs& in = which.inputs;
    in.query_starts = {0};
    for (const std::int32_t length : queries) in.query_starts.push_back(in.query_starts.back() + length);
    in.query_length = std::ranges::max(queries);
    in.q = normal_values(which.storage, std::size_t(in.query_rows()) * in.query_heads * in.head_dim, 1.0, 77);
    return which;
  }

  // Once, with every check of the simulated GPU.
  AttentionOutput run_checked(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  void expect_dense_bits(const AttentionOutput& dense, AttentionCase which, const Pages& pages) {
    which.pages = pages;
    const AttentionOutput paged = run_checked(which);
    EXPECT_NE(paged.kernel_spec.find(" paged "), std::string::npos) << paged.kernel_spec;
    EXPECT_TRUE(paged.o == dense.o) << "O differs, page size " << pages.size;
    EXPECT_TRUE(bits_of(paged.lse) == bits_of(dense.lse)) << "LSE differs, page size " << pages.size;
  }

  AttentionOutput dense(const AttentionCase& which) {
    set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
    AttentionOutput output = run_attention(engine_.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
    return output;
  }

  Engine engine_{GetParam()};
  Pipelines pipelines_{GetParam()};
};

TEST_P(PagedKeys, EveryPageSizeOrderAndFormHasTheSameBits) {
  const AttentionCase which = make(Storage::bf16, 7, {1100, 0, 531}, {64, 64}, 2, 1, true, 5);
  const AttentionOutput same = dense(which);
  std::uint64_t seed = 10;
  for (const int size : {1, 16, 32, 48, 64, 112, 528, 1024})
    expect_dense_bits(same, which,
                      {.size = size,
                       .heads_first = size % 32 == 0,
                       .in_turn = size % 48 == 0,
                       .list = size % 64 != 0,
                       .seed = seed++});
  for (const bool heads_first : {false, true})
    for (const bool list : {false, true})
      expect_dense_bits(same, which, {.size = 16, .heads_first = heads_first, .list = list, .seed = seed++});
}

TEST_P(PagedKeys, SplitKeysHaveTheSameBits) {
  AttentionCase which = make(Storage::bf16, 3, {2500, 1024, 40}, {128, 128}, 2, 1, true, 11);
  const AttentionOutput same = dense(which);
  which.splits = 3;
  expect_dense_bits(same, which, {.size = 48});
  expect_dense_bits(same, which, {.size = 1, .list = true});
}

// Indices of pages, their distances and places beyond 32 bits; the first one that others are known to fail at is
// 65,536.
TEST_P(PagedKeys, CachesBeyondFourGiB) {
  const AttentionCase which = make(Storage::bf16, 4, {500, 300}, {128, 128}, 4, 4, true, 12);
  const AttentionOutput same = dense(which);
  expect_dense_bits(same, which, {.size = 64, .total = 70000});
  expect_dense_bits(same, which, {.size = 64, .heads_first = true, .in_turn = true, .total = 90000});
  expect_dense_bits(same, which, {.size = 1, .total = 4500000});
}

// Each pipeline once, whatever the length of the query: all page sizes, borders of chunks, splits, far pages, lies.
TEST_P(PagedKeys, WholeTilesHaveTheBitsOfDenseKeysOnEveryPipeline) {
  const AttentionCase which = make(Storage::bf16, 9, {1100, 531}, {64, 64}, 2, 1, true, 25);
  const AttentionCase wide = make(Storage::bf16, 5, {1300, 64}, {128, 128}, 2, 1, true, 26);
  const AttentionOutput same = dense(which);
  const AttentionOutput same_wide = dense(wide);
  int overlapped = 0;
  for (const auto& engine : pipelines_.engines()) {
    const auto compare = [&](AttentionCase paged, const AttentionOutput& expected, const Pages& pages) {
      paged.pages = pages;
      const AttentionOutput output = run_attention(engine->get(), paged);
      if (Pipelines::not_on_this_target(output)) return false;
      EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
      EXPECT_EQ(output.reports, "");
      EXPECT_TRUE(output.fence_intact);
      const bool generic = output.kernel_spec.contains("pipeline=generic");
      EXPECT_EQ(output.kernel_spec.contains(" whole_tiles "), !generic) << output.kernel_spec;
      if (pages.every_entry) return !generic;
      EXPECT_TRUE(output.o == expected.o) << output.kernel_spec << ", page size " << pages.size;
      EXPECT_TRUE(bits_of(output.lse) == bits_of(expected.lse)) << output.kernel_spec << ", page size " << pages.size;
      return !generic;
    };
    set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
    if (!compare(which, same, {.size = 64})) continue;
    ++overlapped;
    for (const int size : {128, 192, 1024, 8192})
      compare(which, same, {.size = size, .heads_first = size == 192, .in_turn = size == 128, .list = size == 1024});
    compare(wide, same_wide, {.size = 320, .heads_first = true});
    compare(wide, same_wide, {.size = 64, .total = 70000});
    for (const std::int32_t lie : {-1, 2147483647, 9}) compare(wide, same_wide, {.size = 64, .every_entry = lie});
    AttentionCase split = wide;
    split.splits = 2;
    compare(split, same_wide, {.size = 64, .in_turn = true});
  }
  EXPECT_GE(overlapped, 1);
}

TEST_P(PagedKeys, VectorisedPagesOfEverySizeHaveTheSameBits) {
  // Decode with packed heads, and a prefill; every number of keys in the last 8.
  const AttentionCase decode = make(Storage::bf16, 1, {1100, 0, 531, 1024, 7, 62}, {128, 128}, 8, 1, true, 36);
  AttentionCase mixed =
      packed(make(Storage::fp16, 1, {300, 33, 5, 129, 68, 1}, {64, 64}, 2, 1, false, 37), {1, 40, 9, 129, 200, 1});
  mixed.inputs.window = true;
  mixed.inputs.window_left = 50;
  mixed.inputs.window_right = 3;
  AttentionCase split = decode;
  split.splits = 2;
  for (const AttentionCase& which : {decode, mixed, split}) {
    const AttentionOutput same = dense(which);
    std::uint64_t seed = 40;
    for (const int size : {16, 32, 64, 528}) {
      for (const std::int32_t layout : {WAVEJIT_PAGES_VECTORISED, WAVEJIT_PAGES_VECTORISED_KEYS}) {
        const Pages pages = {.size = size, .in_turn = size == 32, .list = size == 64, .seed = seed++, .layout = layout};
        expect_dense_bits(same, which, pages);
      }
    }
  }
}

TEST_P(PagedKeys, VectorisedPagesBeyondFourGiBAndTablesThatLie) {
  const AttentionCase which = make(Storage::bf16, 4, {500, 300}, {128, 128}, 4, 4, true, 38);
  const AttentionOutput same = dense(which);
  for (const std::int32_t layout : {WAVEJIT_PAGES_VECTORISED, WAVEJIT_PAGES_VECTORISED_KEYS}) {
    expect_dense_bits(same, which, {.size = 64, .total = 70000, .layout = layout});
    for (const std::int32_t lie : {-1, -2147483647, 2147483647, 9}) {
      AttentionCase lies = which;
      lies.pages = Pages{.size = 16, .list = lie > 0, .every_entry = lie, .layout = layout};
      run_checked(lies);
    }
  }
}

// Other pipelines say that they do not walk them; `auto` takes the generic one whatever the rows.
TEST_P(PagedKeys, VectorisedPagesHaveTheGenericPipeline) {
  AttentionCase which = make(Storage::bf16, 256, {128}, {64, 64}, 1, 1, true, 39);
  which.pages = Pages{.size = 64, .layout = WAVEJIT_PAGES_VECTORISED};
  EXPECT_TRUE(run_checked(which).kernel_spec.contains("paged vectorised pipeline=generic"));
  wavejit_engine_options options = {};
  options.size = sizeof options;
  options.pipeline = GetParam() == "gfx950" ? "dualwave" : "interleaved";
  const Engine forced(GetParam(), options);
  const AttentionOutput refused = run_attention(forced.get(), which);
  EXPECT_EQ(refused.status, WAVEJIT_UNSUPPORTED);
  EXPECT_TRUE(refused.detail.contains("page_layout=vectorised has no kernel with pipeline=")) << refused.detail;
  which.pages->layout = 3;
  EXPECT_TRUE(run_attention(engine_.get(), which).detail.contains("page_layout = 3; accepted: 0 to 2"));
  which.pages = Pages{.size = 64, .layout = WAVEJIT_PAGES_VECTORISED};
  which.first_keys = {5};
  EXPECT_TRUE(run_attention(engine_.get(), which).detail.contains("page_layout = 1; accepted: 0 beside first_keys"));
}

// The same of pages of 16 n keys, of which each wave looks up the 16 keys that it moves a part of: tiles that stand in
// one to four pages, ends within each of a tile's granules, pages far away, parts, and tables that lie.
TEST_P(PagedKeys, GranulesHaveTheBitsOfDenseKeysOnEveryPipeline) {
  const AttentionCase which = make(Storage::bf16, 9, {1100, 531, 0}, {64, 64}, 2, 1, true, 31);
  const AttentionCase wide = make(Storage::bf16, 40, {1300, 33, 16, 49}, {128, 128}, 2, 1, true, 32);
  const AttentionCase padded = make(Storage::fp16, 5, {300, 64, 7}, {80, 80}, 2, 1, false, 33);
  const AttentionCase narrow = make(Storage::bf16, 5, {300, 130}, {40, 40}, 2, 1, true, 34);
  AttentionCase modified = make(Storage::fp16, 20, {90, 150}, {128, 128}, 4, 2, true, 35);
  add_bias(modified, 1, 4, 1.0, 7);
  add_alibi(modified, 1);
  add_sink(modified, 0.5);
  modified.inputs.softcap = 5;
  AttentionCase window = packed(make(Storage::bf16, 1, {300, 33, 129}, {64, 64}, 2, 1, false, 36), {1, 40, 129});
  window.inputs.window = true;
  window.inputs.window_left = 50;
  window.inputs.window_right = 3;
  int overlapped = 0;
  for (const auto& engine : pipelines_.engines()) {
    // Whether an overlapped pipeline has run.
    const auto compare = [&](AttentionCase paged, const Pages& pages) {
      const AttentionOutput expected = dense(paged);
      set_schedule(WAVEJIT_SIMGPU_RANDOM, 3);
      paged.pages = pages;
      const AttentionOutput output = run_attention(engine->get(), paged);
      if (Pipelines::not_on_this_target(output)) return false;
      EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
      EXPECT_EQ(output.reports, "");
      EXPECT_TRUE(output.fence_intact);
      EXPECT_FALSE(output.kernel_spec.contains(" whole_tiles ")) << output.kernel_spec;
      if (!pages.every_entry) {
        EXPECT_TRUE(output.o == expected.o) << output.kernel_spec << ", page size " << pages.size;
        EXPECT_TRUE(bits_of(output.lse) == bits_of(expected.lse)) << output.kernel_spec << ", page size " << pages.size;
      }
      return !output.kernel_spec.contains("pipeline=generic");
    };
    if (!compare(which, {.size = 16})) continue;
    ++overlapped;
    for (const int size : {32, 48, 80, 112, 1040})
      compare(which, {.size = size, .heads_first = size == 48, .in_turn = size == 80, .list = size == 112});
    compare(wide, {.size = 16, .heads_first = true});
    compare(wide, {.size = 32, .total = 600000});
    for (const std::int32_t lie : {-1, 2147483647, 9}) compare(wide, {.size = 16, .every_entry = lie});
    AttentionCase split = wide;
    split.splits = 2;
    compare(split, {.size = 16, .list = true});
    compare(modified, {.size = 16, .in_turn = true});
    compare(window, {.size = 48});
    EXPECT_TRUE(compare(padded, {.size = 16}));
    EXPECT_TRUE(compare(narrow, {.size = 32}));
  }
  EXPECT_GE(overlapped, 1);
}

// `auto` takes them where it takes them for dense keys.
TEST_P(PagedKeys, AutoTakesTheOverlappedPipeline) {
  const AttentionCase which = make(Storage::bf16, 256, {128}, {64, 64}, 1, 1, true, 27);
  const std::string fast = GetParam() == "gfx950" ? "pipeline=dualwave" : "pipeline=interleaved";
  const auto kernel_of = [&](const std::optional<Pages>& pages) {
    AttentionCase paged = which;
    paged.pages = pages;
    return run_checked(paged).kernel_spec;
  };
  EXPECT_TRUE(kernel_of(std::nullopt).contains(fast));
  EXPECT_TRUE(kernel_of(Pages{.size = 64}).contains("paged whole_tiles " + fast));
  EXPECT_TRUE(kernel_of(Pages{.size = 48}).contains("paged " + fast));
  // Keys behind left padding begin anywhere in a page.
  AttentionCase padded = which;
  padded.pages = Pages{.size = 64};
  padded.first_keys = {5};
  EXPECT_TRUE(run_checked(padded).kernel_spec.contains("paged first_keys pipeline=generic"));
}

// What the device says is never followed outside the cache, and lengths never beyond the maxima.
TEST_P(PagedKeys, TablesThatLieStayInsideTheCache) {
  AttentionCase which = make(Storage::bf16, 33, {64, 130}, {64, 64}, 2, 1, true, 13);
  for (const bool list : {false, true}) {
    for (const std::int32_t lie : {-1, -2147483647, 2147483647, 9}) {
      for (const int size : {1, 16}) {
        which.pages = Pages{.size = size, .list = list, .every_entry = lie};
        run_checked(which);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, PagedKeys, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
