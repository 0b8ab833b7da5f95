// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a caller forces of this family's kernels: the words that the engine carries for it (families/kernel/toggles.h),
// read where a route is chosen.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "families/kernel/toggles.h"
#include "templates/attention_forward/kernel/pipeline.h"

namespace wavejit::attention_forward {

struct Pins {
  std::optional<OutputStore> output_store = std::nullopt;  // nothing: the target's own
  std::optional<Pipeline> pipeline = std::nullopt;         // nothing: by target and query length
  // Pins of the dual-wave pipeline; others have neither.
  bool stagger = true;
  bool raised_priority = true;
  // What a developer pins; `wavejit tune` tries it (docs/tune.md). 0, empty: what the family prefers.
  int tile_queries = 0;
  std::optional<int> chunk_waves = std::nullopt;    // that share a chunk; 1: none does
  bool shares_chunks = false;                       // where shared_chunks.h says so
  std::optional<bool> paired_tiles = std::nullopt;  // two query tiles a workgroup
  std::string ladder = {};                          // NOLINT(readability-redundant-member-init): for initializers
};

// Words that are not this family's are passed over.
Pins pins_of(const families::Toggles& toggles);

// Whether the word pins a kernel of this family, and what does.
bool is_pin(std::string_view word);
inline constexpr std::string_view accepted_pins =
    "tile_queries=<rows>, chunk_waves=<waves, 1: none share> or auto, tiles=paired or single, ladder=<name>";

}  // namespace wavejit::attention_forward
