// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "rdna_cases.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "forward_problems.h"
#include "gradient_problems.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// fp16 is rounded by one instruction; bf16, which here is rounded in integers under masks, has rows of its own.
CallProblem in_fp16(AttentionCase which, bool lies = false) {
  which.storage = Storage::fp16;
  AttentionInputs& in = which.inputs;
  for (std::vector<float>* numbers : {&in.q, &in.k, &in.v})
    for (float& number : *numbers) number = from_storage(which.storage, to_storage(which.storage, number));
  return forward(which, lies);
}

constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();

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

Problems pages(const Pages& plain, const Pages& list) {
  return [=] {
    std::vector<CallProblem> all;
    for (const auto& [which, lies] : keys_in_pages(plain, list)) all.push_back(in_fp16(which, lies));
    for (const AttentionCase& which : sequences_that_lie()) all.push_back(in_fp16(in_pages(which, plain), true));
    AttentionCase not_packed = make_case(Storage::bf16, 2, 40, 60, 2, 1, 64, true, 27);
    not_packed.inputs.key_lengths = {60, 33};
    all.push_back(in_fp16(in_pages(not_packed, plain)));
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
  const auto under_diagonal = [=] {
    return joined(gradients_under(" causal", " d64", "fp16"), gradients_of_lies(" d64 causal", "fp16"));
  };
  add("dq_gfx1201", {"attention_backward_dq "}, under_diagonal);
  add("dkdv_gfx1201", {"attention_backward_dkdv "}, under_diagonal);
  add("dsink_gfx1201", {"attention_backward_dsink "},
      [=] { return joined(gradients_of_sinks(), gradients_of_lies(" d64 causal d_sink", "fp16")); });
  add("paged_gfx1201", {"attention_forward ", " paged "}, pages({.size = 16}, {.size = 48, .list = true}));
  add("generic_d64_gfx1201", {"attention_forward ", " d64 "}, dense(64, 64));
  return all;
}

}  // namespace wavejit::tests
