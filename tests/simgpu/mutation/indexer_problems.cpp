// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "indexer_problems.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "byte_problems.h"
#include "sparse_indexer/indexer_run.h"
#include "support/byte_floats.h"

namespace wavejit::tests {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float nan = std::numeric_limits<float>::quiet_NaN();

// `lies`: what no answer is defined for.
CallProblem indexer(const IndexerCase& which, bool lies = false) {
  return {[which, lies](wavejit_engine* engine, bool judges) {
    const IndexerOutput output = run_indexer(engine, which);
    CallResult result = result_of(output);
    result.bits = bits_of(output.scores);
    const auto add = [&](const auto& more) { result.bits.insert(result.bits.end(), more.begin(), more.end()); };
    add(output.indices);
    add(bits_of(output.values));
    add(output.counts);
    if (!judges || lies || output.status != WAVEJIT_OK) return result;
    if (which.heads != 0) result.wrong = wrong_scores(which, output);
    if (which.top != 0 && result.wrong.empty())
      result.wrong = wrong_lists(which, output, which.heads != 0 ? output.scores : which.scores);
    return result;
  }};
}

std::vector<float> some_scales(const IndexerCase& which) {
  std::vector<float> scales;
  for (std::int64_t i = 0; i < which.batch * which.keys; ++i)
    scales.push_back(0.25F + (0.001F * static_cast<float>(i % 777)));
  return scales;
}

IndexerCase scaled(IndexerCase which) {
  which.key_scales = some_scales(which);
  return which;
}
// Each row has its own limit, in and out of range, in any order.
IndexerCase limited(IndexerCase which) {
  which.key_begins = {-5, 3, 149, 200, 64, 64, 0, 0, 31, 32, 33, 100};
  which.key_ends = {7, 3, 150, 300, 65, 60, -1, 1, 33, 64, 1 << 30, 99};
  return which;
}
IndexerCase with_lengths(IndexerCase which, const std::vector<std::int32_t>& lengths) {
  which.key_lengths = lengths;
  return which;
}
IndexerCase causal(IndexerCase which) {
  which.causal = true;
  return which;
}
IndexerCase in_window(IndexerCase which, std::int32_t left, std::int32_t right) {
  which.window = {left, right};
  return which;
}

// Products of heads that are not there are 0, and NaN with an infinite key.
IndexerCase infinite_keys(IndexerCase which) {
  for (float& element : which.queries) element = 1;
  for (float& weight : which.weights) weight = 2;
  for (float& element : which.key_vectors) element = infinity;
  return which;
}

// `format`: null is bf16.
std::vector<CallProblem> scores(int page, bool list, const ByteFormat* format = nullptr) {
  const auto products = [&](std::int64_t batch, std::int64_t rows, std::int64_t keys, std::int64_t heads,
                            std::uint64_t seed) {
    return format != nullptr ? byte_case(*format, batch, rows, keys, heads, 0, seed)
                             : indexer_case(Storage::bf16, batch, rows, keys, heads, 0, seed);
  };
  const auto kept = [&](IndexerCase which, bool lies = false) {
    which.page = page;
    which.list = list;
    return indexer(which, lies);
  };
  std::vector<CallProblem> all = {
      kept(products(2, 3, 70, 40, 1)),
      kept(scaled(with_lengths(products(2, 1, 200, 33, 2), {200, 131}))),
      kept(causal(with_lengths(products(3, 5, 45, 63, 3), {45, 2, 0}))),
      kept(with_lengths(products(2, 2, 40, 34, 4), {-7, most})),
      kept(causal(with_lengths(products(2, 2, 40, 34, 4), {-7, most}))),
      kept(limited(products(2, 6, 150, 40, 5))),
      kept(in_window(products(1, 9, 100, 50, 6), 30, 3)),
      kept(products(1, 4, 330, 35, 7)),
  };
  if (format == nullptr) all.push_back(kept(infinite_keys(products(1, 1, 3, 33, 8)), true));
  if (!list) return all;
  // Starts before and behind the list, and descending ones.
  IndexerCase lying = products(3, 1, 100, 33, 9);
  for (const std::vector<std::int32_t>& starts : {std::vector<std::int32_t>{-5, 2, 1, 900}, {2000, most, 3, -1}}) {
    lying.table_starts = starts;
    all.push_back(kept(lying, true));
  }
  return all;
}

IndexerCase with_equals(IndexerCase which, float step) {
  for (float& score : which.scores) score = std::round(score / step) * step;
  return which;
}

}  // namespace

std::vector<CallProblem> dense_scores() { return scores(0, false); }

std::vector<CallProblem> paged_scores() {
  std::vector<CallProblem> all = scores(16, false);
  for (const CallProblem& problem : scores(48, true)) all.push_back(problem);
  return all;
}

std::vector<CallProblem> byte_scores(wavejit_dtype type) { return scores(0, false, &byte_format(type)); }

std::vector<CallProblem> byte_scores_in_pages(wavejit_dtype type) {
  std::vector<CallProblem> all = scores(16, false, &byte_format(type));
  for (const CallProblem& problem : scores(48, true, &byte_format(type))) all.push_back(problem);
  return all;
}

