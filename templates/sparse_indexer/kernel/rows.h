// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Whether rows share keys when nobody says otherwise. The same bits either way.
#pragma once

#include <cstdint>
#include <string_view>

#include "families/kernel/names.h"
#include "families/kernel/toggles.h"
#include "targets/targets.h"
#include "templates/sparse_indexer/kernel/spec.h"

namespace wavejit::sparse_indexer {

// Rows of a sequence.
enum class RowCount : std::uint8_t { one, two, three, more };
inline constexpr families::Names<RowCount, 4> row_counts = {
    {{RowCount::one, "one"}, {RowCount::two, "two"}, {RowCount::three, "three"}, {RowCount::more, "more"}}};
constexpr RowCount count_of_rows(std::int64_t rows) {
  return rows == 1 ? RowCount::one : rows == 2 ? RowCount::two : rows == 3 ? RowCount::three : RowCount::more;
}

// By how many rows read a tile of keys together: their own each, or what stands in LDS for four.
inline constexpr families::Names<bool, 2> sharing_names = {{{false, "1"}, {true, "4"}}};
// The word of a developer's that pins it (families/kernel/toggles.h).
inline constexpr std::string_view tile_pin = "tile_queries";

// What `wavejit tune` found (kernel/tuned_defaults.inc, docs/tune.md); of a target that does not stand there: where
// there are as many rows.
bool default_sharing(const targets::Target& target, RowCount count);
// The same, unless a developer's word says otherwise.
bool sharing_of(const targets::Target& target, const families::Toggles& toggles, std::int64_t rows);

}  // namespace wavejit::sparse_indexer
