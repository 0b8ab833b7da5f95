// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/process/ignored.h"

#include <fnmatch.h>

#include <algorithm>

#include "simgpu/process/check.h"
#include "simgpu/process/symbol_names.h"

namespace wavejit::simgpu {

std::optional<std::vector<Ignored>> ignored_findings(std::string_view list) {
  std::vector<Ignored> ignored;
  while (true) {
    const std::size_t comma = list.find(',');
    const std::string_view one = list.substr(0, comma);
    const std::size_t colon = one.find(':');
    const std::string_view name = one.substr(0, colon);
    const std::string_view kernels = colon == std::string_view::npos ? "*" : one.substr(colon + 1);
    const auto* found = std::ranges::find(named_checks, name, &NamedCheck::name);
    if ((found == named_checks.end() && name != "all") || kernels.empty()) return std::nullopt;
    const std::uint32_t check = name == "all" ? all_checks : static_cast<std::uint32_t>(found->check);
    ignored.push_back({.check = check, .kernels = std::string(kernels)});
    if (comma == std::string_view::npos) return ignored;
    list.remove_prefix(comma + 1);
  }
}

std::uint32_t silent_checks(std::span<const Ignored> ignored, const std::string& kernel) {
  std::uint32_t checks = 0;
  for (const Ignored& one : ignored) {
    const auto is_named = [&](const std::string& name) { return ::fnmatch(one.kernels.c_str(), name.c_str(), 0) == 0; };
    if (is_named(kernel) || is_named(demangled(kernel))) checks |= one.check;
  }
  return checks;
}

}  // namespace wavejit::simgpu
