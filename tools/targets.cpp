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

// "gfx942 (MI300X): attention_forward, …" are lines of a target; others have no target in front.
std::vector<std::string> targets_that_run() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> targets;
    const auto take = [](void* context, const char* line) {
      std::vector<std::string>& named = *static_cast<std::vector<std::string>*>(context);
      const std::string text = line;
      const std::size_t product = text.find(" (");
      if (product == std::string::npos || product != text.find(' ')) return;
      const std::string target = text.substr(0, product);
      if (!std::ranges::contains(named, target)) named.push_back(target);
    };
    static_cast<void>(wavejit_supported(take, &targets));  // fails without memory only
    return targets;
  }();
  return all;
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
