// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/sparse_indexer/kernel/rows.h"

namespace wavejit::sparse_indexer {
namespace {

struct TunedDefault {
  std::string_view target;
  RowCount count;
  bool shared;
};
constexpr TunedDefault tuned_defaults[] = {
#include "templates/sparse_indexer/kernel/tuned_defaults.inc"
};

}  // namespace

// Each call asks.
bool default_sharing(const targets::Target& target, RowCount count) {
  for (const TunedDefault& tuned : tuned_defaults)
    if (tuned.count == count && tuned.target == target.id) return tuned.shared;
  return count == RowCount::more;
}

bool sharing_of(const targets::Target& target, const families::Toggles& toggles, std::int64_t rows) {
  const bool usual = default_sharing(target, count_of_rows(rows));
  if (toggles.pins.empty()) [[likely]]
    return usual;
  return families::value_in(sharing_names, families::value_in(toggles.pins, tile_pin)).value_or(usual);
}

}  // namespace wavejit::sparse_indexer
