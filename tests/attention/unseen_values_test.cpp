// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Keys that no row of their sequence sees, in this call: whatever stands in their rows of K and V, bits are those of a
// clean cache. Engines free pages behind a sliding window and give them to others.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "attention/modified.h"
#include "support/byte_floats.h"
#include "support/part.h"

namespace wavejit::tests {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

// A sequence's keys that some row sees, from the first to the one behind the last.
struct SeenKeys {
  int begin;
  int end;
};
SeenKeys seen_keys(const AttentionInputs& in, int b) {
  SeenKeys seen{.begin = in.keys(b), .end = 0};
  for (int row = 0; row < in.queries(b); ++row) {
    const std::vector<double> scores = attention_scores(in, b, row, 0);
    for (int key = 0; key < in.keys(b); ++key) {
      if (scores[static_cast<std::size_t>(key)] == -std::numeric_limits<double>::infinity()) continue;
      seen.begin = std::min(seen.begin, key);
      seen.end = std::max(seen.end, key + 1);
    }
  }
  return seen;
}

// All others are NaN or infinite in K and in V, by turns, as their scales are; how many there are goes to `unseen`.
AttentionCase with_garbage(AttentionCase which, int& unseen) {
  AttentionInputs& in = which.inputs;
  const AttentionInputs clean = in;
  constexpr float garbage[] = {not_a_number, infinity, -infinity};
  for (int b = 0; b < in.batch; ++b) {
    const SeenKeys seen = seen_keys(clean, b);
    for (int key = 0; key < in.keys(b); ++key) {
      if (key >= seen.begin && key < seen.end) continue;
      ++unseen;
      for (int h = 0; h < in.kv_heads; ++h) {
        const std::size_t row = (std::size_t(in.first_key(b) + key) * in.kv_heads) + h;
        const auto fill = [&](std::vector<float>& of, int dims) {
          const auto begin = of.begin() + static_cast<std::ptrdiff_t>(row * std::size_t(dims));
          for (int dim = 0; dim < dims; ++dim) begin[dim] = garbage[(key + dim) % 3];
        };
        if (!which.integers) fill(in.k, in.head_dim);
        fill(in.v, in.value_dim());
        if (which.bytes && which.bytes->tokens)
          which.bytes->k_scale[row] = which.bytes->v_scale[row] = garbage[key % 3];
      }
    }
  }
  return which;
}

AttentionCase in_window(AttentionCase which, int left, int right = 0) {
  which.inputs.window = true;
  which.inputs.window_left = left;
  which.inputs.window_right = right;
  return which;
}

class UnseenValues : public ::testing::TestWithParam<std::string> {
 protected:
  AttentionCase make(Storage storage, int queries, const std::vector<std::int32_t>& keys, int heads, int kv_heads,
                     int dim, std::uint64_t seed, int dim_v = 0) const {
    AttentionCase which = make_case(storage, static_cast<int>(keys.size()), queries, std::ranges::max(keys), heads,
                                    kv_heads, dim, false, seed, 1.0, dim_v);
    which.inputs.key_lengths = keys;
    return which;
  }
  static AttentionCase packed(AttentionCase which, const std::vector<std::int32_t>& queries) {
    AttentionInputs& in = which.inputs;
    in.query_starts = {0};
    for (const std::int32_t length : queries) in.query_starts.push_back(in.query_starts.back() + length);
    in.query_length = std::ranges::max(queries);
    in.q = normal_values(which.storage, std::size_t(in.query_rows()) * in.query_heads * in.head_dim, 1.0, 77);
    return which;
  }
  std::string target() const { return GetParam(); }
  bool has_head_dim_256() const { return target() == "gfx950"; }

