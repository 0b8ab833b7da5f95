// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/block_lists.h"

#include <algorithm>

namespace wavejit::attention::program {
namespace {

constexpr std::int64_t grid_width = 16;
constexpr std::int64_t grid_height = 8;
constexpr std::int64_t window_width = 12;
constexpr std::int64_t window_height = 3;
constexpr std::int64_t usual_percent = 50;

std::int64_t percent_of(const Experiment& problem) {
  return problem.list_percent != 0 ? problem.list_percent : usual_percent;
}

// splitmix64
std::uint64_t scrambled(std::uint64_t value) {
  value += 0x9E3779B97F4A7C15;
  value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9;
  value = (value ^ (value >> 27)) * 0x94D049BB133111EB;
  return value ^ (value >> 31);
}

bool in_window(std::int64_t place, std::int64_t center, std::int64_t width, std::int64_t length) {
  const std::int64_t first = std::clamp<std::int64_t>(center - width / 2, 0, std::max<std::int64_t>(length - width, 0));
  return place >= first && place < first + width;
}

bool is_near(const Experiment& problem, std::int64_t row_block, std::int64_t key_block) {
  const std::int64_t keys = block_count(problem.key_length, problem.list_keys);
  const std::int64_t rows = std::max<std::int64_t>(block_count(problem.query_length, problem.list_rows), 1);
  const std::int64_t center = row_block * keys / rows;
  const std::int64_t layer = grid_width * grid_height;
  const std::int64_t layers = block_count(keys, layer);
  const std::int64_t depth = std::max<std::int64_t>(
      1, (percent_of(problem) * keys / 100 + window_width * window_height / 2) / (window_width * window_height));
  return in_window(key_block % grid_width, center % grid_width, window_width, grid_width) &&
         in_window(key_block % layer / grid_width, center % layer / grid_width, window_height, grid_height) &&
         in_window(key_block / layer, center / layer, depth, layers);
}

bool is_named(const Experiment& problem, std::int64_t sequence, std::int64_t head, std::int64_t row_block,
              std::int64_t key_block) {
  if ((problem.hints & WAVEJIT_LISTS_ALIKE) != 0) return is_near(problem, row_block, key_block);
  std::uint64_t value = problem.seed;
  for (const std::int64_t part : {sequence, head, row_block, key_block})
    value = scrambled(value ^ static_cast<std::uint64_t>(part));
  return value % 100 < static_cast<std::uint64_t>(percent_of(problem));
}

}  // namespace

bool is_listed(const Experiment& problem, std::int64_t sequence, std::int64_t head, std::int64_t row,
               std::int64_t key) {
  return is_named(problem, sequence, head, row / problem.list_rows, key / problem.list_keys);
}

std::int64_t listed_keys(const Experiment& problem, std::int64_t sequence, std::int64_t head, std::int64_t row,
                         const VisibleKeys& seen) {
  std::int64_t count = 0;
  for (std::int64_t key = seen.first; key < seen.end;) {
    const std::int64_t end = std::min((key / problem.list_keys + 1) * problem.list_keys, seen.end);
    if (is_listed(problem, sequence, head, row, key)) count += end - key;
    key = end;
  }
  return count;
}

ListArrays arrays_of(const std::vector<BlockList>& lists, ListEnds ends, std::int64_t room) {
  ListArrays arrays;
  if (ends == ListEnds::starts) {
    arrays.starts = {0};
    for (const BlockList& list : lists) {
      arrays.indices.insert(arrays.indices.end(), list.begin(), list.end());
      arrays.starts.push_back(static_cast<std::int32_t>(arrays.indices.size()));
    }
    if (arrays.indices.empty()) arrays.indices.push_back(0);
    arrays.capacity = std::ssize(arrays.indices);
    return arrays;
  }
  arrays.capacity = 1;
  for (const BlockList& list : lists) arrays.capacity = std::max(arrays.capacity, std::ssize(list) + room);
  for (const BlockList& list : lists) {
    if (ends == ListEnds::counts) arrays.counts.push_back(static_cast<std::int32_t>(list.size()));
    arrays.indices.insert(arrays.indices.end(), list.begin(), list.end());
    arrays.indices.insert(arrays.indices.end(), static_cast<std::size_t>(arrays.capacity) - list.size(),
                          ends == ListEnds::counts ? 0 : -1);
  }
  return arrays;
}

void ListedBlocks::give(wavejit_block_lists& to, tools::CallMemory& memory) const {
  to.list_indices = memory.in(masked.indices);
  to.list_counts = memory.in(masked.counts);
  to.list_starts = memory.in(masked.starts);
  to.full_indices = memory.in(whole.indices);
  to.full_counts = memory.in(whole.counts);
  to.full_starts = memory.in(whole.starts);
  to.list_capacity = masked.capacity;
  to.full_capacity = whole.capacity;
  to.list_rows = static_cast<std::int32_t>(rows);
  to.list_keys = static_cast<std::int32_t>(keys);
  to.list_batches = static_cast<std::int32_t>(batches);
  to.list_heads = static_cast<std::int32_t>(heads);
  to.list_row_blocks = row_blocks;
}

ListedBlocks lists_of(const Experiment& problem) {
  if (problem.list_rows == 0) return {};
  ListedBlocks lists = {.rows = problem.list_rows,
                        .keys = problem.list_keys,
                        .batches = problem.batch,
                        .heads = problem.query_heads,
                        .row_blocks = block_count(problem.query_length, problem.list_rows),
                        .masked = {},
                        .whole = {}};
  const std::int64_t keys = block_count(problem.key_length, problem.list_keys);
  std::vector<BlockList> each;
  for (std::int64_t sequence = 0; sequence < problem.batch; ++sequence)
    for (std::int64_t head = 0; head < problem.query_heads; ++head)
      for (std::int64_t row = 0; row < lists.row_blocks; ++row) {
        BlockList& list = each.emplace_back();
        for (std::int64_t key = 0; key < keys; ++key)
          if (is_named(problem, sequence, head, row, key)) list.push_back(static_cast<std::int32_t>(key));
      }
  lists.masked = arrays_of(each, ListEnds::counts);
  return lists;
}

}  // namespace wavejit::attention::program
