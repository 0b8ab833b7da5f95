// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/families.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "tools/canonical_line.h"
#include "vocabulary/nearest_word.h"

namespace wavejit::tools {

const Family* find_family(std::string_view name) {
  const auto families = all_families();
  const auto found = std::ranges::find(families, name, &Family::name);
  return found == families.end() ? nullptr : *found;
}

namespace {

std::string_view first_word(std::string_view descriptor) {
  descriptor.remove_prefix(std::min(descriptor.find_first_not_of(" \t"), descriptor.size()));
  return descriptor.substr(0, descriptor.find_first_of(" \t"));
}

}  // namespace

const Family* family_of(std::string_view descriptor) { return find_family(first_word(descriptor)); }

std::string family_names() {
  std::string names;
  for (const Family* family : all_families()) names += fmt::format("{}{}", names.empty() ? "" : ", ", family->name());
  return names;
}

std::string meant_family(std::string_view descriptor) {
  if (family_of(descriptor) != nullptr) return {};
  std::vector<std::string> names;
  for (const Family* family : all_families()) names.emplace_back(family->name());
  return vocabulary::did_you_mean(first_word(descriptor), names);
}

Result<std::unique_ptr<Problem>> parse_problem(const std::string& descriptor) {
  if (const Family* family = family_of(descriptor)) return family->parse(descriptor);
  if (const auto said = canonical_line(descriptor); !said)
    return failed(said.error().code, said.error().what + meant_family(descriptor));
  return failed(ExitCode::usage,
                fmt::format("'{}': this program has no such family; {} are accepted", descriptor, family_names()));
}

}  // namespace wavejit::tools
