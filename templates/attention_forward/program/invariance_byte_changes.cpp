// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches of 8 bits: what is asked of plain calls, each held against a packed call of the 16-bit kernel over the same
// numbers. Queries of 8 bits, and Q and K in int8: the same, held against a packed call over the same bytes.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "templates/attention_forward/program/invariance_cache.h"
#include "templates/attention_forward/program/invariance_changes.h"
#include "templates/attention_forward/program/invariance_integers.h"

namespace wavejit::attention_forward::program {
namespace {

struct Batches {
  Base base;
  const char* names;  // in front of the dimensions' names
  const char* says;   // and of what is said
  const char* control;
};
constexpr std::array<Batches, 3> of_bytes = {{
    {.base = Base::cached,
     .names = "cache-",
     .says = "8 bits against 16: ",
     .control = "control: 8 bits with twice K's scale; bits differ"},
    {.base = Base::bytes,
     .names = "queries-",
     .says = "Q, K, V of 8 bits: ",
     .control = "control: Q, K, V of 8 bits with twice K's scale; bits differ"},
    {.base = Base::integers,
     .names = "integer-",
     .says = "int8: ",
     .control = "control: int8 with twice Q's scales; bits differ"},
}};

// A dimension of plain calls, and which of `of_bytes` have it.
struct Asked {
  const char* plain;
  const char* name;
  const char* changes;
  std::array<bool, of_bytes.size()> of;
};
constexpr std::array<Asked, 12> asked = {{
    {"alone", "alone", "each sequence in a call of its own", {true, true, true}},
    {"permuted", "permuted", "the sequences in another order", {true, true, true}},
    {"padded", "padded", "dense keys, NaN (or other integers) behind the sequence", {true, true, true}},
    {"left-padding", "left", "NaN (or other integers) in front of the sequence", {true, false, true}},
    {"rechunked", "rechunked", "queries in pieces", {true, true, true}},
    {"token-by-token", "tokens", "each query by itself", {true, true, true}},
    {"splits", "splits", "keys cut into runs", {true, false, true}},
    {"pipeline", "pipeline", "each pipeline of the target", {true, true, false}},
    {"query-tile", "query-tile", "rows of a workgroup", {true, true, true}},
    {"page-size", "page-size", "pages of 1 to 1,040 keys", {true, true, false}},
    {"page-layout", "page-layout", "pages that lie otherwise", {true, true, false}},
    {"hidden", "hidden", "what no row may see is NaN (or other integers)", {true, true, true}},
}};

std::vector<Change> other_scales(const Batch& batch, Draws& /*draws*/) {
  return {{.text = "other scales", .pieces = all_whole(batch), .way = {.other_scales = true}}};
}
std::vector<Change> other_cache_scales(const Batch& batch, Draws& draws) {
  if (batch.cache.scales.empty() && !batch.cache.token_scales) return {};
  return other_scales(batch, draws);
}

}  // namespace

std::vector<Dimension> byte_dimensions(const std::vector<Dimension>& plain) {
  // The dimensions of plain calls have the many pairs; these show that 8 bits have the same.
  constexpr std::uint64_t one_in = 8;
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < of_bytes.size(); ++i) {
    const Batches& batches = of_bytes[i];
    for (const Asked& row : asked) {
      if (!row.of[i]) continue;
      const auto found =
          std::ranges::find_if(plain, [&](const Dimension& dimension) { return dimension.told.name == row.plain; });
      dimensions.push_back({.told = {.name = std::string(batches.names) + row.name,
                                     .changes = std::string(batches.says) + row.changes,
                                     .one_in = one_in,
                                     .of_some_targets = batches.base == Base::bytes},
                            .changes = found->changes,
                            .base = batches.base});
    }
    dimensions.push_back(
        {.told = {.name = std::string(batches.names) + "other", .changes = batches.control, .control = true},
         .changes = batches.base == Base::integers ? other_scales : other_cache_scales,
         .base = batches.base});
  }
  return dimensions;
}

void over_bytes(Base base, const Batch& batch, std::vector<Change>& changes) {
  const bool integers = base == Base::integers;
  // Integers lie in no pages, bytes in pages of rows.
  std::erase_if(changes, [&](const Change& change) {
    const auto& pages = change.way.keys.pages;
    return pages && (integers || pages->layout != WAVEJIT_PAGES_OF_ROWS);
  });
  for (Change& change : changes) {
    (integers ? change.way.integers : change.way.eight_bits) = true;
    change.text += !integers               ? " (" + cache_text(batch) + ")"
                   : has_key_scales(batch) ? " (int8, scales of keys)"
                                           : " (int8)";
  }
}

}  // namespace wavejit::attention_forward::program
