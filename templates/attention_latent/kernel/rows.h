// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How many rows a workgroup has when nobody says otherwise. The same bits with each.
#pragma once

#include <cstdint>
#include <string_view>

#include "families/kernel/names.h"
#include "templates/attention_latent/kernel/spec.h"

namespace wavejit::attention_latent {

// Rows of a sequence, or of a query that names its keys: a head of a query each.
// More than 64 are for plan_splits to decide (call/splits.h).
enum class RowCount : std::uint8_t { up_to_32, more };
inline constexpr families::Names<RowCount, 2> row_counts = {
    {{RowCount::up_to_32, "up_to_32"}, {RowCount::more, "more"}}};
// The word of a developer's that pins another number (families/kernel/toggles.h).
inline constexpr std::string_view tile_pin = "tile_queries";

// What `wavejit tune` found (kernel/tuned_defaults.inc, docs/tune.md); of a target that does not stand there as few as
// hold the rows.
Rows default_rows(const targets::Target& target, RowCount count);

}  // namespace wavejit::attention_latent
