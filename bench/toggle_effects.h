// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What each toggle of our kernels changes, as the clock sees it, beside what was published for the like of it.
#pragma once

#include <string>

namespace wavejit::bench {

// Two sections of docs/timing-model.md; empty when something could not be run (said on stderr).
std::string toggle_effects();

}  // namespace wavejit::bench
