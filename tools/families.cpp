// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/families.h"

#include <fmt/format.h>

#include <algorithm>

namespace wavejit::tools {

const Family* find_family(std::string_view name) {
  const auto families = all_families();
  const auto found = std::ranges::find(families, name, &Family::name);
  return found == families.end() ? nullptr : *found;
}

const Family* family_of(std::string_view descriptor) {
  const std::size_t begin = descriptor.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return nullptr;
  descriptor.remove_prefix(begin);
  return find_family(descriptor.substr(0, descriptor.find_first_of(" \t")));
}

std::string family_names() {
  std::string names;
  for (const Family* family : all_families()) names += fmt::format("{}{}", names.empty() ? "" : ", ", family->name());
  return names;
}

Result<std::unique_ptr<Problem>> parse_problem(const std::string& descriptor) {
  if (const Family* family = family_of(descriptor)) return family->parse(descriptor);
  const auto ignore = [](void*, const wavejit_problem*) {};
  if (auto said = checked(wavejit_problem_parse(descriptor.c_str(), ignore, nullptr)); !said)
    return std::unexpected(said.error());
  return failed(ExitCode::usage,
                fmt::format("'{}': this program has no such family; {} are accepted", descriptor, family_names()));
}

}  // namespace wavejit::tools
