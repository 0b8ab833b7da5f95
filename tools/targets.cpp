// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/targets.h"

#include <algorithm>

#include "wavejit/wavejit.h"

namespace wavejit::tools {

std::vector<std::string> known_targets() {
  std::vector<std::string> targets;
  const auto take = [](void* context, const char* line) {
    static_cast<std::vector<std::string>*>(context)->emplace_back(line);
  };
  static_cast<void>(wavejit_targets(take, &targets));  // fails without memory only
  return targets;
}

std::string joined(const std::vector<std::string>& words, std::string_view between, std::string_view before) {
  std::string text;
  for (const std::string& word : words) {
    if (!text.empty()) text += between;
    text += before;
    text += word;
  }
  return text;
}

std::vector<std::string> separated(const std::string& given) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= given.size();) {
    const std::size_t comma = std::min(given.find(',', at), given.size());
    words.push_back(given.substr(at, comma - at));
    at = comma + 1;
  }
  return words;
}

ExampleTargets example_targets() {
  const std::vector<std::string> targets = known_targets();
  if (targets.empty()) return {.first = "<target>", .last = "<target>"};
  return {.first = targets.front(), .last = targets.back()};
}

}  // namespace wavejit::tools
