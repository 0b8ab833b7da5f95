// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "families/call/obstacles.h"

#include <algorithm>
#include <array>
#include <utility>

namespace wavejit::families {
namespace {

// A word's changes that have a kernel by themselves.
struct Way {
  const ProblemWord* word = nullptr;
  std::vector<std::string_view> values;
  bool left_out = false;
  std::array<bool, 2> has_side{};
};

bool& side_of(Way& way, const Change& change) { return way.has_side[static_cast<std::size_t>(change.side)]; }

// Whether a sentence has room for it.
bool is_wanted(Way& way, const Change& change) {
  return change.value.empty() || (way.values.size() < most_values_told && !(change.fills_gap && side_of(way, change)));
}

void take(Way& way, const Change& change) {
  if (change.value.empty()) {
    way.left_out = true;
  } else {
    way.values.emplace_back(change.value);
    side_of(way, change) = true;
  }
}

bool has_kernel(const RefusedProblem& problem, std::uint64_t code) { return !problem.refusal(code); }

// "a", "a or b", "a, b or c"
template <typename Text>
std::string joined(const std::vector<Text>& parts, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i != 0) text += i + 1 == parts.size() ? " " + std::string(last) + " " : std::string(", ");
    text += parts[i];
  }
  return text;
}

std::vector<Way> single_ways(const RefusedProblem& problem) {
  std::vector<Way> ways;
  for (const ProblemWord& word : problem.words) {
    Way way = {.word = &word, .values = {}};
    for (const Change& change : word.changes)
      if (is_wanted(way, change) && has_kernel(problem, change.made(problem.code))) take(way, change);
    if (way.left_out || !way.values.empty()) ways.push_back(std::move(way));
  }
  return ways;
}

// The first two changes that have a kernel together, of those that fill no gaps; none: empty.
std::vector<Way> pair_of_ways(const RefusedProblem& problem) {
  for (std::size_t i = 0; i < problem.words.size(); ++i)
    for (const Change& first : problem.words[i].changes) {
      if (first.fills_gap) continue;
      const std::uint64_t code = first.made(problem.code);
      for (std::size_t j = i + 1; j < problem.words.size(); ++j)
        for (const Change& second : problem.words[j].changes)
          if (!second.fills_gap && has_kernel(problem, second.made(code))) {
            std::vector<Way> pair = {{.word = &problem.words[i], .values = {}},
                                     {.word = &problem.words[j], .values = {}}};
            take(pair[0], first);
            take(pair[1], second);
            return pair;
          }
    }
  return {};
}

// As many changes as it takes: words are left out one after the other until there is a kernel, and are taken back one by
// one where there is one with them. Of those that stay out, the nearest changes that do. None: empty.
std::vector<Way> several_ways(const RefusedProblem& problem) {
  struct Made {
    const ProblemWord* word;
    const ChangeOfCode* made;  // none: it was taken back
  };
  std::vector<Made> all;
  const auto is_enough = [&] {
    std::uint64_t code = problem.code;
    for (const Made& each : all)
      if (each.made != nullptr) code = (*each.made)(code);
    return has_kernel(problem, code);
  };
  for (const ProblemWord& word : problem.words) {
    all.push_back({.word = &word, .made = &word.without});
    if (is_enough()) break;
  }
  if (!is_enough()) return {};
  for (Made& each : all)
    if (const ChangeOfCode* const made = std::exchange(each.made, nullptr); !is_enough()) each.made = made;
  std::vector<Way> ways;
  for (Made& each : all) {
    if (each.made == nullptr) continue;
    const auto nearest = std::ranges::find_if(each.word->changes, [&](const Change& change) {
      each.made = &change.made;
      return is_enough();
    });
    if (nearest == each.word->changes.end()) return {};
    take(ways.emplace_back(Way{.word = each.word, .values = {}}), *nearest);
  }
  return ways;
}

