// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention/program/list_queries.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "templates/attention/kernel/canon.h"

namespace wavejit::attention::program {
namespace {

using tools::Draws;
using Changes = std::vector<ListChange>;

std::int64_t drawn_page(Draws& draws) {
  constexpr std::array<std::int64_t, 4> sizes = {1, 16, 48, 64};
  return sizes[static_cast<std::size_t>(draws.below(sizes.size()))];
}
std::int64_t drawn_page_of_slots(const ListedQueries& batch, Draws& draws) {
  return !batch.slots_in_pages || draws.one_in(3) ? 0 : drawn_page(draws);
}

Changes walked(const ListedQueries& batch, Draws&) {
  if (!batch.has_dense_walk) return {};
  return {{.dense_walks = true}};
}

Changes split(const ListedQueries& batch, Draws& draws) {
  const auto count = static_cast<std::int32_t>(1 + draws.below(4));
  if (batch.top_k <= list_chunk_keys) return {};
  return {{.text = fmt::format("splits={}", count), .splits = count}};
}

Changes alone(const ListedQueries& batch, Draws&) {
  ListChange change = {.parts = {}};
  for (std::int64_t token = 0; token < batch.tokens(); ++token)
    change.parts.push_back({.token = token, .head = 0, .heads = batch.query_heads});
  return {std::move(change)};
}

// The heads of each kv head in two calls, or all of one.
Changes by_heads(const ListedQueries& batch, Draws& draws) {
  if (batch.query_heads == 1) return {};
  const std::int64_t group = batch.group();
  const std::int64_t first = group == 1 ? 1 : 1 + draws.below(group - 1);
  ListChange change = {.text = fmt::format("heads={}+{}", first, group - first), .parts = {}};
  for (std::int64_t token = 0; token < batch.tokens(); ++token)
    for (std::int64_t head = 0; head < batch.query_heads; head += group) {
      change.parts.push_back({.token = token, .head = head, .heads = first});
      if (first != group) change.parts.push_back({.token = token, .head = head + first, .heads = group - first});
    }
  return {std::move(change)};
}

Changes in_pages(const ListedQueries&, Draws& draws) {
  const std::int64_t size = drawn_page(draws);
  return {{.text = fmt::format("pages of {}", size), .page_size = size}};
}

Changes by_slots(const ListedQueries& batch, Draws& draws) {
  const std::int64_t size = drawn_page_of_slots(batch, draws);
  return {{.text = size == 0 ? "slots" : fmt::format("slots of pages of {}", size), .page_size = size, .slots = true}};
}

Changes in_two_lists(const ListedQueries& batch, Draws& draws) {
  if (batch.top_k <= list_chunk_keys) return {};
  const std::int64_t first = list_chunk_keys * (1 + draws.below((batch.top_k - 1) / list_chunk_keys));
  const std::int64_t size = drawn_page_of_slots(batch, draws);
  const auto splits = static_cast<std::int32_t>(draws.below(3));
  return {{.text = fmt::format("{} entries, and a second list, pages of {}, splits={}", first,
                               size == 0 ? batch.keys : size, splits),
           .page_size = size,
           .slots = true,
           .first_entries = first,
           .splits = splits}};
}

Changes scheduled(const ListedQueries&, Draws&) { return {{.text = "reverse", .schedule = WAVEJIT_SIMGPU_REVERSE}}; }

Changes reversed(const ListedQueries&, Draws&) { return {{.reversed = true}}; }

struct Row {
  const char* name;
  const char* changes;
  Changes (*make)(const ListedQueries& batch, Draws& draws);
};
constexpr std::array<Row, 8> rows = {{
    {.name = "walk", .changes = "a dense walk over a list's keys with chunks of 256, in place of it", .make = walked},
    {.name = "splits", .changes = "how many runs a list is cut into", .make = split},
    {.name = "alone", .changes = "each query in a call of its own", .make = alone},
    {.name = "heads", .changes = "the heads of each kv head in two calls of their own", .make = by_heads},
    {.name = "pages", .changes = "keys in pages, which lie anywhere", .make = in_pages},
    {.name = "slots", .changes = "slots in place of keys' numbers, without mask and lengths", .make = by_slots},
    {.name = "second", .changes = "slots, cut behind a chunk into two lists over two caches", .make = in_two_lists},
    {.name = "schedule", .changes = "the order in which waves run (simulated GPUs)", .make = scheduled},
}};

}  // namespace

std::vector<ListDimension> list_dimensions(const std::string& names, const std::string& says, std::uint64_t one_in) {
  std::vector<ListDimension> dimensions;
  dimensions.reserve(rows.size() + 1);
  for (const Row& row : rows)
    dimensions.push_back(
        {.told = {.name = names + row.name, .changes = says + row.changes, .one_in = one_in}, .changes = row.make});
  dimensions.push_back({.told = {.name = names + "order",
                                 .changes = "control: lists from their end, without counts; bits differ",
                                 .control = true},
                        .changes = reversed});
  return dimensions;
}

}  // namespace wavejit::attention::program
