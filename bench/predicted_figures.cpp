// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Predicted cycles in pages of prose. A table behind a line "<!-- predicted on gfx950 -->" belongs to this program:
//
//   <!-- predicted on gfx950 -->
//   | cycles | `pipeline=generic` | by default | `gfx942` |
//   |---|---|---|---|
//   | `attention_forward bf16 b1 q1 k128 h64/8 d128` | 11,576 | 9,711 | 9,514 |
//
// A row is a call. The words that a column's head has between ` and ` are added to the call's, but for a target's name, which
// stands for the table's own in this column, pipeline=, which is the engine's option with commas for its spaces
// (pipeline=auto,tile_queries=64), and launch=, which asks for the launches of a call whose kernels have that name. A number is a figure of this program; any other cell ("3.2 MB", "–", an empty one)
// is the writer's. A new figure begins as 0.
//
//   wavejit_predicted_figures <page>…                            writes the cells anew
//   wavejit_predicted_figures --check <page>… [--only <word>…]…  exit 1 where a cell differs; only rows that have all words
//                                                                behind one of the --only
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
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
  bool changed = false;
};

// A cell that a prediction fills.
struct Figure {
  Page* page;
  std::size_t line;
  std::size_t column;
  bench::LaunchTask task;
  std::string launch;  // the launches of these kernels; empty: the whole call
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

bool is_figure(const std::string& cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789,") == std::string::npos;
}

// What a column's head says: option is "pipeline=", word "pipeline=generic".
bool takes(std::string_view option, const std::string& word, std::string& value) {
  if (!word.starts_with(option)) return false;
  value = word.substr(option.size());
  return true;
}

Figure figure_of(const targets::Target& target, const std::string& row, const std::string& head) {
  Figure figure{
      .page = nullptr, .line = 0, .column = 0, .task = {.target = &target, .descriptor = quoted(row)}, .launch = {}};
  std::istringstream words(quoted(head));
  for (std::string word; words >> word;) {
    if (takes("pipeline=", word, figure.task.pipeline)) std::ranges::replace(figure.task.pipeline, ',', ' ');
    if (word.starts_with("pipeline=") || takes("launch=", word, figure.launch)) continue;
    if (const targets::Target* const other = targets::find_target(word); other != nullptr) {
      figure.task.target = other;
    } else {
      figure.task.descriptor += ' ' + word;
    }
  }
  return figure;
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
      for (std::size_t column = 1; column < std::min(cells.size(), heads.size()); ++column) {
        if (!is_figure(cells[column])) continue;
        Figure figure = figure_of(*target, cells.front(), heads[column]);
        figure.page = &page;
        figure.line = row;
        figure.column = column;
        figures.push_back(figure);
      }
    }
  }
  return figures;
}

std::string with_commas(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3;) text.insert(place -= 3, ",");
  return text;
}

std::uint64_t cycles_of(const Figure& figure, const bench::LaunchPrediction& prediction) {
  if (figure.launch.empty()) return prediction.cycles;
  std::uint64_t cycles = 0;
  for (const bench::OneLaunch& launch : prediction.each)
    if (launch.name.starts_with(figure.launch)) cycles += launch.cycles;
  return cycles;
}

bool enter(const Figure& figure, std::uint64_t cycles) {
  std::string& line = figure.page->lines[figure.line];
  std::vector<std::string> cells = cells_of(line);
  const std::string text = with_commas(cycles);
  if (cells[figure.column] == text) return false;
  fmt::print(stderr, "{}:{}: {} {} {}: {} stands there, predicted is {}\n", figure.page->file, figure.line + 1,
             figure.task.target->id, figure.task.descriptor, figure.task.pipeline + figure.launch, cells[figure.column],
             text);
  cells[figure.column] = text;
  line = "|";
  for (const std::string& cell : cells) line += (cell.empty() ? "" : ' ' + cell) + " |";
  figure.page->changed = true;
  return true;
}

struct Arguments {
  bool check = false;
  std::vector<std::vector<std::string>> only;  // words of each --only
  std::vector<Page> pages;
};

Arguments arguments_of(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--check") {
      arguments.check = true;
    } else if (argument == "--only") {
      arguments.only.emplace_back();
    } else if (!arguments.only.empty()) {
      arguments.only.back().emplace_back(argument);
    } else {
      arguments.pages.push_back({.file = std::string(argument), .lines = {}});
    }
  }
  return arguments;
}

bool is_asked_for(const Arguments& arguments, const Figure& figure) {
  const auto has = [&](const std::string& word) { return (figure.task.descriptor + ' ').contains(' ' + word + ' '); };
  return arguments.only.empty() ||
         std::ranges::any_of(arguments.only, [&](const auto& words) { return std::ranges::all_of(words, has); });
}

// A call that several columns ask for, for its launches, is predicted once. In the order of figures.
tools::Result<std::vector<bench::LaunchPrediction>> predictions_of(const std::vector<Figure>& figures) {
  std::vector<bench::LaunchTask> tasks;
  std::map<std::string, std::size_t> places;
  std::vector<std::size_t> of_figures;
  for (const Figure& figure : figures) {
    const bench::LaunchTask& task = figure.task;
    const auto [place, is_new] =
        places.try_emplace(fmt::format("{} {} {}", task.target->id, task.pipeline, task.descriptor), tasks.size());
    if (is_new) tasks.push_back(task);
    of_figures.push_back(place->second);
  }
  // Each call is its process's first, and has the cycles that it has alone.
  const auto predictions = bench::predict_launches(tasks, tools::WorkerLife::one_task);
  if (!predictions) return std::unexpected(predictions.error());
  std::vector<bench::LaunchPrediction> of_each;
  of_each.reserve(of_figures.size());
  for (const std::size_t place : of_figures) of_each.push_back((*predictions)[place]);
  return of_each;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments = arguments_of(argc, argv);
  std::vector<Figure> figures;
  for (Page& page : arguments.pages) {
    std::ifstream file(page.file);
    for (std::string line; std::getline(file, line);) page.lines.push_back(line);
    std::ranges::copy(figures_of(page), std::back_inserter(figures));
  }
  std::erase_if(figures, [&](const Figure& figure) { return !is_asked_for(arguments, figure); });
  if (figures.empty()) {
    fmt::print(stderr, "no table of these pages has a row to predict; one stands behind a line \"{}<target> -->\"\n",
               mark);
    return 2;
  }
  const auto predictions = predictions_of(figures);
  if (!predictions) {
    fmt::print(stderr, "{}\n", predictions.error().what);
    return 1;
  }
  int changed = 0;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const std::uint64_t cycles = cycles_of(figures[i], (*predictions)[i]);
    if (cycles == 0) {
      fmt::print(stderr, "{}:{}: no launch of {} has the name {}\n", figures[i].page->file, figures[i].line + 1,
                 figures[i].task.descriptor, figures[i].launch);
      return 1;
    }
    changed += enter(figures[i], cycles) ? 1 : 0;
  }
  fmt::print(stderr, "{} of {} figures differ\n", changed, figures.size());
  if (arguments.check) return changed == 0 ? 0 : 1;
  for (const Page& page : arguments.pages) {
    if (!page.changed) continue;
    std::ofstream file(page.file);
    for (const std::string& line : page.lines) file << line << '\n';
  }
  return 0;
}
