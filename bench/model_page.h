// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sections of docs/timing-model.md that set predictions beside what was published.
#pragma once

#include <string>

namespace wavejit::bench {

std::string consistency();
// The frozen anchors by kind, with what the clock said before, and the errors to quote.
std::string judged_tables();
// Triton's and AITER's attention, timed from outside.
std::string published_kernels();
std::string power_section();
// The largest differences that nobody has explained, before and now.
std::string unexplained();

}  // namespace wavejit::bench
