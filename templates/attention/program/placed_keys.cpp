// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/placed_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "tools/invariance/draws.h"

namespace wavejit::attention::program {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::array<std::int32_t, 3> no_pages = {0x7FFFFFFF, -1, 0x40000001};

std::vector<std::int32_t> in_32_bits(const Lengths& lengths) { return {lengths.begin(), lengths.end()}; }

void pack(PlacedKeys& keys, const Lengths& lengths, std::int64_t rows_between) {
  keys.starts = {0};
  if (rows_between > 0) keys.lengths = in_32_bits(lengths);
  for (const std::int64_t length : lengths) {
    keys.firsts.push_back({.outer = 0, .row = keys.starts.back()});
    keys.starts.push_back(keys.starts.back() + static_cast<std::int32_t>(length + rows_between));
  }
  keys.inner = keys.starts.back();
}

void lay_dense(PlacedKeys& keys, const Lengths& lengths, std::int64_t rows, bool left_padding) {
  if (!left_padding) keys.lengths = in_32_bits(lengths);
  for (const std::int64_t length : lengths) {
    const std::int64_t first = left_padding ? rows - length : 0;
    keys.firsts.push_back({.outer = std::ssize(keys.firsts), .row = first});
    if (left_padding) keys.first_keys.push_back(static_cast<std::int32_t>(first));
  }
  keys.outer = std::ssize(lengths);
  keys.inner = std::max<std::int64_t>(rows, 1);
}

void page(PlacedKeys& keys, const Lengths& lengths, const KeyPlaces& places, std::uint64_t number) {
  keys.lengths = in_32_bits(lengths);
  keys.page_size = places.pages->size;
  constexpr std::uint64_t of_pages = 77;
  tools::Draws draws(number + of_pages);
  const auto pages_of = [&](std::int64_t count) { return (count + keys.page_size - 1) / keys.page_size; };
  std::int64_t most_slots = 0;
  constexpr std::int64_t nobodys = 3;
  std::int64_t count = nobodys;
  for (const std::int64_t length : lengths) {
    const std::int64_t first = places.left_padding ? draws.below((3 * keys.page_size) + 20) : 0;
    keys.firsts.push_back({.outer = 0, .row = first});
    if (places.left_padding) keys.first_keys.push_back(static_cast<std::int32_t>(first));
    most_slots = std::max(most_slots, first + length);
    count += pages_of(first + length);
  }
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  draws.shuffle(ids);
  keys.outer = count;
  keys.inner = keys.page_size;

  const std::int64_t columns = pages_of(most_slots) + 2;
  auto next = ids.begin();
  if (places.pages->list) keys.table_starts = {0};
  for (std::size_t piece = 0; piece < lengths.size(); ++piece) {
    const std::int64_t used = pages_of(keys.firsts[piece].row + lengths[piece]);
    keys.first_columns.push_back(keys.table.size());
    keys.table.insert(keys.table.end(), next, next + used);
    next += used;
    if (places.pages->list)
      keys.table_starts.push_back(static_cast<std::int32_t>(keys.table.size()));
    else
      for (std::int64_t i = used; i < columns + 1; ++i)
        keys.table.push_back(no_pages[static_cast<std::size_t>(i) % no_pages.size()]);
  }
  keys.table_columns = places.pages->list ? std::ssize(keys.table) : columns;
  keys.table_row_stride = places.pages->list ? 0 : columns + 1;
}

}  // namespace

std::string Paging::text() const {
  const char* order = layout == WAVEJIT_PAGES_VECTORISED        ? ", vectorised"
                      : layout == WAVEJIT_PAGES_VECTORISED_KEYS ? ", vectorised by keys"
                      : heads_first                             ? ", heads first"
                                                                : "";
  return fmt::format("pages of {} key{}{}{}{}", size, size == 1 ? "" : "s", order, in_turn ? ", K and V in turn" : "",
                     list ? ", in one list" : "");
}

KeySlot PlacedKeys::slot(std::size_t piece, std::int64_t key) const {
  const std::int64_t row = firsts[piece].row + key;
  if (page_size == 0) return {.outer = firsts[piece].outer, .row = row};
  const std::size_t column = first_columns[piece] + static_cast<std::size_t>(row / page_size);
  return {.outer = table[column], .row = row % page_size};
}

PlacedKeys placed_keys(const std::vector<std::int64_t>& lengths, const KeyPlaces& places, std::uint64_t number) {
  PlacedKeys keys;
  keys.longest = std::ranges::max(lengths);
  if (places.pages)
    page(keys, lengths, places, number);
  else if (places.rows_behind)
    lay_dense(keys, lengths, keys.longest + *places.rows_behind, places.left_padding);
  else
    pack(keys, lengths, places.rows_between);
  return keys;
}

}  // namespace wavejit::attention::program
