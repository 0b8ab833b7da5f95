// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rdna_cases.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "byte_problems.h"
#include "forward_problems.h"
#include "gradient_problems.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// fp16 is rounded by one instruction; bf16, which here is rounded in integers under masks, has rows of its own.
CallProblem in_fp16(AttentionCase which, bool lies = false) {
  return forward(in_storage(std::move(which), Storage::fp16), lies);
}

AttentionCase with_starts(AttentionCase which, const Numbers& query_starts) {
  which.query_starts = query_starts;
  return which;
}
AttentionCase with_lengths(AttentionCase which, const Numbers& key_lengths) {
  which.told_key_lengths = key_lengths;
  return which;
}

// Starts of rows that leave their order or lie behind the last, a sequence longer than the longest, lengths of keys
// that are none and that are too many.
std::vector<AttentionCase> sequences_that_lie() {
  return {with_starts(sequences({70, 35}, {60, 50}, 21, 2), {0, 100, 105}),
          with_starts(sequences({70, 35}, {60, 50}, 26, 2), {0, 70, most}),
          with_starts(sequences({140, 10}, {64, 64}, 22, 2), {0, 150, 5}),
          with_starts(sequences({35, 35}, {50, 40}, 23, 2), {0, most, 35}),
          with_starts(sequences({20, 35}, {30, 70}, 24, 2), {-5, 20, 55}),
          with_lengths(sequences({35, 20}, {50, 40}, 25, 2), {-5, most})};
}

// Those, and rows that are not packed.
std::vector<ForwardProblem> rows_in_pages(const Pages& pages) {
  std::vector<ForwardProblem> all;
  for (const AttentionCase& which : sequences_that_lie()) all.push_back({in_pages(which, pages), true});
  AttentionCase not_packed = make_case(Storage::bf16, 2, 40, 60, 2, 1, 64, true, 27);
  not_packed.inputs.key_lengths = {60, 33};
  all.push_back({in_pages(not_packed, pages)});
  return all;
}

Problems pages(const Pages& plain, const Pages& list) {
  return [=] {
    std::vector<CallProblem> all;
    for (const auto& [which, lies] : keys_in_pages(plain, list)) all.push_back(in_fp16(which, lies));
    for (const auto& [which, lies] : rows_in_pages(plain)) all.push_back(in_fp16(which, lies));
    return all;
  };
}

// Pages of one key: an entry of the table is a key's. What stands behind a row's last entry reads as page 0, where here
// is a key behind the end of its sequence, and no number; a list's row that is shorter than its length.
Problems keys_one_by_one() {
  return [] {
    constexpr Pages list = {.size = 1, .list = true};
    std::vector<CallProblem> all = pages({.size = 1}, list)();
    all.push_back(in_fp16(in_pages(with_lengths(sequences({35, 20}, {50, 40}, 25, 2), {-5, most}), list), true));
    // A lane fetches four values in a row: of the last four, one, two or three are there, in the first tile and later.
    AttentionCase no_numbers = with_lengths(sequences(Numbers(6, 35), Numbers(6, 100), 28, 2), {69, 70, 71, 5, 6, 7});
    AttentionInputs& in = no_numbers.inputs;
    for (std::size_t i = 0; i < in.k.size(); ++i) {
      const auto key = static_cast<std::int32_t>(i / (std::size_t(in.kv_heads) * in.head_dim));
      if (key % in.key_length < no_numbers.told_key_lengths->at(key / in.key_length)) continue;
      in.k[i] = in.v[i] = std::numeric_limits<float>::quiet_NaN();
    }
    all.push_back(in_fp16(in_pages(no_numbers, {.size = 1, .seed = 2}), true));
    return all;
  };
}

