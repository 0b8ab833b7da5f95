// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The order in which units of lists are walked: the longest first, the same in every run, and in no bit of a result.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <format>
#include <functional>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "attention/modified.h"
#include "support/test_device.h"
#include "templates/attention_forward/kernel/walks/block_lists/walks.h"
#include "wavejit/wavejit.hpp"

namespace wavejit::tests {
namespace {

using Numbers = std::vector<std::int32_t>;

// Lengths from none to a thousand times the shortest, in no order.
Numbers uneven_lengths(std::size_t count, std::int32_t longest, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  Numbers lengths(count);
  for (std::int32_t& length : lengths) {
    const auto most = std::int32_t(1) << (generator() % 11);
    length = std::int32_t(generator() % std::uint64_t(std::min(most, longest) + 1));
  }
  return lengths;
}

// Four classes an octave.
int class_of(std::int32_t length) {
  if (length <= 0) return 0;
  const int octave = std::bit_width(std::uint32_t(length)) - 1;
  const int quarter = int((std::uint64_t(length) * 4) >> octave) & 3;
  return std::min(1 + 4 * octave + quarter, attention_block_lists::length_classes - 1);
}

Numbers longest_first(const Numbers& lengths, bool descending) {
  Numbers order(lengths.size());
  std::iota(order.begin(), order.end(), 0);
  if (descending) std::ranges::reverse(order);
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::int32_t unit) { return class_of(lengths[std::size_t(unit)]); });
  return order;
}

class ListOrder : public ::testing::TestWithParam<const char*> {
 protected:
  static wavejit::EngineOptions options() {
    wavejit::EngineOptions options;
    options.device = test_device(GetParam());
    return options;
  }

  // The orders of a call over `lengths` [heads][units] of 64 rows; `lengths` are counts, or distances of starts.
  std::vector<Numbers> orders_of(const std::vector<Numbers>& lengths, bool ragged, bool causal) {
    const auto heads = std::int64_t(lengths.size());
    const auto units = std::int64_t(lengths.front().size());
    std::int32_t longest = 1;
    for (const Numbers& head : lengths) longest = std::max(longest, std::ranges::max(head));
    const std::int64_t keys = std::int64_t(longest) * 64;
    Numbers indices;
    Numbers counts;
    Numbers starts = {0};
    for (const Numbers& head : lengths) {
      for (const std::int32_t length : head) {
        // Block 0 again and again: a list is a set, and one tile is all that is walked.
        indices.insert(indices.end(), std::size_t(ragged ? length : longest), 0);
        counts.push_back(length);
        starts.push_back(std::int32_t(indices.size()));
      }
    }
    indices.push_back(0);  // an array has an element at least
    const std::vector<std::uint16_t> rows(std::size_t(units * 64 * heads * 64));
    const std::vector<std::uint16_t> key_rows(std::size_t(keys * 64));
    const wavejit::DeviceBuffer q(engine_, rows);
    const wavejit::DeviceBuffer k(engine_, key_rows);
    const wavejit::DeviceBuffer o(engine_, rows);
    const wavejit::DeviceBuffer entries(engine_, indices);
    const wavejit::DeviceBuffer of_lists(engine_, ragged ? starts : counts);
    wavejit::AttentionForward call;
    call.q = wavejit::dense(q, WAVEJIT_BF16, 1, units * 64, heads, 64);
    call.o = wavejit::dense(o, WAVEJIT_BF16, 1, units * 64, heads, 64);
    call.k = call.v = wavejit::dense(k, WAVEJIT_BF16, 1, keys, 1, 64);
    call.modifiers.scale = 0.125F;
    if (causal) call.mask.bits = WAVEJIT_MASK_CAUSAL;
    call.blocks.list_indices = static_cast<const std::int32_t*>(entries.data());
    (ragged ? call.blocks.list_starts : call.blocks.list_counts) = static_cast<const std::int32_t*>(of_lists.data());
    call.blocks.list_capacity = ragged ? std::int64_t(indices.size()) : longest;
    call.blocks.list_rows = call.blocks.list_keys = 64;
    call.blocks.list_batches = 1;
    call.blocks.list_heads = std::int32_t(heads);
    call.blocks.list_row_blocks = units;
    const std::size_t bytes = engine_.workspace_bytes(call);
    const wavejit::DeviceBuffer workspace(engine_, bytes);
    call.split.workspace = workspace.data();
    call.split.workspace_bytes = bytes;
    engine_.attention_forward(call);
    engine_.synchronize();
    // The order comes after the headers.
    const auto memory = workspace.read<std::int32_t>();
    const std::size_t headers = std::size_t(heads * units) * sizeof(attention_block_lists::Header);
    const auto first = memory.begin() + std::ptrdiff_t((headers + 255) / 256 * 256 / 4);
    std::vector<Numbers> orders;
    for (std::int64_t head = 0; head < heads; ++head)
      orders.emplace_back(first + head * units, first + (head + 1) * units);
    return orders;
  }

