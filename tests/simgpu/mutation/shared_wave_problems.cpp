// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "shared_wave_problems.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>
#include <vector>

#include "forward_problems.h"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

}  // namespace

std::vector<CallProblem> shared_waves() {
  const auto dense = [](int queries, const Numbers& keys, int heads, std::uint64_t seed) {
    AttentionCase which = make_case(Storage::bf16, static_cast<int>(keys.size()), queries, std::ranges::max(keys),
                                    heads, 2, 128, true, seed, 2.0);
    grow(which);
    which.splits = 1;
    which.layout = seed % 2 == 0 ? Layout::padded : Layout::bshd;
    if (keys.size() > 1) which.inputs.key_lengths = keys;
    return which;
  };
  const auto packed = [&](const Numbers& query_starts, const Numbers& key_starts, std::uint64_t seed) {
    AttentionCase which = dense(query_starts.back(), {key_starts.back()}, 4, seed);
    which.inputs.batch = static_cast<int>(query_starts.size()) - 1;
    which.inputs.query_starts = query_starts;
    which.inputs.key_starts = key_starts;
    const auto longest = [](const Numbers& starts) {
      int most = 0;
      for (std::size_t i = 1; i < starts.size(); ++i) most = std::max(most, starts[i] - starts[i - 1]);
      return most;
    };
    which.inputs.query_length = longest(query_starts);
    which.inputs.key_length = longest(key_starts);
    return which;
  };
  // The last tile of keys, which the first rows do not walk.
  AttentionCase not_a_number = dense(31, {396}, 4, 13);
  std::fill_n(not_a_number.inputs.v.rbegin(), 12 * 256, std::numeric_limits<float>::quiet_NaN());
  // Maxima that fall and rise from chunk to chunk.
  AttentionCase level = make_case(Storage::bf16, 1, 1, 3100, 16, 2, 128, true, 14, 2.0);
  level.splits = 1;
  Numbers each_length(64);
  std::ranges::generate(each_length, [length = 0]() mutable { return ++length; });
  constexpr std::int32_t most = std::numeric_limits<std::int32_t>::max();
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

}  // namespace wavejit::tests
