// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Caches of 8 bits: what is asked of plain calls, each held against a packed call of the 16-bit kernel over the same
// numbers. Queries of 8 bits, and Q and K in int8: the same, held against a packed call over the same bytes.
#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "templates/attention_forward/program/invariance_cache.h"
#include "templates/attention_forward/program/invariance_changes.h"

namespace wavejit::attention_forward::program {
namespace {

// The dimensions of plain calls have the many pairs; these show that 8 bits have the same.
constexpr std::uint64_t one_in = 8;
struct Batches {
  Asked::Group group;
  const char* control;
};
constexpr std::array<Batches, 3> of_bytes = {{
    {{.names = "cache-", .says = "8 bits against 16: ", .base = Base::cached, .one_in = one_in},
     "control: 8 bits with twice K's scale; bits differ"},
    {{.names = "queries-", .says = "Q, K, V of 8 bits: ", .base = Base::bytes, .one_in = one_in},
     "control: Q, K, V of 8 bits with twice K's scale; bits differ"},
    {{.names = "integer-", .says = "int8: ", .base = Base::integers, .one_in = one_in},
     "control: int8 with twice Q's scales; bits differ"},
}};

// A dimension of plain calls, and which of `of_bytes` have it.
struct OfPlain {
  const char* plain;
  const char* name;
  const char* changes;
  std::array<bool, of_bytes.size()> of;
};
constexpr std::array<OfPlain, 12> asked = {{
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

// Integers have scales in every batch.
std::vector<Change> other_scales(const Batch& /*batch*/, Draws& /*draws*/) {
  return {{.text = "other scales", .way = {.other_scales = true}}};
}
std::vector<Change> other_cache_scales(const Batch& batch, Draws& draws) {
  if (batch.cache.scales.empty() && !batch.cache.token_scales) return {};
  return other_scales(batch, draws);
}

}  // namespace

std::vector<Dimension> byte_dimensions(const std::vector<Dimension>& plain) {
  std::vector<Dimension> dimensions;
  for (std::size_t i = 0; i < of_bytes.size(); ++i) {
    const auto& [group, control] = of_bytes[i];
    std::vector<Asked::Row> rows;
    for (const auto& [name_of_plain, name, says, of] : asked) {
      if (!of[i]) continue;
      const auto found = std::ranges::find(plain, name_of_plain, [](const Dimension& each) { return each.told.name; });
      const DimensionKind kind = group.base == Base::bytes ? DimensionKind::of_some_targets : DimensionKind::usual;
      rows.push_back({name, says, found->changes, kind});
    }
    const Changes changes = group.base == Base::integers ? other_scales : other_cache_scales;
    rows.push_back({"other", control, changes, DimensionKind::control});
    Asked::add(dimensions, rows, group);
  }
  return dimensions;
}

void over_bytes(Base base, const Batch& batch, std::vector<Change>& changes) {
  const bool integers = base == Base::integers;
  if (!integers && base != Base::cached && base != Base::bytes) return;
  // Integers lie in no pages, bytes in pages of rows.
  std::erase_if(changes, [&](const Change& change) {
    const auto& pages = change.way.keys.pages;
    return pages && (integers || pages->layout != WAVEJIT_PAGES_OF_ROWS);
  });
  for (Change& change : changes) {
    (integers ? change.way.integers : change.way.eight_bits) = true;
    change.text += " (" + (integers ? integers_text(batch) : cache_text(batch)) + ")";
  }
}

}  // namespace wavejit::attention_forward::program
