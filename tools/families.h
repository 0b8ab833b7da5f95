// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The families that this program was built with (WAVEJIT_FAMILIES in the project's CMakeLists.txt).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tools/family.h"

namespace wavejit::tools {

// In the order of their registration; at least one.
std::span<const Family* const> all_families();
// Null for a name that is none.
const Family* find_family(std::string_view name);
// The family that a descriptor's first word names; null: none.
const Family* family_of(std::string_view descriptor);
// "softmax, row_sum"
std::string family_names();
// " (did you mean 'softmax'?)" for a descriptor whose first word is near one of them; nothing for the others.
std::string meant_family(std::string_view descriptor);

// A descriptor of any family. What no family is named by is told in the library's own words.
Result<std::unique_ptr<Problem>> parse_problem(const std::string& descriptor);

}  // namespace wavejit::tools
