// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>
#include <array>
#include <set>
#include <string>

#include "families/call/family.h"
#include "families/call/words.h"

// One line a family, from WAVEJIT_FAMILIES in CMakeLists.txt.
#define WAVEJIT_FAMILY(name)        \
  namespace wavejit::name {         \
  const families::Family& family(); \
  }
#include "registered_families.inc"
#undef WAVEJIT_FAMILY

namespace wavejit::families {

std::span<const Family* const> registered() {
#define WAVEJIT_FAMILY(name) &name::family(),
  static const std::array all = {
#include "registered_families.inc"
  };
#undef WAVEJIT_FAMILY
  return all;
}

namespace {

Result<std::unique_ptr<DescribedProblem>> parse_line(std::string_view descriptor) {
  if (descriptor.size() > max_descriptor_bytes) {
    return fail(WAVEJIT_INVALID_ARGUMENT, "descriptor: " + std::to_string(descriptor.size()) +
                                              " bytes; accepted: up to " + std::to_string(max_descriptor_bytes));
  }
  const std::vector<Word> words = words_of(descriptor);
  std::string accepted;
  for (const Family* family : registered()) {
    if (!words.empty() && words.front().text == family->name()) return family->parse(descriptor);
    accepted += (accepted.empty() ? "" : ", ") + std::string(family->name());
  }
  return fail(WAVEJIT_INVALID_ARGUMENT, (words.empty() ? std::string("descriptor: empty") : place(words.front())) +
                                            "; accepted first word: " + accepted);
}

}  // namespace

Result<std::unique_ptr<DescribedProblem>> parse_problem(std::string_view descriptor) {
  auto problem = parse_line(descriptor);
  if (problem && (*problem)->has_range()) {
    return fail(WAVEJIT_INVALID_ARGUMENT,
                "descriptor: a range of lengths; accepted here: single lengths (ranges are for wavejit_prepare "
                "and wavejit prebuild)");
  }
  return problem;
}

Result<void> check_pins(std::string_view pins) {
  std::string accepted;
  for (const Family* family : registered()) {
    const std::string_view own = family->accepted_pins();
    if (!own.empty() && !accepted.contains(own)) accepted += (accepted.empty() ? "" : ", ") + std::string(own);
  }
  std::set<std::string_view> names;
  Result<void> good;
  for_each_word(pins, [&](std::string_view word) {
    const bool known = std::ranges::any_of(registered(), [&](const Family* one) { return one->takes_pin(word); });
    if (good && (!known || !names.insert(name_and_value(word).first).second))
      good = fail(WAVEJIT_INVALID_ARGUMENT, "'" + std::string(word) + "'; accepted: " + accepted + ", each once");
  });
  return good;
}

Result<std::vector<std::unique_ptr<DescribedProblem>>> parse_problems(std::string_view descriptor) {
  auto problem = parse_line(descriptor);
  if (!problem) return std::unexpected(std::move(problem.error()));
  std::vector<std::unique_ptr<DescribedProblem>> each = (*problem)->of_single_lengths();
  if (each.empty()) each.push_back(*std::move(problem));
  return each;
}

}  // namespace wavejit::families
