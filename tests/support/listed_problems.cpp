// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/listed_problems.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "support/part.h"

namespace wavejit::tests {
namespace {

struct Target {
  std::string name;
  std::regex lines;  // those that it has kernels for
};

struct List {
  std::string lines;  // a file of the tree
  std::vector<Target> targets;
  std::vector<ListedProblem> chosen;
};

ListedProblem problem_of(const std::string& target, const std::string& line) {
  return {.target = target, .words = line.substr(std::min(line.size(), line.find(' ') + 1))};
}

List read(const std::string& name) {
  List list;
  std::ifstream file(std::string(WAVEJIT_TREE) + "/tests/chosen/" + name + ".txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    std::string second;
    std::string rest;
    words >> first >> second;
    std::getline(words >> std::ws, rest);
    if (first == "lines") list.lines = second;
    if (first == "on") {
      constexpr std::string_view where = "where ";
      list.targets.push_back({second, std::regex(rest.starts_with(where) ? rest.substr(where.size()) : "")});
    }
    if (!first.empty() && std::ranges::all_of(first, [](unsigned char letter) { return std::isdigit(letter) != 0; }))
      list.chosen.push_back(problem_of(second, rest));
  }
  if (list.lines.empty() || list.targets.empty())
    throw std::runtime_error("tests/chosen/" + name + ".txt names no lines, or no target");
  return list;
}

}  // namespace

std::vector<ListedProblem> listed_problems(const std::string& name) {
  const List list = read(name);
  if (sampled()) return list.chosen;
  std::vector<ListedProblem> all;
  for (const Target& target : list.targets) {
    std::ifstream file(std::string(WAVEJIT_TREE) + "/" + list.lines);
    for (std::string line; std::getline(file, line);) {
      line = line.substr(0, line.find('#'));
      line.erase(line.find_last_not_of(' ') + 1);
      if (!line.empty() && std::regex_search(line, target.lines)) all.push_back(problem_of(target.name, line));
    }
  }
  return all;
}

std::string name_of_row(const ::testing::TestParamInfo<ListedProblem>& info) {
  std::string name = info.param.target + "_" + info.param.words;
  std::ranges::replace_if(name, [](unsigned char letter) { return std::isalnum(letter) == 0; }, '_');
  return name;
}

}  // namespace wavejit::tests
