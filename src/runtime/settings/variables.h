// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Names of environment variables: which are wavejit's, and what somebody meant who wrote one that is none.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::runtime {

// Those of `names` that begin with "WAVEJIT_" and that nobody here reads: neither `of_runtime`, nor the simulated GPU,
// nor the tree's own scripts and tests.
std::vector<std::string> strange_variables(const std::vector<std::string>& names,
                                           std::span<const std::string_view> of_runtime);

// "WAVEJIT_PIPLINE is no variable of wavejit and ignored; the nearest is WAVEJIT_PIPELINE"
std::string warning_of(std::string_view stranger, std::span<const std::string_view> of_runtime);

}  // namespace wavejit::runtime
