// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The parts of rules.h: rules of one idea each, and what several of them ask.
#pragma once

#include <span>
#include <string>

#include "templates/attention_forward/kernel/parameters.h"
#include "templates/attention_forward/kernel/rules.h"

namespace wavejit::attention_forward {

std::span<const SpecRule> rules_of_types();
std::span<const SpecRule> rules_of_walks();
std::span<const SpecRule> rules_of_lists();

// Those that the generic pipeline, which has most, does on a target.
std::string known_head_dims(const targets::Target& target);

inline std::span<const int> tiles_of(const AskedSpec& asked) { return tile_queries(asked.target, asked.spec.pipeline); }

inline bool overlaps(const AskedSpec& asked) { return asked.spec.pipeline != Pipeline::generic; }

}  // namespace wavejit::attention_forward
