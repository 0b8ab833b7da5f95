// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "journal.h"

#include <filesystem>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace wavejit::tests {

// A line: digest of the code, how many problems, their digests, "=", the outcome.
Journal::Journal(const std::string& folder, const std::string& kernel) {
  if (folder.empty()) return;
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/" + kernel;
  std::ifstream before(path);
  std::size_t whole = 0;
  for (std::string line; std::getline(before, line);) {
    if (before.eof()) break;  // without its end
    whole += line.size() + 1;
    std::istringstream words(line);
    std::uint64_t code = 0;
    std::size_t problems = 0;
    Entry entry;
    words >> std::hex >> code >> std::dec >> problems >> std::hex;
    for (std::uint64_t problem = 0; entry.problems.size() < problems && words >> problem;)
      entry.problems.push_back(problem);
    if (std::string equals; !(words >> equals) || equals != "=")
      throw std::runtime_error(path + ": not a journal of mutations: " + line);
    words.get();
    std::getline(words, entry.outcome);
    entries_[code] = std::move(entry);
  }
  before.close();
  if (std::filesystem::exists(path)) std::filesystem::resize_file(path, whole);
  file_.open(path, std::ios::app);
  if (!file_) throw std::runtime_error("cannot write " + path);
}

const Journal::Entry* Journal::find(std::uint64_t code) const {
  const auto found = entries_.find(code);
  return found == entries_.end() ? nullptr : &found->second;
}

void Journal::add(std::uint64_t code, Entry entry) {
  if (file_.is_open()) {
    file_ << std::hex << code << ' ' << std::dec << entry.problems.size() << std::hex;
    for (const std::uint64_t problem : entry.problems) file_ << ' ' << problem;
    file_ << " = " << entry.outcome << '\n' << std::flush;
  }
  entries_[code] = std::move(entry);
}

}  // namespace wavejit::tests