// Rows of one tile and of several, more rows than keys, keys of one tile and of several, none, more than two chunks; a
// sink, no scale; lengths and starts that lie.
Problems dense(int head_dim, int head_dim_v) {
  return [=] {
    const auto keys_of = [&](int queries, const Numbers& keys, std::uint64_t seed) {
      AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), queries, std::ranges::max(keys), 2,
                                      1, head_dim, true, seed, 1.0, head_dim_v);
      grow(which);
      which.splits = 1;
      which.layout = seed % 2 == 0 ? Layout::padded : Layout::bshd;
      if (keys.size() > 1) which.inputs.key_lengths = keys;
      return which;
    };
    const auto packed = [&](const Numbers& query_starts, const Numbers& key_starts, std::uint64_t seed) {
      AttentionCase which = keys_of(query_starts.back(), {key_starts.back()}, seed);
      AttentionInputs& in = which.inputs;
      in.batch = static_cast<int>(query_starts.size()) - 1;
      in.query_starts = query_starts;
      in.key_starts = key_starts;
      in.query_length = in.key_length = 0;
      for (std::size_t i = 1; i < query_starts.size(); ++i) {
        in.query_length = std::max(in.query_length, query_starts[i] - query_starts[i - 1]);
        in.key_length = std::max(in.key_length, key_starts[i] - key_starts[i - 1]);
      }
      return which;
    };
    AttentionCase lengths_lie = keys_of(40, {200, 70}, 9);
    lengths_lie.told_key_lengths = {-5, most};
    AttentionCase starts_lie = packed({0, 40, 40, 75}, {0, 150, 190, 250}, 10);
    starts_lie.query_starts = {-5, 64, most, 30};
    starts_lie.key_starts = {-5, 200, most, 20};
    AttentionCase keys_lie = packed({0, 40, 70, 75}, {0, 40, 70, 90}, 11);
    keys_lie.key_starts = {0, 95, most, 20};
    AttentionCase rows_lie = packed({0, 140, 150}, {0, 64, 128}, 12);
    rows_lie.query_starts = {0, 150, 5};
    AttentionCase below_zero = keys_of(40, {20, 20}, 13);
    below_zero.told_key_lengths = {20, -7};
    return std::vector<CallProblem>{in_fp16(keys_of(40, {300, 70, 0}, 1)),
                                    in_fp16(packed({0, 40, 40, 180}, {0, 70, 90, 390}, 2)),
                                    in_fp16(with_sink(keys_of(35, {33, 0}, 3))),
                                    in_fp16(without_scale(keys_of(33, {33}, 4))),
                                    in_fp16(keys_of(126, {126}, 5)),
                                    in_fp16(keys_of(300, {40}, 7)),
                                    in_fp16(lengths_lie, true),
                                    in_fp16(starts_lie, true),
                                    in_fp16(keys_lie, true),
                                    in_fp16(rows_lie, true),
                                    in_fp16(below_zero, true),
                                    in_fp16(keys_of(36, {2150}, 6))};
  };
}

// Rows behind one another, and keys.
AttentionCase packed_keys(AttentionCase which, const Numbers& key_lengths) {
  AttentionInputs& in = which.inputs;
  in.key_lengths.clear();
  in.key_starts = {0};
  for (const std::int32_t length : key_lengths) in.key_starts.push_back(in.key_starts.back() + length);
  in.key_length = std::ranges::max(key_lengths);
  const std::size_t numbers = std::size_t(in.key_starts.back()) * in.kv_heads * in.head_dim;
  in.k.resize(numbers);
  in.v.resize(numbers);
  return which;
}
AttentionCase with_key_starts(AttentionCase which, const Numbers& key_starts) {
  which.key_starts = key_starts;
  return which;
}

// Two kernels share a call only where a sequence may have more than a chunk of keys. More sequences than a wave has
// lanes, with long ones in its last lanes and behind them; rows, keys and lengths that lie.
Problems mixed() {
  return [] {
    Numbers rows(40, 1);
    Numbers keys(40, 2);
    rows[30] = 40;
    rows[31] = 140;
    rows[37] = 35;
    rows[38] = 36;
    keys[0] = 1030;
    keys[30] = 50;
    keys[31] = 70;
    keys[37] = 0;
    keys[38] = 60;
    const Numbers few_keys = {1030, 60, 50};
    return std::vector<CallProblem>{
        in_fp16(sequences({1, 140, 0, 17, 1}, {1030, 300, 7, 25, 0}, 1, 2)),
        in_fp16(sequences(rows, keys, 7, 2)),
        in_fp16(sequences({1, 158, 1}, {1030, 203, 1}, 3, 2)),
        in_fp16(sequences({1, 70, 1}, {1030, 5, 1}, 5, 2)),
        in_fp16(without_scale(sequences({1, 70, 1}, {1030, 70, 1}, 4, 2))),
        in_fp16(with_starts(sequences({1, 70, 35}, few_keys, 21, 2), {0, 1, 101, 106}), true),
        in_fp16(with_starts(sequences({1, 70, 35}, few_keys, 26, 2), {0, 1, 71, most}), true),
        in_fp16(with_starts(sequences({1, 140, 40}, few_keys, 22, 2), {0, 1, 181, 5}), true),
        in_fp16(with_starts(sequences({1, 35, 35}, few_keys, 23, 2), {0, 1, most, 36}), true),
        in_fp16(with_starts(sequences({1, 35, 35}, few_keys, 24, 2), {0, -5, 34, 71}), true),
        in_fp16(with_lengths(sequences({1, 35, 40}, few_keys, 25, 2), {1030, -5, most}), true),
        in_fp16(packed_keys(sequences({1, 70, 35}, few_keys, 31, 4), few_keys)),
        in_fp16(with_key_starts(packed_keys(sequences({1, 70, 35}, few_keys, 32, 2), few_keys), {0, -5, most, 20}),
                true),
        in_fp16(with_key_starts(packed_keys(sequences({1, 70, 35}, few_keys, 33, 4), few_keys), {0, 1000, most, 1100}),
                true),
        in_fp16(sequences({1, 40, 1}, {3, 2150, 1}, 6, 2)),
        in_fp16(with_sink(sequences({1, 1, 130, 70, 1, 2}, {1030, 24, 60, 80, 3, 5}, 2, 2)))};
  };
}

