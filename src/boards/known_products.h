// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once
#include <string>

namespace wavejit::boards {

// The targets of all_products(), "gfx942, gfx950, …": for messages that say what would be accepted.
std::string known_products();

}  // namespace wavejit::boards
