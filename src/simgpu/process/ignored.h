// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Findings that the user does not want to see (WAVEJIT_SIM_IGNORE): of a check, or of a check in some kernels. The
// check still runs, since other checks depend on what it follows; it reports nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::simgpu {

struct Ignored {
  std::uint32_t check = 0;
  std::string kernels;  // a shell's pattern, for the symbol or for the name as in the source
};

// "bounds:Cijk_*,hazards": a check, and after a colon the kernels in which it says nothing; without one, all of them.
// Commas stand between; in a pattern '?' takes the place of one. Nothing for words that are no check.
std::optional<std::vector<Ignored>> ignored_findings(std::string_view list);

// The checks that say nothing of this kernel.
std::uint32_t silent_checks(std::span<const Ignored> ignored, const std::string& kernel);

}  // namespace wavejit::simgpu
