// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches of 8 bits: what is asked of plain calls, each held against a packed call of the 16-bit kernel over the same
// numbers. Queries of 8 bits: the same, held against a packed call over the same bytes.
#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "templates/attention_forward/program/invariance_cache.h"
#include "templates/attention_forward/program/invariance_changes.h"

namespace wavejit::attention_forward::program {
namespace {

struct OfCache {
  const char* plain;
  const char* name;
  const char* changes;
};
constexpr std::array<OfCache, 12> of_caches = {{
    {.plain = "alone", .name = "cache-alone", .changes = "8 bits against 16: each sequence in a call of its own"},
    {.plain = "permuted", .name = "cache-permuted", .changes = "8 bits against 16: the sequences in another order"},
    {.plain = "padded", .name = "cache-padded", .changes = "8 bits against 16: dense keys, NaN behind the sequence"},
    {.plain = "left-padding", .name = "cache-left", .changes = "8 bits against 16: NaN in front of the sequence"},
    {.plain = "rechunked", .name = "cache-rechunked", .changes = "8 bits against 16: queries in pieces"},
    {.plain = "token-by-token", .name = "cache-tokens", .changes = "8 bits against 16: each query by itself"},
    {.plain = "splits", .name = "cache-splits", .changes = "8 bits against 16: keys cut into runs"},
    {.plain = "pipeline", .name = "cache-pipeline", .changes = "8 bits against 16: each pipeline of the target"},
    {.plain = "query-tile", .name = "cache-query-tile", .changes = "8 bits against 16: rows of a workgroup"},
    {.plain = "page-size", .name = "cache-page-size", .changes = "8 bits against 16: pages of 1 to 1,040 keys"},
    {.plain = "page-layout", .name = "cache-page-layout", .changes = "8 bits against 16: pages that lie otherwise"},
    {.plain = "hidden", .name = "cache-hidden", .changes = "8 bits against 16: what no row may see is NaN"},
}};

constexpr std::array<OfCache, 10> of_queries = {{
    {.plain = "alone", .name = "queries-alone", .changes = "Q, K, V of 8 bits: each sequence in a call of its own"},
    {.plain = "permuted", .name = "queries-permuted", .changes = "Q, K, V of 8 bits: sequences in another order"},
    {.plain = "padded", .name = "queries-padded", .changes = "Q, K, V of 8 bits: dense, NaN behind the sequence"},
    {.plain = "rechunked", .name = "queries-rechunked", .changes = "Q, K, V of 8 bits: queries in pieces"},
    {.plain = "token-by-token", .name = "queries-tokens", .changes = "Q, K, V of 8 bits: each query by itself"},
    {.plain = "pipeline", .name = "queries-pipeline", .changes = "Q, K, V of 8 bits: each pipeline of the target"},
    {.plain = "query-tile", .name = "queries-query-tile", .changes = "Q, K, V of 8 bits: rows of a workgroup"},
    {.plain = "page-size", .name = "queries-page-size", .changes = "Q, K, V of 8 bits: pages of 1 to 1,040 keys"},
    {.plain = "page-layout", .name = "queries-page-layout", .changes = "Q, K, V of 8 bits: pages that lie otherwise"},
    {.plain = "hidden", .name = "queries-hidden", .changes = "Q, K, V of 8 bits: what no row may see is NaN"},
}};

std::vector<Change> other_scales(const Batch& batch, Draws& /*draws*/) {
  if (batch.cache.scales.empty() && !batch.cache.token_scales) return {};
  return {{.text = "other scales", .pieces = all_whole(batch), .way = {.other_scales = true}}};
}

std::vector<Dimension> as_plain(const std::vector<Dimension>& plain, std::span<const OfCache> names, Base base) {
  // The dimensions of plain calls have the many pairs; these show that 8 bits have the same.
  constexpr std::uint64_t one_in = 8;
  std::vector<Dimension> dimensions;
  for (const OfCache& of : names) {
    const auto found =
        std::ranges::find_if(plain, [&](const Dimension& dimension) { return dimension.told.name == of.plain; });
    dimensions.push_back(
        {.told = {.name = of.name, .changes = of.changes, .one_in = one_in, .of_some_targets = base == Base::bytes},
         .changes = found->changes,
         .base = base});
  }
  return dimensions;
}

}  // namespace

std::vector<Dimension> cache_dimensions(const std::vector<Dimension>& plain) {
  std::vector<Dimension> dimensions = as_plain(plain, of_caches, Base::cached);
  dimensions.push_back(
      {.told = {.name = "cache-other", .changes = "control: 8 bits with twice K's scale; bits differ", .control = true},
       .changes = other_scales,
       .base = Base::cached});
  return dimensions;
}

std::vector<Dimension> byte_query_dimensions(const std::vector<Dimension>& plain) {
  std::vector<Dimension> dimensions = as_plain(plain, of_queries, Base::bytes);
  dimensions.push_back({.told = {.name = "queries-other",
                                 .changes = "control: Q, K, V of 8 bits with twice K's scale; bits differ",
                                 .control = true},
                        .changes = other_scales,
                        .base = Base::bytes});
  return dimensions;
}

void over_8_bits(const Batch& batch, std::vector<Change>& changes) {
  std::erase_if(changes, [](const Change& change) {
    return change.way.keys.pages && change.way.keys.pages->layout != WAVEJIT_PAGES_OF_ROWS;
  });
  for (Change& change : changes) {
    change.way.eight_bits = true;
    change.text += " (" + cache_text(batch) + ")";
  }
}

}  // namespace wavejit::attention_forward::program
