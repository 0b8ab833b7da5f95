// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "redundant.h"

#include <fnmatch.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

namespace wavejit::tests {
namespace {

constexpr std::size_t sample = 8;  // of a kernel

// "<kernel> <count> <mutation>", # begins a comment. "2?": up to two.
struct Redundant {
  std::size_t count = 0;
  bool or_fewer = false;
};
std::map<std::string, Redundant> read_counts(const std::string& kernel) {
  std::map<std::string, Redundant> list;
  std::ifstream file(WAVEJIT_MUTATION_LISTS "/redundant_counts.txt");
  EXPECT_TRUE(file) << "redundant_counts.txt";
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string name;
    Redundant entry;
    words >> name >> entry.count;
    if (name != kernel) continue;
    if (words.peek() == '?') entry.or_fewer = words.get() == '?';
    words >> std::ws;
    std::getline(words, line);
    EXPECT_TRUE(entry.count != 0 && list.emplace(line, entry).second) << kernel << ", not an entry or twice: " << line;
  }
  return list;
}

// Patterns of "<kernel> <mutation>" that have a reason: "*latent* nop_removed s_nop 0 | v_*: why".
std::vector<std::string> read_patterns(const char* path) {
  std::vector<std::string> patterns;
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::size_t colon = line.find(": ");
    EXPECT_TRUE(colon != std::string::npos && colon + 2 < line.size()) << "no reason: " << line;
    patterns.push_back(line.substr(0, colon));
  }
  return patterns;
}

const std::vector<std::string>& patterns_with_reasons() {
  static const std::vector<std::string> all = [] {
    constexpr std::size_t most_not_run = 13;  // shrinks with each problem that runs what none ran
    std::vector<std::string> patterns = read_patterns(WAVEJIT_MUTATION_LISTS "/redundant.txt");
    const std::vector<std::string> not_run = read_patterns(WAVEJIT_MUTATION_LISTS "/not_run.txt");
    EXPECT_LE(not_run.size(), most_not_run) << "not_run.txt only shrinks";
    patterns.insert(patterns.end(), not_run.begin(), not_run.end());
    return patterns;
  }();
  return all;
}

bool has_reason(const std::string& kernel, const std::string& mutation) {
  const std::string name = kernel + " " + mutation;
  return std::ranges::any_of(patterns_with_reasons(),
                             [&](const std::string& each) { return fnmatch(each.c_str(), name.c_str(), 0) == 0; });
}

}  // namespace

Extent& extent() {
  static Extent one;
  return one;
}

int read_extent(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word == "--all") {
      extent().all_of_them = true;
    } else if (word == "--print") {
      extent().prints = true;
    } else if (constexpr std::string_view journal = "--journal="; word.starts_with(journal)) {
      extent().journal = word.substr(journal.size());
    } else if (constexpr std::string_view only = "--only="; word.starts_with(only)) {
      extent().only = word.substr(only.size());
    } else {
      std::cerr << "unknown: " << word << "; --all, --print, --journal=<folder> and --only=<words> are known\n";
      return 2;
    }
  }
  return 0;
}

void expect_noticed(const Kernel& kernel) {
  const bool all_of_them = extent().all_of_them;
  const bool prints = extent().prints;
  ASSERT_FALSE(kernel.mutations.empty());
  std::map<std::string, Redundant> listed = read_counts(kernel.name);
  std::set<std::string> names;
  for (const auto& [name, entry] : listed) names.insert(name);
  const auto is_left_out = [&](const std::string& name) {
    return extent().only == "listed" ? !names.contains(name) : !name.contains(extent().only);
  };
  std::erase_if(listed, [&](const auto& entry) { return is_left_out(entry.first); });
  std::map<std::string, std::size_t> unnoticed;
  std::map<std::string, std::map<std::string, int>> counts;  // by change: by what noticed it
  const std::size_t step = all_of_them ? 1 : std::max<std::size_t>(kernel.mutations.size() / sample, 1);
  for (std::size_t i = 0; i < kernel.mutations.size(); i += step) {
    const Mutation& mutation = kernel.mutations[i];
    if (is_left_out(mutation.name())) continue;
    const bool runs = kernel.runs(mutation.offset);
    const Outcome outcome =
        runs ? kernel.run(mutation.code_object) : Outcome{.checks = {}, .first = {}, .differs = false};
    ++counts[std::string(to_text(mutation.change))]
            [!outcome.checks.empty() ? "reported" : (outcome.differs ? "another result" : "unnoticed")];
    if (all_of_them && prints && i % 50 == 49)
      std::cerr << "# " << kernel.name << ": " << i + 1 << " of " << kernel.mutations.size() << " changes\n";
    if (outcome.caught()) continue;
    ++unnoticed[mutation.name()];
    if (prints)
      std::cout << "# " << kernel.name << ' ' << std::hex << mutation.offset << std::dec << ' ' << mutation.name()
                << "   " << mutation.instruction << (runs ? "" : " (never runs)") << '\n';
    EXPECT_TRUE(has_reason(kernel.name, mutation.name()))
        << kernel.name << ", offset " << mutation.offset << ": " << mutation.name() << " (" << mutation.instruction
        << ") changes nothing that can be seen" << (runs ? "" : ": no problem here runs it");
  }
  for (const auto& [change, by] : counts) {
    std::cout << kernel.name << ' ' << change << ':';
    for (const auto& [who, count] : by) std::cout << ' ' << count << ' ' << who;
    std::cout << '\n';
  }
  if (!all_of_them) return;
  for (const auto& [name, count] : unnoticed) {
    if (prints) std::cout << kernel.name << ' ' << count << ' ' << name << '\n';
    EXPECT_TRUE(listed.contains(name)) << kernel.name << ": redundant_counts.txt does not have " << name;
    if (!listed.contains(name)) continue;
    const Redundant& entry = listed.at(name);
    EXPECT_TRUE(count == entry.count || (entry.or_fewer && count < entry.count))
        << kernel.name << ": " << count << " and not " << entry.count << " as the list has it: " << name;
  }
  for (const auto& [name, entry] : listed)
    EXPECT_TRUE(entry.or_fewer || unnoticed.contains(name))
        << kernel.name << ": " << name << " is on the list, and is noticed now";
}

}  // namespace wavejit::tests