namespace {

// A row of more than a step of the walk. In each of eight waves one score is `special`: at another place of a lane's
// two loads of four each.
IndexerCase one_in_each_place(float special, std::int64_t top) {
  constexpr std::size_t wave_keys = 512;
  constexpr std::size_t load_keys = 256;
  IndexerCase which = given_scores(1, 1, 9001, top, 61);
  for (std::size_t place = 0; place < 8; ++place)
    which.scores[(place * wave_keys) + (place / 4 * load_keys) + (20 * place) + (place % 4)] = special;
  return which;
}

// Rows whose k-th largest score has each number in the lowest five bits of its three digits: 0, 1, … 31. Other scores
// differ from it by one in one digit.
IndexerCase each_digit(bool negative) {
  constexpr std::int64_t rows = 32;
  const std::vector<std::int32_t> others = {0, 1, -1, 1 << 10, -(1 << 10), 1 << 21, -(1 << 21), 0, 1 << 10};
  IndexerCase which = given_scores(1, rows, std::ssize(others), 5, 1);
  for (std::uint32_t row = 0; row < rows; ++row) {
    const std::uint32_t bits = ((480 + row) << 21) + ((32 + row) << 10) + (32 + row);
    for (std::size_t key = 0; key < others.size(); ++key)
      which.scores[(row * others.size()) + key] =
          std::bit_cast<float>((bits + static_cast<std::uint32_t>(others[key])) ^ (negative ? 0x80000000U : 0U));
  }
  return which;
}

// Scores above 0, and in a load of the second wave three NaN, of which two are wanted.
IndexerCase nan_among_positives(std::size_t load) {
  IndexerCase which = given_scores(1, 1, 9001, 2, 64);
  for (float& score : which.scores) score = std::fabs(score);
  for (std::uint32_t each = 0; each < 3; ++each)
    which.scores[512 + (load * 256) + (5 * each)] = std::bit_cast<float>(0x7FC00001U + each);
  return which;
}
// The same in the second step of the walk, where the first hid every fourth score of the wave.
IndexerCase nan_behind_hidden() {
  IndexerCase which = given_scores(1, 1, 17'000, 2, 65);
  for (float& score : which.scores) score = std::fabs(score);
  for (std::size_t key = 256; key < 512; key += 4) which.scores[key + 3] = -infinity;
  for (std::uint32_t each = 0; each < 3; ++each)
    which.scores[8192 + (5 * each)] = std::bit_cast<float>(0x7FC00001U + each);
  return which;
}
IndexerCase nan_among_zeros(std::size_t load) {
  IndexerCase which = given_scores(1, 1, 9001, 1, 1);
  std::ranges::fill(which.scores, 0.0F);
  which.scores[512 + (load * 256)] = nan;
  return which;
}

// The largest score is the one that the second wave's last lane reads last.
IndexerCase largest_at_the_end() {
  IndexerCase which = given_scores(1, 1, 1024, 1, 66);
  which.scores.back() = 100;
  return which;
}

// Each lane of the wave that looks for a digit has neighbouring ones, lane 0 the largest: the second largest score in
// lane 0, 1, 2, 4, 8 and 16 of each digit, with scores in the last lanes.
IndexerCase each_lane() {
  struct Level {
    std::uint32_t shift;
    std::uint32_t lane_digits;
    std::uint32_t before;  // the digits before
  };
  constexpr std::uint32_t first_digit = 0x5E0U << 21;
  constexpr std::array<Level, 3> levels = {{{21, 32, 0}, {10, 32, first_digit}, {0, 16, first_digit + (33U << 10)}}};
  constexpr std::array<std::uint32_t, 6> lanes = {0, 1, 2, 4, 8, 16};
  constexpr std::int64_t keys = 18;
  IndexerCase which = given_scores(1, std::ssize(levels) * std::ssize(lanes), keys, 2, 1);
  auto score = which.scores.begin();
  for (const Level& level : levels)
    for (const std::uint32_t lane : lanes)
      for (std::uint32_t key = 0; key < keys; ++key) {
        const std::uint32_t of_key = key < 2 ? lane : 46 + key;
        const std::uint32_t digit = (level.lane_digits * (63 - of_key)) + 6 - key % 2;
        const std::uint32_t number = level.before + (digit << level.shift);
        *score++ = std::bit_cast<float>((number & 0x80000000U) != 0 ? number ^ 0x80000000U : ~number);
      }
  return which;
}

// Equals in the first place of each four, more than are wanted, before larger scores of other waves.
IndexerCase larger_behind_equals() {
  IndexerCase which = given_scores(1, 1, 1100, 110, 1);
  for (std::size_t key = 0; key < 1100; ++key)
    which.scores[key] = key % 4 == 0 ? 1.0F : (key > 700 && key % 4 == 2 ? 2.0F : 0.0F);
  return which;
}

// A row has 32 parts, whose lists are of 16 scores each. Four of them have four of the largest each: in places 0, 1, 2
// or 3 of each four. `last`: the part that has the least of them.
IndexerCase places_of_parts(std::size_t last) {
  constexpr std::size_t keys = 26'000;
  constexpr std::size_t part_keys = 832;
  constexpr std::array<std::size_t, 4> parts = {3, 9, 20, 27};
  IndexerCase which = given_scores(1, 4, keys, 16, 141);
  for (std::size_t row = 0; row < 4; ++row) {
    for (std::size_t part = 0; part * part_keys < keys; ++part)
      for (std::size_t at = 0; at < 16; ++at)
        which.scores[(row * keys) + (part * part_keys) + (10 * at)] = 10.0F + (0.125F * static_cast<float>(at));
    for (const std::size_t part : parts)
      for (std::size_t at = row; at < 16; at += 4)
        which.scores[(row * keys) + (part * part_keys) + (10 * at)] =
            (part == last ? 20.0F : 30.0F) + (0.125F * static_cast<float>(at));
  }
  which.workspace_rows = 4;
  return which;
}

// All below 0, which is what a lane reads behind the row's end.
IndexerCase negative(IndexerCase which) {
  for (float& score : which.scores) score = -std::fabs(score);
  return which;
}

}  // namespace

std::vector<CallProblem> lists_of_scores() {
  std::vector<CallProblem> all;
  // Numbers of either kind that stand where a border falls: NaN, infinities, zeros of both signs.
  IndexerCase special = given_scores(1, 1, 600, 40, 60);
  for (const std::size_t key : {5, 77, 400}) special.scores[key] = nan;
  special.scores[300] = -nan;
  special.scores[301] = infinity;
  for (std::size_t key = 100; key < 200; ++key) special.scores[key] = -infinity;
  for (std::size_t key = 200; key < 250; ++key) special.scores[key] = key % 2 == 0 ? 0.0F : -0.0F;
  for (const std::int64_t top : {1, 40, 350, 550}) {
    special.top = top;
    all.push_back(indexer(special));
  }
  // NaN of the negative sign are the largest, too; −∞ is in no list.
  all.push_back(indexer(one_in_each_place(-nan, 8)));
  all.push_back(indexer(one_in_each_place(-infinity, 9001)));
  for (const std::size_t load : {0, 1}) {
    all.push_back(indexer(nan_among_positives(load)));
    all.push_back(indexer(nan_among_zeros(load)));
  }
  all.push_back(indexer(nan_behind_hidden()));
  all.push_back(indexer(largest_at_the_end()));
  // Rows that end at each place of a lane's four, in both loads.
  for (const std::int64_t keys : {61, 62, 63, 64, 305, 306, 307, 308}) {
    all.push_back(indexer(negative(given_scores(1, 1, keys, keys, 62))));
    all.push_back(indexer(negative(given_scores(1, 1, keys, keys + 3, 63))));
  }
  // Each digit decides once.
  for (const int bit : {3, 15, 25}) {
    IndexerCase digits = given_scores(1, 1, 700, 350, 1);
    for (std::size_t key = 0; key < 700; ++key) {
      const std::uint32_t base = (key % 3 == 0 ? 0x80000000U : 0U) | 0x00000400U;
      digits.scores[key] = std::bit_cast<float>(base ^ (key % 2 == 0 ? 1U << static_cast<unsigned>(bit) : 0U));
    }
    all.push_back(indexer(digits));
  }
  // Several steps of the walk, equals across them.
  all.push_back(indexer(with_equals(given_scores(1, 2, 9001, 1500, 2), 0.25F)));
  all.push_back(indexer(with_equals(given_scores(1, 2, 17'000, 2500, 3), 0.01F)));
  // Rows that see fewer than k, and a workgroup's worth more.
  IndexerCase few = causal(with_lengths(given_scores(2, 4, 300, 128, 70), {300, 2}));
  all.push_back(indexer(few));
  few.causal = false;
  few.key_lengths = {-3, most};
  few.top = 2300;
  all.push_back(indexer(few));
  all.push_back(indexer(limited(given_scores(2, 6, 150, 20, 71))));
  all.push_back(indexer(in_window(given_scores(1, 9, 100, 20, 72), 30, 3)));
  few = given_scores(1, 2, 64, 10, 73);
  few.wants_values = false;
  all.push_back(indexer(few));
  for (const bool is_negative : {false, true}) all.push_back(indexer(each_digit(is_negative)));
  all.push_back(indexer(each_lane()));
  all.push_back(indexer(larger_behind_equals()));
  // Parts of a row, and a list of their lists.
  IndexerCase in_parts = with_equals(given_scores(1, 2, 26'000, 16, 140), 0.5F);
  in_parts.key_begins = {0, 1000};
  in_parts.key_ends = {26'000, 1010};
  in_parts.workspace_rows = 2;
  all.push_back(indexer(in_parts));
  for (const std::size_t last : {3, 20}) all.push_back(indexer(places_of_parts(last)));
  std::ranges::fill(in_parts.scores, 1.0F);
  in_parts.key_begins.clear();
  in_parts.key_ends.clear();
  all.push_back(indexer(in_parts));
  return all;
}

}  // namespace wavejit::tests
