// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Predicted cycles in pages of prose. A table behind a line "<!-- predicted on gfx950 -->" belongs to this program:
//
//   <!-- predicted on gfx950 -->
//   | cycles | `pipeline=generic` | by default |
//   |---|---|---|
//   | `attention_forward bf16 b1 q1 k128 h64/8 d128` | 11,576 | 9,711 |
//
// A row is a call. The words that a column's head has between ` and ` are added to the call's; pipeline= is the engine's option.
//
//   wavejit_predicted_figures <page>…                         writes the cells anew
//   wavejit_predicted_figures --check <page>… [--only <word>…]  exit 1 where a cell differs; only rows that have all words
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "predicted_launches.h"
#include "targets/targets.h"
#include "tools/worker_processes.h"

namespace {

using namespace wavejit;

constexpr std::string_view mark = "<!-- predicted on ";

struct Page {
  std::string file;
  std::vector<std::string> lines;
};

// A cell that a prediction fills.
struct Figure {
  Page* page;
  std::size_t line;
  std::size_t column;
  bench::LaunchTask task;
};

// "| a | b |" → "a", "b"
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream parts(line.substr(std::min<std::size_t>(line.find('|') + 1, line.size())));
  for (std::string cell; std::getline(parts, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    cells.push_back(first == std::string::npos ? "" : cell.substr(first, cell.find_last_not_of(' ') - first + 1));
  }
  return cells;
}

// What stands between the first two backticks; nothing where there are none.
std::string quoted(const std::string& cell) {
  const auto first = cell.find('`');
  if (first == std::string::npos) return "";
  return cell.substr(first + 1, cell.find('`', first + 1) - first - 1);
}

bench::LaunchTask task_of(const targets::Target& target, const std::string& row, const std::string& head) {
  bench::LaunchTask task{.target = &target, .descriptor = quoted(row)};
  constexpr std::string_view option = "pipeline=";
  std::istringstream words(quoted(head));
  for (std::string word; words >> word;) {
    if (word.starts_with(option)) {
      task.pipeline = word.substr(option.size());
    } else {
      task.descriptor += ' ' + word;
    }
  }
  return task;
}

std::vector<Figure> figures_of(Page& page) {
  std::vector<Figure> figures;
  for (std::size_t i = 0; i + 2 < page.lines.size(); ++i) {
    if (!page.lines[i].starts_with(mark)) continue;
    const std::string id = page.lines[i].substr(mark.size(), page.lines[i].find(' ', mark.size()) - mark.size());
    const targets::Target* const target = targets::find_target(id);
    const std::vector<std::string> heads = cells_of(page.lines[i + 1]);
    for (std::size_t row = i + 3; target != nullptr && row < page.lines.size() && page.lines[row].starts_with('|');
         ++row) {
      const std::vector<std::string> cells = cells_of(page.lines[row]);
      for (std::size_t column = 1; column < std::min(cells.size(), heads.size()); ++column)
        figures.push_back({&page, row, column, task_of(*target, cells.front(), heads[column])});
    }
  }
  return figures;
}

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3;) text.insert(place -= 3, ",");
  return text;
}

bool enter(const Figure& figure, std::uint64_t cycles) {
  std::string& line = figure.page->lines[figure.line];
  std::vector<std::string> cells = cells_of(line);
  const std::string text = with_commas(cycles);
  if (cells[figure.column] == text) return false;
  fmt::print(stderr, "{}:{}: {} {}: {} stands there, predicted is {}\n", figure.page->file, figure.line + 1,
             figure.task.descriptor, figure.task.pipeline, cells[figure.column], text);
  cells[figure.column] = text;
  line = "|";
  for (const std::string& cell : cells) line += ' ' + cell + " |";
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  bool check = false;
  bool only = false;
  std::vector<std::string> words;
  std::vector<Page> pages;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--check") {
      check = true;
    } else if (argument == "--only") {
      only = true;
    } else if (only) {
      words.emplace_back(argument);
    } else {
      pages.push_back({.file = std::string(argument), .lines = {}});
    }
  }
  std::vector<Figure> figures;
  for (Page& page : pages) {
    std::ifstream file(page.file);
    for (std::string line; std::getline(file, line);) page.lines.push_back(line);
    std::ranges::copy(figures_of(page), std::back_inserter(figures));
  }
  std::erase_if(figures, [&](const Figure& figure) {
    return !std::ranges::all_of(
        words, [&](const std::string& word) { return (figure.task.descriptor + ' ').contains(' ' + word + ' '); });
  });
  if (figures.empty()) {
    fmt::print(stderr, "no table of these pages has a row to predict; one stands behind a line \"{}<target> -->\"\n",
               mark);
    return 2;
  }
  std::vector<bench::LaunchTask> tasks;
  for (const Figure& figure : figures) tasks.push_back(figure.task);
  // Each call is its process's first, and has the cycles that it has alone.
  const auto predictions = bench::predict_launches(tasks, tools::WorkerLife::one_task);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  int changed = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) changed += enter(figures[i], (*predictions)[i].cycles) ? 1 : 0;
  fmt::print(stderr, "{} of {} figures differ\n", changed, figures.size());
  if (check) return changed == 0 ? 0 : 1;
  for (const Page& page : pages) {
    std::ofstream file(page.file);
    for (const std::string& line : page.lines) file << line << '\n';
  }
  return 0;
}
