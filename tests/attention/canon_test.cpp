// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The canon (docs/canonical-arithmetic.md) against a model of it in float32, bit by bit, and what follows from it: the
// same bits whoever walks a chunk. Lengths stand round the borders of chunks.
//
// Scores are whole numbers and c is 1: products and powers of two are exact, so that every bit of l says in which order
// weights were added. The largest score is 0, and log l of l = 1 + a few ulps shows all of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <format>
#include <numbers>
#include <random>
#include <string>
#include <tuple>
#include <utility>

#include "attention/schedules.h"
#include "support/attention_run.h"
#include "support/canonical_row.h"

namespace wavejit::tests {
namespace {

constexpr int rows = 4;
constexpr int head_dim = 64;

// scale · log2 e rounds to 1.
float scale_of_one() {
  float scale = 1 / std::numbers::log2e_v<float>;
  for (int step = 0; step < 4 && scale * std::numbers::log2e_v<float> != 1.0F; ++step)
    scale = std::nextafter(scale, 1.0F);
  return scale;
}

// Scores of row r and all keys: the largest first, in the middle, last, or where the draw has it; a maximum that grows.
std::vector<float> scores_of(int r, int keys, std::mt19937& random) {
  std::uniform_int_distribution<int> low(-30, -13);
  std::vector<float> scores(static_cast<std::size_t>(keys));
  for (std::size_t key = 0; key < scores.size(); ++key) {
    scores[key] = static_cast<float>(low(random));
    if (r == 2) scores[key] = std::min(scores[key], -40.0F + static_cast<float>(key / 64));
  }
  if (scores.empty()) return scores;
  const std::size_t places[rows] = {0, scores.size() / 2, scores.size() - 1,
                                    std::uniform_int_distribution<std::size_t>(0, scores.size() - 1)(random)};
  scores[places[r]] = 0;
  return scores;
}

struct Rows {
  AttentionCase which;
  std::array<std::vector<float>, rows> scores;
};

// Row r multiplies dim r, in which K has its scores.
Rows rows_of(Storage storage, int keys, std::uint32_t seed) {
  Rows made{.which = make_case(storage, 1, rows, keys, 1, 1, head_dim, false, seed), .scores = {}};
  AttentionInputs& in = made.which.inputs;
  in.scale = scale_of_one();
  std::mt19937 random(seed);
  std::ranges::fill(in.q, 0.0F);
  std::ranges::fill(in.k, 0.0F);
  for (int r = 0; r < rows; ++r) {
    const auto row = static_cast<std::size_t>(r);
    in.q[(row * head_dim) + row] = 1;
    made.scores[row] = scores_of(r, keys, random);
    for (std::size_t key = 0; key < made.scores[row].size(); ++key)
      in.k[(key * head_dim) + row] = made.scores[row][key];
  }
  return made;
}

float sum_of(float lse) { return static_cast<float>(std::exp(static_cast<double>(lse))); }

struct Route {
  const char* target;
  const char* pipeline;
};
void PrintTo(const Route& route, std::ostream* out) { *out << route.target << ' ' << route.pipeline; }

class Canon : public ::testing::TestWithParam<std::tuple<Route, Storage>> {
 protected:
  static wavejit_engine_options options() {
    wavejit_engine_options options{};
    options.pipeline = std::get<0>(GetParam()).pipeline;
    return options;
  }
  static AttentionOutput run(const Engine& engine, const AttentionCase& which) {
    AttentionOutput output = run_attention(engine.get(), which);
    EXPECT_EQ(output.status, WAVEJIT_OK) << output.detail << output.reports;
    EXPECT_EQ(output.reports, "");
    EXPECT_TRUE(output.fence_intact);
    return output;
  }

