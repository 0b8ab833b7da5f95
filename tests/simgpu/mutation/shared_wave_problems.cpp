// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared_wave_problems.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "forward_problems.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// Two kv heads of 128 dims.
AttentionCase dense(int queries, const Numbers& keys, int heads, std::uint64_t seed) {
  AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), queries, std::ranges::max(keys), heads,
                                  2, 128, true, seed, 2.0);
  grow(which);
  which.splits = 1;
  which.layout = seed % 2 == 0 ? Layout::padded : Layout::bshd;
  if (keys.size() > 1) which.inputs.key_lengths = keys;
  return which;
}

AttentionCase packed(const Numbers& query_starts, const Numbers& key_starts, std::uint64_t seed) {
  AttentionCase which = dense(query_starts.back(), {key_starts.back()}, 4, seed);
  which.inputs.batch = static_cast<int>(query_starts.size()) - 1;
  which.inputs.query_starts = query_starts;
  which.inputs.key_starts = key_starts;
  const auto longest = [](const Numbers& starts) {
    int length = 0;
    for (std::size_t i = 1; i < starts.size(); ++i) length = std::max(length, starts[i] - starts[i - 1]);
    return length;
  };
  which.inputs.query_length = longest(query_starts);
  which.inputs.key_length = longest(key_starts);
  return which;
}

AttentionCase in_one_launch(AttentionCase which, int runs) {
  which.splits = runs;
  which.flags = WAVEJIT_ONE_LAUNCH;
  return which;
}

// Every score is below 0.
AttentionCase below_zero(AttentionCase which) {
  AttentionInputs& in = which.inputs;
  const auto dims = static_cast<std::size_t>(in.head_dim);
  for (std::size_t i = 0; i < in.q.size(); ++i) in.q[i] = i % dims == 0 ? -2.0F : 0.0F;
  for (std::size_t i = 0; i < in.k.size(); i += dims) in.k[i] = 1 + std::abs(in.k[i]);
  for (std::size_t i = 0; i < in.k.size(); i += dims)
    in.k[i] = from_storage(which.storage, to_storage(which.storage, in.k[i]));
  return which;
}

}  // namespace

std::vector<CallProblem> shared_waves() {
  // The last tile of keys, which the first rows do not walk.
  AttentionCase not_a_number = dense(31, {396}, 4, 13);
  std::fill_n(not_a_number.inputs.v.rbegin(), 12 * 256, std::numeric_limits<float>::quiet_NaN());
  // Maxima that fall and rise from chunk to chunk.
  AttentionCase level = make_case(Storage::bf16, 1, 1, 3100, 16, 2, 128, true, 14, 2.0);
  level.splits = 1;
  Numbers each_length(64);
  std::ranges::generate(each_length, [length = 0]() mutable { return ++length; });
  AttentionCase lengths_lie = dense(2, {300, 70}, 4, 9);
  lengths_lie.told_key_lengths = {-5, most};
  AttentionCase starts_lie = packed({0, 3, 3, 5}, {0, 300, 340, 400}, 10);
  starts_lie.query_starts = {-5, 4, most, 2};
  starts_lie.key_starts = {-5, 350, most, 20};
  return {
      forward(dense(2, {1110}, 4, 1)),
      forward(dense(3, {700, 0, 65, 1}, 4, 2)),
      forward(dense(19, {33}, 4, 3)),
      forward(with_sink(dense(5, {200, 130, 0}, 4, 4))),
      forward(dense(1, {2150}, 8, 5)),
      forward(without_scale(dense(1, {64}, 8, 6))),
      forward(dense(11, {300, 20, 3}, 6, 7)),
      forward(dense(1, each_length, 4, 8)),
      forward(packed({0, 3, 9, 20}, {0, 300, 340, 400}, 11)),
      forward(level),
      forward(not_a_number, true),
      forward(lengths_lie, true),
      forward(starts_lie, true),
  };
}

std::vector<CallProblem> merged_shared_waves() {
  // What the first query of each head is has no exact answer.
  AttentionCase not_a_number = dense(1, {1070}, 16, 24);
  std::fill_n(not_a_number.inputs.q.begin(), 128, std::numeric_limits<float>::quiet_NaN());
  AttentionCase lengths_lie = dense(2, {1100, 70}, 4, 25);
  lengths_lie.told_key_lengths = {-300, most};
  AttentionCase starts_lie = packed({0, 3, 3, 5}, {0, 1100, 1140, 2200}, 26);
  starts_lie.query_starts = {-5, 4, most, 2};
  starts_lie.key_starts = {-5, 1150, most, 20};
  // A row's last key at each place of a tile, and no key that counts for nothing.
  AttentionCase each_last_key = make_case(Storage::bf16, 2, 32, 1088, 4, 2, 128, true, 34);
  each_last_key.inputs.key_lengths = {1056, 1088};
  // Three runs, twice: counters are in order behind the first call.
  const AttentionCase three_runs = in_one_launch(dense(2, {2150}, 8, 20), 3);
  std::vector<CallProblem> all = {forward(three_runs), forward(three_runs)};
  for (const AttentionCase& which : {
           dense(1, {1089, 1, 30, 47, 63, 64}, 4, 28),
           with_sink(dense(5, {1090, 130, 0}, 4, 21)),
           dense(19, {1033}, 4, 22),
           each_last_key,
           without_scale(dense(1, {1090}, 8, 23)),
           dense(3, {1100, 2, 1025}, 10, 27),
           packed({0, 3, 9, 20}, {0, 1100, 1140, 2200}, 29),
           below_zero(dense(1, {2150}, 16, 30)),
           below_zero(dense(3, {1025, 1026}, 10, 33)),  // of four rows side by side two see the second part
       })
    all.push_back(forward(in_one_launch(which, 2)));
  for (const AttentionCase& which : {not_a_number, lengths_lie, starts_lie})
    all.push_back(forward(in_one_launch(which, 2), true));
  // Eight parts, which are on their way together, with maxima that rise; and seventeen: twice eight, and one.
  all.push_back(forward(in_one_launch(dense(1, {8192}, 8, 31), 8)));
  AttentionCase level = make_case(Storage::bf16, 1, 1, 16400, 8, 1, 128, true, 32, 2.0);
  all.push_back(forward(in_one_launch(level, 5)));
  return all;
}

}  // namespace wavejit::tests