  // On each engine, under every check of the simulated GPU, which stops what reads outside, too. Returns how many had
  // a kernel.
  int expect_bits_of_clean_keys(const AttentionCase& which, const std::vector<std::unique_ptr<Engine>>& engines) {
    int unseen = 0;
    const AttentionCase dirty = with_garbage(which, unseen);
    EXPECT_GT(unseen, 0) << "nothing to show";
    int kernels = 0;
    for (const auto& engine : engines) {
      set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
      const AttentionOutput clean = run_attention(engine->get(), which);
      refusal_ = clean.detail;
      if (clean.status == WAVEJIT_UNSUPPORTED) continue;
      EXPECT_EQ(clean.status, WAVEJIT_OK) << clean.detail;
      set_schedule(WAVEJIT_SIMGPU_REVERSE, 1);
      const AttentionOutput output = run_attention(engine->get(), dirty);
      EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
      EXPECT_EQ(output.reports, "");
      EXPECT_TRUE(output.fence_intact);
      EXPECT_TRUE(output.o == clean.o) << "O differs: " << output.kernel_spec;
      EXPECT_TRUE(bits_of(output.lse) == bits_of(clean.lse)) << "LSE differs: " << output.kernel_spec;
      ++kernels;
    }
    return kernels;
  }
  void check(const AttentionCase& which) {
    EXPECT_GT(expect_bits_of_clean_keys(which, pipelines_.engines()), 0) << refusal_;
  }