  Engine engine_{std::get<0>(GetParam()).target, options()};
};

TEST_P(Canon, IsWhatTheModelSays) {
  int another_arithmetic = 0;
  std::uint32_t seed = 40;
  for (const int keys : {1, 63, 64, 65, 200, 1023, 1024, 1025, 1090, 2048, 2049, 2177, 3073, 3200}) {
    const Rows made = rows_of(std::get<1>(GetParam()), keys, ++seed);
    const AttentionOutput output = run(engine_, made.which);
    if (HasFailure()) return;
    for (int r = 0; r < rows; ++r) {
      SCOPED_TRACE(std::format("{} keys, row {}", keys, r));
      const auto row = static_cast<std::size_t>(r);
      const CanonicalRow model = canonical_row(made.scores[row], 1);
      ASSERT_EQ(model.maximum, 0.0F);
      EXPECT_EQ(std::bit_cast<std::uint32_t>(sum_of(output.lse[row])), std::bit_cast<std::uint32_t>(model.sum));
      const CanonicalRow other = canonical_row(made.scores[row], 1, 8, 512);
      another_arithmetic += other.sum != model.sum ? 1 : 0;
    }
  }
  EXPECT_GT(another_arithmetic, 4) << "the rows would not show chunks of another size";
}

// The queries from `begin` to `end` of a causal prefill over the keys that they see.
AttentionCase piece_of(const AttentionCase& whole, int begin, int end) {
  const AttentionInputs& all = whole.inputs;
  AttentionCase piece = whole;
  AttentionInputs& in = piece.inputs;
  const auto query_row = static_cast<std::ptrdiff_t>(all.query_heads) * head_dim;
  in.query_length = end - begin;
  in.key_length = all.key_length - all.query_length + end;
  in.q.assign(all.q.begin() + (begin * query_row), all.q.begin() + (end * query_row));
  const auto kept = static_cast<std::size_t>(in.key_length) * static_cast<std::size_t>(all.kv_heads) * head_dim;
  in.k.resize(kept);
  in.v.resize(kept);
  return piece;
}

// A prompt in pieces, cut at the border of a chunk, a token before it and behind it, or token by token: every row has
// the bits that it has in the whole.
TEST_P(Canon, PrefillInPiecesShowsNowhere) {
  constexpr int queries = 70;
  constexpr int keys = 2048 + 32;
  constexpr int heads = 2;
  const AttentionCase whole = make_case(std::get<1>(GetParam()), 1, queries, keys, heads, 1, head_dim, true, 70, 3.0);
  const AttentionOutput all = run(engine_, whole);
  constexpr int border = queries - 32;
  for (const auto& [begin, end] : {std::pair{0, border - 1},
                                   {0, border},
                                   {0, border + 1},
                                   {border, queries},
                                   {border + 1, queries},
                                   {0, 1},
                                   {border - 1, border},
                                   {border, border + 1},
                                   {border + 1, border + 2},
                                   {queries - 1, queries}}) {
    SCOPED_TRACE(std::format("queries {} to {}", begin, end));
    const AttentionOutput piece = run(engine_, piece_of(whole, begin, end));
    for (int row = begin; row < end; ++row) {
      for (int head = 0; head < heads; ++head) {
        const auto of_whole = static_cast<std::size_t>((row * heads) + head) * head_dim;
        const auto of_piece = static_cast<std::size_t>(((row - begin) * heads) + head) * head_dim;
        ASSERT_TRUE(std::equal(all.o.begin() + static_cast<std::ptrdiff_t>(of_whole),
                               all.o.begin() + static_cast<std::ptrdiff_t>(of_whole + head_dim),
                               piece.o.begin() + static_cast<std::ptrdiff_t>(of_piece)))
            << "O of row " << row << ", head " << head;
        ASSERT_EQ(
            std::bit_cast<std::uint32_t>(piece.lse[static_cast<std::size_t>((head * (end - begin)) + row - begin)]),
            std::bit_cast<std::uint32_t>(all.lse[static_cast<std::size_t>((head * queries) + row)]))
            << "LSE of row " << row << ", head " << head;
      }
    }
  }
}

constexpr Route routes[] = {
    {"gfx942", "generic"}, {"gfx942", "interleaved"}, {"gfx950", "generic"}, {"gfx950", "dualwave"}};

std::string test_name(const ::testing::TestParamInfo<std::tuple<Route, Storage>>& info) {
  const Route& route = std::get<0>(info.param);
  return std::format("{}_{}_{}", route.target, route.pipeline,
                     std::get<1>(info.param) == Storage::fp16 ? "fp16" : "bf16");
}

INSTANTIATE_TEST_SUITE_P(All, Canon,
                         ::testing::Combine(::testing::ValuesIn(routes),
                                            ::testing::Values(Storage::fp16, Storage::bf16)),
                         test_name);

}  // namespace
}  // namespace wavejit::tests
