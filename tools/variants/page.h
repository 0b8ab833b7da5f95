// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The variants of a family as text for a terminal, and as the page docs/variants.md.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tools/variants/variants.h"

namespace wavejit::tools {

// `name`: one variant; empty: all. A failure names those that there are. `targets`: whose routes are told.
Result<std::string> variants_text(const Variants& variants, std::span<const Variant> all, const std::string& name,
                                  const std::vector<std::string>& targets);

// The whole page, with matrices of every target.
std::string variants_page(const Variants& variants, std::span<const Variant> all);

}  // namespace wavejit::tools
