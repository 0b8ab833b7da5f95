// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/list_laboratory.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "templates/attention/kernel/canon.h"

namespace wavejit::attention::program {
namespace {

constexpr std::uint16_t nan = 0x7FFF;  // of both types

void set_last_column(std::vector<std::uint16_t>& rows, std::int64_t dim, std::uint16_t bits) {
  for (auto at = static_cast<std::size_t>(dim - 1); at < rows.size(); at += static_cast<std::size_t>(dim))
    rows[at] = bits;
}

// K and V of a batch, or K alone, and those of other keys.
struct Sides {
  const std::vector<std::uint16_t>& from;
  std::vector<std::uint16_t>& to;
  std::int64_t dim;
};
std::vector<Sides> sides_of(const ListedQueries& batch, ListedKeys& keys) {
  std::vector<Sides> sides = {{.from = batch.k, .to = keys.k, .dim = batch.dim}};
  if (!batch.v.empty()) sides.push_back({.from = batch.v, .to = keys.v, .dim = batch.dim_v});
  return sides;
}

std::int64_t keys_of_dense_walk(std::int64_t top_k) {
  return (top_k / list_chunk_keys * chunk_keys) + (top_k % list_chunk_keys);
}
// The place in the list that a key of the walk stands for, or −1.
std::int64_t place_in_list(std::int64_t key) {
  return key % chunk_keys < list_chunk_keys ? (key / chunk_keys * list_chunk_keys) + (key % chunk_keys) : -1;
}

}  // namespace

void clear_last_column(ListedQueries& batch) {
  set_last_column(batch.q, batch.dim, tools::encode(batch.type, 2));
  set_last_column(batch.k, batch.dim, 0);
}

std::int64_t ListedKeys::slot_of(std::int64_t sequence, std::int64_t key) const {
  const auto [of, row] = slot(static_cast<std::size_t>(sequence), key);
  return (of * inner) + row;
}

ListedKeys keys_in_memory(const ListedQueries& batch, std::int64_t page_size) {
  KeyPlaces places = {.rows_behind = 0};
  if (page_size != 0) places = {.pages = Paging{.size = page_size}};
  const std::vector<std::int64_t> lengths(static_cast<std::size_t>(batch.sequences), batch.keys);
  ListedKeys keys = {placed_keys(lengths, places, static_cast<std::uint64_t>(batch.keys)), {}, {}};
  for (const auto& [from, to, dim] : sides_of(batch, keys)) {
    const std::int64_t row = batch.kv_heads * dim;
    to.assign(static_cast<std::size_t>(keys.slots() * row), nan);
    for (std::int64_t sequence = 0; sequence < batch.sequences; ++sequence)
      for (std::int64_t key = 0; key < batch.keys; ++key)
        std::copy_n(from.begin() + (((sequence * batch.keys) + key) * row), row,
                    to.begin() + (keys.slot_of(sequence, key) * row));
  }
  return keys;
}

ListedKeys turned(const ListedQueries& batch, const ListedKeys& keys) {
  ListedKeys other = keys;
  for (const auto& [all, to, dim] : sides_of(batch, other)) {
    const std::int64_t row = batch.kv_heads * dim;
    for (std::int64_t slot = 0; slot < keys.slots() / 2; ++slot)
      std::swap_ranges(to.begin() + (slot * row), to.begin() + ((slot + 1) * row),
                       to.begin() + ((keys.slots() - 1 - slot) * row));
  }
  return other;
}

ListedKeys walked_keys(const ListedQueries& batch, std::int64_t token, std::int64_t kv_head) {
  ListedKeys walk;
  walk.inner = keys_of_dense_walk(batch.top_k);
  const std::int64_t list = (token * batch.lists) + (batch.lists > 1 ? kv_head : 0);
  const std::int64_t count = batch.counts.empty() ? batch.top_k : batch.counts[static_cast<std::size_t>(list)];
  for (const auto& [from, to, dim] : sides_of(batch, walk)) {
    to.assign(static_cast<std::size_t>(walk.inner * dim), 0);
    for (std::int64_t key = 0; key < walk.inner; ++key) {
      const std::int64_t place = place_in_list(key);
      const std::int64_t entry =
          place >= 0 && place < count ? batch.indices[static_cast<std::size_t>((list * batch.top_k) + place)] : -1;
      if (entry >= 0 && entry < batch.seen_by(token)) {
        const std::int64_t row = (((batch.sequence_of(token) * batch.keys) + entry) * batch.kv_heads + kv_head) * dim;
        std::copy_n(from.begin() + row, dim, to.begin() + (key * dim));
      } else if (&to == &walk.k) {
        to[static_cast<std::size_t>(((key + 1) * dim) - 1)] =
            tools::encode(batch.type, -std::numeric_limits<double>::infinity());
      }
    }
  }
  return walk;
}

CallLists call_lists(const ListedQueries& batch, const ListedKeys& keys, const ListChange& change) {
  CallLists lists = {.indices = batch.indices, .counts = batch.counts, .second_indices = {}, .second_counts = {}};
  for (std::size_t at = 0; change.slots && at < lists.indices.size(); ++at) {
    const auto token = static_cast<std::int64_t>(at) / (batch.lists * batch.top_k);
    std::int32_t& entry = lists.indices[at];
    const bool is_seen = entry >= 0 && entry < batch.seen_by(token);
    entry = is_seen ? static_cast<std::int32_t>(keys.slot_of(batch.sequence_of(token), entry)) : -1;
  }
  if (change.reversed) {
    for (auto first = lists.indices.begin(); first != lists.indices.end(); first += batch.top_k)
      std::reverse(first, first + batch.top_k);
    lists.counts.clear();
  }
  if (change.first_entries == 0) return lists;
  const auto behind = static_cast<std::int32_t>(change.first_entries);
  const std::vector<std::int32_t> all = std::exchange(lists.indices, {});
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (static_cast<std::int64_t>(at) % batch.top_k < behind)
      lists.indices.push_back(all[at]);
    else
      lists.second_indices.push_back(all[at] < 0 ? -1 : static_cast<std::int32_t>(keys.slots() - 1 - all[at]));
  }
  for (std::int32_t& count : lists.counts) {
    lists.second_counts.push_back(std::max(count - behind, 0));
    count = std::min(count, behind);
  }
  return lists;
}

}  // namespace wavejit::attention::program
