// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/refused_lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace wavejit::tools {

// "no kernel for <the line's words> on gfx942: head dim 256 needs …" without the line's own words; another sentence,
// "head dim 256 with softcap has no kernel on gfx942; …", as it stands.
std::string common_part(const std::string& why, const std::string& target) {
  const std::string words = fmt::format(" on {}: ", target);
  const std::size_t at = why.starts_with("no kernel for ") && !target.empty() ? why.find(words) : std::string::npos;
  return at == std::string::npos ? why : why.substr(at + words.size());
}

namespace {

// "head dim 256 with softcap has no kernel on gfx942; …", "a list of keys has no kernel where …, as on gfx1201; …"
bool says_target(const std::string& reason, const std::string& target) {
  const std::string what = reason.substr(0, reason.find(';'));
  return what.contains(" has no kernel ") && what.ends_with(" on " + target);
}

}  // namespace

std::string ranges_text(const std::string& one, const std::vector<std::size_t>& numbers) {
  std::string text = numbers.size() == 1 ? one + " " : one + "s ";
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    text += i == 0 ? "" : ", ";
    text += last - i < 2 ? std::to_string(numbers[i]) : fmt::format("{} to {}", numbers[i], numbers[last]);
    i = last - i < 2 ? i + 1 : last + 1;
  }
  return text;
}

void RefusedLines::add(const Place& place, const std::string& target, const std::string& why) {
  const std::string reason = common_part(why, target);
  const auto same = [&](const Group& group) {
    return group.list == place.list && group.target == target && group.reason == reason;
  };
  const auto found = std::ranges::find_if(groups_, same);
  if (found != groups_.end()) {
    found->numbers.push_back(place.number);
    return;
  }
  groups_.push_back({.list = place.list, .target = target, .reason = reason, .numbers = {place.number}, .whole = why});
}

std::vector<std::string> RefusedLines::texts() const {
  std::vector<std::string> texts;
  for (const Group& group : groups_) {
    std::string text = group.list.empty() ? "" : group.list + ": ";
    text += ranges_text(group.list.empty() ? "descriptor" : "line", group.numbers) + ": ";
    if (!group.target.empty() && !says_target(group.reason, group.target))
      text += fmt::format("no kernel for {}: ", group.target);
    texts.push_back(text + (group.numbers.size() == 1 ? group.whole : group.reason));
  }
  return texts;
}

}  // namespace wavejit::tools