Problems left_padding() {
  return [] {
    AttentionCase lengths_lie = padded(40, {70, 33}, {5, 10}, 7, 2);
    lengths_lie.told_key_lengths = {-5, most};
    AttentionCase firsts_lie = padded(40, {70, 33, 40}, {5, 42, 35}, 8, 2);
    firsts_lie.told_first_keys = {-5, most, 90};
    AttentionCase behind_one_another = sequences({40, 3, 0, 140}, {70, 33, 20, 100}, 9, 4);
    behind_one_another.first_keys = {0, 37, 5, 2};
    const auto rows_lie = [&](const Numbers& query_starts) {
      return in_fp16(with_starts(behind_one_another, query_starts), true);
    };
    return std::vector<CallProblem>{in_fp16(padded(70, {70, 33, 1}, {0, 37, 69}, 1, 4)),
                                    in_fp16(behind_one_another),
                                    rows_lie({-5, 40, most, 50, 20}),
                                    rows_lie({0, 100, 105, 110, most}),
                                    rows_lie({0, 40, 180, 5, 5}),
                                    in_fp16(with_sink(padded(40, {300, 0}, {5, 305}, 2, 2))),
                                    in_fp16(padded(40, {3, 0}, {2, 5}, 5, 2)),
                                    in_fp16(without_scale(padded(33, {33}, {4}, 6, 2))),
                                    in_fp16(lengths_lie, true),
                                    in_fp16(firsts_lie, true),
                                    in_fp16(padded(126, {126}, {3}, 4, 2)),
                                    in_fp16(padded(36, {2150}, {3}, 3, 2))};
  };
}

}  // namespace

std::vector<CalledCase> rdna_cases() {
  std::vector<CalledCase> all;
  const auto add = [&](const char* name, std::vector<std::string> words, Problems problems) {
    all.push_back({name, "gfx1201", std::move(words), std::move(problems), true});
  };
  const auto joined = [](std::vector<CallProblem> first, const std::vector<CallProblem>& second) {
    first.insert(first.end(), second.begin(), second.end());
    return first;
  };
  const auto under_diagonal = [] { return gradients_and_lies(" causal", " d64", "fp16"); };
  add("dq_gfx1201", {"attention_backward_dq "}, under_diagonal);
  add("dkdv_gfx1201", {"attention_backward_dkdv "}, under_diagonal);
  add("dsink_gfx1201", {"attention_backward_dsink "},
      [=] { return joined(gradients_of_sinks(), gradients_of_lies(" d64 causal d_sink", "fp16")); });
  add("dbias_gfx1201", {"attention_backward_dbias "}, [] {
    std::vector<CallProblem> all = gradients_of_biases("fp16", 8);
    std::ranges::rotate(all, all.begin() + 5);  // the small ones first, since each runs all kernels of gradients
    return all;
  });
  add("paged_gfx1201", {"attention_forward ", " paged "}, pages({.size = 16}, {.size = 48, .list = true}));
  add("paged_one_gfx1201", {"attention_forward ", " paged "}, keys_one_by_one());
  add("i8_tokens_gfx1201", {"attention_forward ", " cache=i8 "},
      [] { return few_byte_caches(WAVEJIT_INT8, ByteScales::tokens, Storage::fp16); });
  add("e4m3_paged_gfx1201", {"attention_forward ", " cache=e4m3 "}, [] {
    std::vector<ForwardProblem> more = rows_in_pages({.size = 16});
    more.push_back({in_pages(with_sink(sequences({36}, {1100}, 29, 2)), {.size = 16})});  // beside more than a chunk
    return byte_caches_in_pages(WAVEJIT_E4M3, ByteScales::heads, Storage::fp16, more);
  });
  add("generic_d192_gfx1201", {"attention_forward ", " d192/128 "}, dense(192, 128));
  add("generic_d64_gfx1201", {"attention_forward ", " d64 "}, dense(64, 64));
  add("many_rows_gfx1201", {"attention_forward ", "rows=many"}, mixed());
  add("first_keys_gfx1201", {"attention_forward ", " first_keys "}, left_padding());
  return all;
}

}  // namespace wavejit::tests