  wavejit::Engine engine_{options()};
};

TEST_P(ListOrder, IsLongestFirstAndStable) {
  for (const bool ragged : {false, true}) {
    for (const bool causal : {false, true}) {
      SCOPED_TRACE(std::format("ragged {}, causal {}", ragged, causal));
      std::vector<Numbers> lengths;
      for (const std::uint64_t head : {1, 2}) lengths.push_back(uneven_lengths(150, 40, head));
      const std::vector<Numbers> orders = orders_of(lengths, ragged, causal);
      for (std::size_t head = 0; head < lengths.size(); ++head)
        EXPECT_EQ(orders[head], longest_first(lengths[head], causal)) << head;
    }
  }
}

TEST_P(ListOrder, OfEqualListsIsTheirOwn) {
  const Numbers own = [] {
    Numbers order(70);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }();
  EXPECT_EQ(orders_of({Numbers(70, 3)}, false, false).front(), own);
  EXPECT_EQ(orders_of({Numbers(70, 0)}, true, false).front(), own);
}

// Blocks of rows change places, with their lists: each has the bits that it had.
TEST_P(ListOrder, ShowsInNoBit) {
  constexpr int block = 64;
  constexpr int blocks = 9;
  Pipelines pipelines{GetParam()};
  AttentionCase which = make_case(Storage::bf16, 1, block * blocks, 1500, 1, 1, 64, false, 5);
  BlockLists lists = random_lists(64, 64, 1, 1, block * blocks, 1500, 0.5, 0, 21);
  for (int i = 0; i < blocks; ++i) lists.masked[i].resize(std::min<std::size_t>(lists.masked[i].size(), 1 << (i % 5)));
  which.inputs.lists = lists;
  const AttentionOutput before = pipelines.check(which);
  const Numbers places = {4, 0, 8, 2, 6, 1, 7, 3, 5};
  AttentionCase moved = which;
  const std::size_t row = 64;
  for (int i = 0; i < blocks; ++i) {
    const std::ptrdiff_t from = std::ptrdiff_t(block) * row * places[i];
    std::copy_n(which.inputs.q.begin() + from, block * row, moved.inputs.q.begin() + std::ptrdiff_t(block) * row * i);
    moved.inputs.lists->masked[i] = lists.masked[places[i]];
  }
  const AttentionOutput after = pipelines.run(moved);
  for (int i = 0; i < blocks; ++i) {
    const auto part = [&](const auto& all, int at, std::size_t of_row) {
      return std::vector(all.begin() + std::ptrdiff_t(block * of_row) * at,
                         all.begin() + std::ptrdiff_t(block * of_row) * (at + 1));
    };
    EXPECT_EQ(part(after.o, i, row), part(before.o, places[i], row)) << i;
    EXPECT_EQ(bits_of(part(after.lse, i, 1)), bits_of(part(before.lse, places[i], 1))) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, ListOrder, ::testing::Values("gfx942", "gfx950"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace wavejit::tests