// Words that are refused by themselves, and would not be without one of them: others are left out one by one, but never
// one whose change helps, because the problem without it is refused for another reason. `code` becomes that of the
// problem that has these words only.
std::vector<const ProblemWord*> refused_together(const RefusedProblem& problem, const std::vector<Way>& ways,
                                                 std::uint64_t& code) {
  std::vector<const ProblemWord*> needed;
  for (std::size_t i = problem.words.size(); i-- > 0;) {
    if (std::ranges::contains(ways, &problem.words[i], &Way::word)) {
      needed.push_back(&problem.words[i]);
      continue;
    }
    const std::uint64_t without = problem.words[i].without(code);
    if (has_kernel(problem, without)) {
      needed.push_back(&problem.words[i]);
    } else {
      code = without;
    }
  }
  return needed;
}

// Those that a change is told of come first where there are more than a sentence takes, and of them what may be left out.
std::vector<std::string_view> words_in_the_way(std::vector<Way>& ways, const std::vector<const ProblemWord*>& others) {
  if (ways.size() > most_words_in_the_way) {
    std::ranges::stable_partition(ways, &Way::left_out);
    ways.resize(most_words_in_the_way);
  }
  std::vector<const ProblemWord*> named;
  named.reserve(most_words_in_the_way);
  for (const Way& way : ways) named.push_back(way.word);
  for (std::size_t i = others.size(); i-- > 0 && named.size() < most_words_in_the_way;)
    if (!std::ranges::contains(named, others[i])) named.push_back(others[i]);
  std::ranges::sort(named);  // as the problem's words stand
  std::vector<std::string_view> said;
  said.reserve(named.size());
  for (const ProblemWord* word : named) said.emplace_back(word->said);
  return said;
}

// "use head dim 192/128, 128 or 64" without "use".
std::string values_of(const Way& way) {
  return std::string(way.word->of) + (way.word->of.empty() ? "" : " ") + joined(way.values, "or");
}

// "leave softcap or bias out, or use head dim 128, or a cache in 16 bits"; with `both`, of two changes that are made
// together: "leave softcap and bias out", "leave softcap out and use head dim 128".
std::string advice_of(const std::vector<Way>& ways, bool both) {
  std::vector<std::string_view> left_out;
  std::string uses;
  const std::string between = both ? " and " : ", or ";
  for (const Way& way : ways) {
    if (way.left_out) left_out.push_back(way.word->of);
    if (!way.values.empty()) uses += (uses.empty() ? "use " : between) + values_of(way);
  }
  if (left_out.empty()) return uses;
  const std::string out = "leave " + joined(left_out, both ? "and" : "or") + " out";
  return uses.empty() ? out : out + between + uses;
}

// A rule's sentence without what it lists as accepted. A bare word, "d96", says nothing more.
std::string reason_of(const std::string& rule) {
  const std::size_t list = rule.find("accepted");
  std::string reason = list == std::string::npos ? rule : rule.substr(0, rule.rfind("; ", list));
  return reason.contains(' ') ? reason : std::string();
}

}  // namespace

std::optional<std::string> tell_obstacles(const RefusedProblem& problem) {
  std::vector<Way> ways = single_ways(problem);
  const bool both = ways.empty();
  if (both) ways = pair_of_ways(problem);
  if (ways.empty()) ways = several_ways(problem);
  if (ways.empty()) return std::nullopt;
  std::uint64_t code = problem.code;
  const std::vector<const ProblemWord*> needed = refused_together(problem, ways, code);
  std::vector<Way> told = ways;
  const std::vector<std::string_view> said = words_in_the_way(told, needed);
  std::string together(said.front());
  if (said.size() > 1) together += " with " + joined(std::vector(said.begin() + 1, said.end()), "and");
  together += " has no kernel";
  const std::string reason = reason_of(problem.refusal(code).value_or(""));
  const std::string on_target = together + " on " + std::string(problem.target);
  const std::string advice = "; " + advice_of(both ? ways : told, both);
  if (reason.empty() || reason == together) return on_target + advice;
  // The rule says it, too, and where else it is so.
  if (reason.starts_with(together)) return reason + advice;
  return on_target + advice + std::string(before_reason) + reason;
}

Failure with_obstacles(const RefusedProblem& problem, Failure failure) {
  if (failure.status != WAVEJIT_UNSUPPORTED) return failure;
  if (auto told = tell_obstacles(problem)) failure.detail = *std::move(told);
  return failure;
}

}  // namespace wavejit::families