  Pipelines pipelines_{GetParam()};
  std::string refusal_;  // of the last engine
};

// The first key that row 0 sees at all places of a tile; decode, a few rows, many.
TEST_P(UnseenValues, InFrontOfAWindowOfDenseKeys) {
  int index = 0;
  for (const int rows : {1, 5, 40, 130, 300})
    for (const int keys : {1000, 1013, 1030, 1047, 1063}) {
      if (!in_part(index++, 5)) continue;
      SCOPED_TRACE(std::format("{} rows of {} keys", rows, keys));
      check(in_window(make(Storage::bf16, rows, {keys}, 4, 2, 64, std::uint64_t(index)), 127));
      check(in_window(make(Storage::fp16, rows, {keys, keys - 333}, 8, 1, 128, std::uint64_t(index)), 70 + rows, 3));
    }
  check(in_window(make(Storage::bf16, 33, {500}, 2, 1, 192, 31, 128), 50));
  if (has_head_dim_256()) check(in_window(make(Storage::bf16, 5, {700, 333}, 4, 1, 256, 32), 100));
}

// Rows that end before the keys do: a window's right limit, a diagonal from key 0.
TEST_P(UnseenValues, BehindTheLastRow) {
  int index = 0;
  for (const int rows : {1, 17, 100, 290}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(rows);
    AttentionCase which = make(Storage::bf16, rows, {330, 300}, 4, 2, 64, std::uint64_t(rows));
    which.inputs.prefix = 9;
    check(in_window(which, 1000, 7));
    check(in_window(which, 3, 11));
    // The host knows these.
    which.inputs.key_lengths.clear();
    which.inputs.causal = true;
    check(which);
  }
}

TEST_P(UnseenValues, OfPackedSequencesLocalChunksAndRowsThatSeeNothing) {
  check(in_window(packed(make(Storage::bf16, 1, {300, 33, 129, 700}, 2, 1, 64, 41), {1, 30, 129, 40}), 50, 3));
  AttentionCase chunked = make(Storage::fp16, 20, {500, 333}, 4, 1, 128, 42);
  chunked.inputs.causal = true;
  chunked.inputs.local_chunk = 200;
  check(chunked);
  // The last rows stand behind the last key; of the second sequence all do, and no row sees a key.
  AttentionCase beyond = make(Storage::bf16, 60, {70, 20}, 2, 1, 64, 44);
  beyond.inputs.prefix = 30;
  check(in_window(beyond, 3, 0));
}

TEST_P(UnseenValues, InPagesOfAnySize) {
  int index = 0;
  for (const int size : {1, 16, 32, 48, 64, 80, 528, 784})
    for (const int rows : {1, 60, 300}) {
      if (!in_part(index++, 8)) continue;
      SCOPED_TRACE(std::format("pages of {}, {} rows", size, rows));
      AttentionCase which = make(Storage::bf16, rows, {1000 + (7 * index % 64), 900}, 4, 2, 128, std::uint64_t(index));
      which.pages = Pages{.size = size, .list = index % 2 == 0};
      check(in_window(which, 127));
      which = make(Storage::fp16, rows, {1063 - (5 * index % 64)}, 8, 1, 64, std::uint64_t(index));
      which.inputs.prefix = 600;
      which.pages = Pages{.size = size, .heads_first = true};
      check(in_window(which, 99, 5));
    }
}

// As engines do it: table entries of pages wholly in front of the window name a page of garbage.
TEST_P(UnseenValues, InPagesThatWereFreed) {
  constexpr std::uint16_t bf16_infinity = 0x7F80;
  int index = 0;
  for (const int size : {16, 32, 48, 80, 528, 784})
    for (const int rows : {1, 5, 300}) {
      if (!in_part(index++, 3)) continue;
      const int keys = 1000 + (11 * index % 64);
      SCOPED_TRACE(std::format("pages of {}, {} rows, {} keys", size, rows, keys));
      const AttentionCase which = in_window(make(Storage::bf16, rows, {keys}, 8, 2, 128, std::uint64_t(index)), 127);
      const int freed = seen_keys(which.inputs, 0).begin / size;
      for (const auto& engine : pipelines_.engines()) {
        AttentionCase paged = which;
        paged.pages = Pages{.size = size};
        set_schedule(WAVEJIT_SIMGPU_IN_ORDER, 1);
        const AttentionOutput clean = run_attention(engine->get(), paged);
        if (clean.status == WAVEJIT_UNSUPPORTED) continue;
        for (const std::optional<std::uint16_t> garbage : {std::optional<std::uint16_t>(), {bf16_infinity}}) {
          paged.pages->freed = {freed};
          paged.pages->garbage = garbage;
          const AttentionOutput output = run_attention(engine->get(), paged);
          EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail;
          EXPECT_TRUE(output.o == clean.o) << "O differs: " << output.kernel_spec;
          EXPECT_TRUE(bits_of(output.lse) == bits_of(clean.lse)) << "LSE differs: " << output.kernel_spec;
        }
      }
    }
}

// The window of the last row lies in one granule of 16 keys, whose first keys no row sees: on gfx1201 the waves of the
// tile's other granules read that one, and began at its first key.
TEST_P(UnseenValues, InsideOneGranuleOfAPage) {
  int index = 0;
  for (const int page : {16, 48, 64})
    for (const int keys : {38, 44, 61, 174, 199, 671}) {
      const int rows = 1 + (index % 4);
      if (!in_part(index++, 3)) continue;
      SCOPED_TRACE(std::format("{} rows of {} keys, pages of {}", rows, keys, page));
      AttentionCase which = in_window(make(Storage::bf16, rows, {keys, keys - 31}, 2, 1, 64, std::uint64_t(index)), 3);
      which.pages = Pages{.size = page};
      check(which);
    }
}

// Compiled, not run: a decode call of gpt-oss without LSE, whose window took the last scalar registers on gfx942.
TEST_P(UnseenValues, LeaveDecodeOverPagesItsRegisters) {
  const auto& engine = pipelines_.engines().front();
  for (const char* words : {"bf16 b1 q1 k4000 h64/8 d64 causal window=127,0 sink layout=paged:16",
                            "fp16 b1 q6 k4000 h64/8 d64 causal window=127,0 layout=paged:64",
                            "bf16 b1 q1 k4000 h64/8 d64 causal window=127,0 sink lse layout=paged:64",
                            "fp16 b1 q1 k4000 h64/8 d64 causal chunked=100 layout=paged:64",
                            "bf16 b1 q5 k4000 h32/8 d128 causal window=127,0 sink layout=paged:80"}) {
    SCOPED_TRACE(words);
    const std::string line = std::string("attention_forward ") + words;
    const char* lines[] = {line.c_str()};
    EXPECT_EQ(wavejit_prepare(engine->get(), lines, 1, 1, nullptr, nullptr, nullptr), WAVEJIT_OK)
        << wavejit_last_detail();
  }
}

TEST_P(UnseenValues, OfSplitKeysAndSharedWaves) {
  int index = 0;
  for (const int page : {0, 16, 64}) {
    if (!in_part(index++, 2)) continue;
    SCOPED_TRACE(page);
    AttentionCase which = make(Storage::bf16, 3, {2500, 1040}, 8, 1, 128, 61);
    which.splits = 3;
    if (page != 0) which.pages = Pages{.size = page};
    check(in_window(which, 1300));
    check(in_window(which, 77, 1));
  }
  std::vector<std::unique_ptr<Engine>> shared;
  for (const char* pipeline : {"generic chunk_waves=4", "generic chunk_waves=2"}) {
    wavejit_engine_options options{};
    options.pipeline = pipeline;
    shared.push_back(std::make_unique<Engine>(target(), options));
  }
  int kernels = 0;
  // Every page size is in every part: waves do not share chunks of every one of them on each target.
  index = 0;
  for (const int keys : {300, 513, 700, 1063}) {
    int place = index++;
    for (const int page : {0, 1, 16}) {
      if (!in_part(place++, 3)) continue;
      SCOPED_TRACE(std::format("{} keys, pages of {}", keys, page));
      AttentionCase which = make(Storage::bf16, 1, {keys}, 8, 1, 128, std::uint64_t(keys));
      if (page != 0) which.pages = Pages{.size = page};
      kernels += expect_bits_of_clean_keys(in_window(which, 130), shared);
      which = make(Storage::fp16, 3, {keys}, 4, 1, 64, std::uint64_t(keys));
      if (page != 0) which.pages = Pages{.size = page};
      kernels += expect_bits_of_clean_keys(in_window(which, 20, 1), shared);
    }
  }
  EXPECT_EQ(kernels > 0, target() != "gfx1201");
}

TEST_P(UnseenValues, OfLeftPaddingVectorisedPagesAndTurnedTensors) {
  AttentionCase padded = make(Storage::bf16, 5, {300, 333}, 4, 1, 128, 71);
  padded.first_keys = {40, 7};
  check(in_window(padded, 60));
  padded.pages = Pages{.size = 16};
  check(in_window(padded, 61));
  // Waves of 32 lanes have no kernels for the others.
  if (target() == "gfx1201") return;
  for (const std::int32_t layout : {WAVEJIT_PAGES_VECTORISED, WAVEJIT_PAGES_VECTORISED_KEYS})
    for (const int left : {63, 66, 72, 127}) {
      AttentionCase which = make(Storage::bf16, 5, {300, 260}, 4, 1, 128, 72);
      which.pages = Pages{.size = 32, .layout = layout};
      check(in_window(which, left, left % 2));
    }
  AttentionCase turned = make(Storage::fp16, 40, {300}, 2, 1, 64, 73);
  turned.scattered = {.k = Scattered::rows_inside, .v = Scattered::odd_rows};
  check(in_window(turned, 60));
}

TEST_P(UnseenValues, OfCachesOfEightBits) {
  const bool fnuz = target() == "gfx942";
  int index = 0;
  for (const wavejit_dtype type : {fnuz ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3, fnuz ? WAVEJIT_E5M2_FNUZ : WAVEJIT_E5M2})
    for (const int rows : {1, 40, 300})
      for (const int page : {0, 16, 64}) {
        if (!in_part(index++, 3)) continue;
        SCOPED_TRACE(std::format("{} rows, pages of {}, {}", rows, page, byte_format(type).name));
        AttentionCase which = make(Storage::bf16, rows, {500 + (13 * index), 340}, 4, 2, 128, std::uint64_t(index));
        if (page != 0) which.pages = Pages{.size = page};
        check(stored_in_bytes(in_window(which, 100, 2), {.type = type}));
      }
}

// A scale of a token that nobody sees is NaN or infinite, too, and multiplies no weight of another.
TEST_P(UnseenValues, OfScalesOfTokens) {
  int index = 0;
  for (const int rows : {1, 40, 300})
    for (const int page : {0, 16, 64}) {
      if (!in_part(index++, 3)) continue;
      SCOPED_TRACE(std::format("{} rows, pages of {}", rows, page));
      AttentionCase which =
          in_window(make(Storage::bf16, rows, {500 + (13 * index)}, 4, 2, 128, std::uint64_t(index)), 100, 2);
      if (page != 0) which.pages = Pages{.size = page};
      StoredBytes bytes{.type = target() == "gfx942" ? WAVEJIT_E4M3_FNUZ : WAVEJIT_E4M3};
      bytes.tokens = true;
      const std::size_t scales = std::size_t(which.inputs.key_rows()) * which.inputs.kv_heads;
      for (std::size_t i = 0; i < scales; ++i) bytes.k_scale.push_back(0.5F + (0.25F * static_cast<float>(i % 5)));
      bytes.v_scale = bytes.k_scale;
      check(stored_in_bytes(which, bytes));
    }
}

INSTANTIATE_TEST_SUITE_P(All, UnseenValues, ::testing::Values("gfx942", "gfx950", "gfx1201"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace wavejit::tests
