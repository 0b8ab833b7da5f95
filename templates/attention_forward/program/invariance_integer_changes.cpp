// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Queries and keys in int8: what is asked of plain calls that have them dense and packed.
#include <algorithm>
#include <array>

#include "templates/attention_forward/program/invariance_changes.h"
#include "templates/attention_forward/program/invariance_integers.h"

namespace wavejit::attention_forward::program {
namespace {

struct OfIntegers {
  const char* plain;
  const char* name;
  const char* changes;
};
constexpr std::array<OfIntegers, 9> of_integers = {{
    {.plain = "alone", .name = "integer-alone", .changes = "int8: each sequence in a call of its own"},
    {.plain = "permuted", .name = "integer-permuted", .changes = "int8: the sequences in another order"},
    {.plain = "padded", .name = "integer-padded", .changes = "int8: dense keys, others behind the sequence"},
    {.plain = "left-padding", .name = "integer-left", .changes = "int8: others in front of the sequence"},
    {.plain = "rechunked", .name = "integer-rechunked", .changes = "int8: queries in pieces"},
    {.plain = "token-by-token", .name = "integer-tokens", .changes = "int8: each query by itself"},
    {.plain = "splits", .name = "integer-splits", .changes = "int8: keys cut into runs"},
    {.plain = "query-tile", .name = "integer-query-tile", .changes = "int8: rows of a workgroup"},
    {.plain = "hidden", .name = "integer-hidden", .changes = "int8: what no row may see is other integers and NaN"},
}};

std::vector<Change> other_query_scales(const Batch& batch, Draws& /*draws*/) {
  return {{.text = "other scales", .pieces = all_whole(batch), .way = {.other_scales = true}}};
}

}  // namespace

std::vector<Dimension> integer_dimensions(const std::vector<Dimension>& plain) {
  constexpr std::uint64_t one_in = 8;
  std::vector<Dimension> dimensions;
  for (const OfIntegers& of : of_integers) {
    const auto found =
        std::ranges::find_if(plain, [&](const Dimension& dimension) { return dimension.told.name == of.plain; });
    dimensions.push_back({.told = {.name = of.name, .changes = of.changes, .one_in = one_in},
                          .changes = found->changes,
                          .base = Base::integers});
  }
  dimensions.push_back({.told = {.name = "integer-other",
                                 .changes = "control: int8 with twice Q's scales; bits differ",
                                 .control = true},
                        .changes = other_query_scales,
                        .base = Base::integers});
  return dimensions;
}

void over_integers(const Batch& batch, std::vector<Change>& changes) {
  // No pages.
  std::erase_if(changes, [](const Change& change) { return change.way.keys.pages.has_value(); });
  for (Change& change : changes) {
    change.way.integers = true;
    change.text += has_key_scales(batch) ? " (int8, scales of keys)" : " (int8)";
  }
}

}  // namespace wavejit::attention_forward::program
