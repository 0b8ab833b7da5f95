// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variants of a family as text for a terminal, and as the page docs/variants.md.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/variants/variants.h"

namespace wavejit::tools {

// `name`: one variant; empty: all. A failure names those that there are. `targets`: whose routes are told.
Result<std::string> variants_text(const Variants& variants, const std::string& name,
                                  const std::vector<std::string>& targets);

// The whole page, with matrices of every target.
Result<std::string> variants_page(const Variants& variants);

// The answer to a chosen call: its descriptor, each target's route, code, and how to prepare it.
std::string chosen_text(const ChosenCall& chosen);

}  // namespace wavejit::tools
