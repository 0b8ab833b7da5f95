// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "redundant.h"

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

// "<kernel> <count> <mutation>: <reason>", # begins a comment. "2?": up to two.
struct Redundant {
  std::size_t count = 0;
  bool or_fewer = false;
  std::string reason;
};
std::map<std::string, std::map<std::string, Redundant>> read_list() {
  std::map<std::string, std::map<std::string, Redundant>> list;
  std::ifstream file(WAVEJIT_REDUNDANT_LIST);
  EXPECT_TRUE(file) << WAVEJIT_REDUNDANT_LIST;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::istringstream words(line);
    std::string kernel;
    Redundant entry;
    std::string rest;
    words >> kernel >> entry.count;
    if (words.peek() == '?') entry.or_fewer = words.get() == '?';
    std::getline(words, rest);
    const std::size_t colon = rest.find(": ");
    EXPECT_TRUE(entry.count != 0 && colon != std::string::npos) << "not an entry: " << line;
    if (colon == std::string::npos) continue;
    entry.reason = rest.substr(colon + 2);
    EXPECT_TRUE(list[kernel].emplace(rest.substr(1, colon - 1), entry).second) << "twice: " << line;
  }
  return list;
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
  std::map<std::string, Redundant> listed = read_list()[kernel.name];
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
    EXPECT_TRUE(listed.contains(mutation.name()))
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
    if (prints) std::cout << kernel.name << ' ' << count << ' ' << name << ": \n";
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
