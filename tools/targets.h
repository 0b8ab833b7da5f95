// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The targets that the library makes kernels for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace wavejit::tools {

// Those for which all families have kernels, "gfx942", "gfx950", …: from the library's own table.
std::vector<std::string> known_targets();
// Those, and others that run kernels of some families: what is accepted as a target.
std::vector<std::string> targets_that_run();
// Each with `before` in front, `between` them: joined(known_targets(), ", ", "sim:").
std::string joined(const std::vector<std::string>& words, std::string_view between, std::string_view before = "");
// "gfx942,gfx950" as its words.
std::vector<std::string> separated(const std::string& given);

// The first and the last of them: what the examples of a help name.
struct ExampleTargets {
  std::string first;
  std::string last;
};
ExampleTargets example_targets();

}  // namespace wavejit::tools
