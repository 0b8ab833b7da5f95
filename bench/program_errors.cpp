// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "anchor_error.h"
#include "anchors.h"

namespace wavejit::bench {

namespace {

// Whole and real kernels. Their figures are speeds and busy shares: a time is one over these.
std::string matrix_row() {
  std::vector<double> ratios;
  for (const JudgedAnchor& judged : judged_anchors()) {
    if (judged.anchor->kind == "whole kernels" || judged.anchor->kind == "real kernels")
      ratios.push_back(1 / (1 + judged.error / 100));
  }
  std::ranges::sort(ratios);
  const std::size_t half = ratios.size() / 2;
  const double median = ratios.size() % 2 == 0 ? (ratios[half - 1] + ratios[half]) / 2 : ratios[half];
  double mean = 0;
  double square = 0;
  for (const double ratio : ratios) {
    mean += std::log2(ratio) / static_cast<double>(ratios.size());
    square += std::log2(ratio) * std::log2(ratio) / static_cast<double>(ratios.size());
  }
  return fmt::format("| matrix | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", ratios.size(), median, ratios.front(),
                     ratios.back(), std::sqrt(square - mean * mean));
}

}  // namespace

std::string ratios_by_kind() {
  std::string text =
      "\n### By what a launch takes its time with\n\n"
      "Programs of others on an MI300A, rows that no constant was made of ([silicon-score.md](silicon-score.md) has "
      "each row; parts of the memory model were changed with them in sight), and below them kernels with matrix "
      "instructions, whose errors of speed are quoted above, as ratios of times.\n\n"
      "| kind | rows | predicted ÷ measured: median | from | to | spread (log2) |\n|---|---|---|---|---|---|\n";
  std::ifstream file(WAVEJIT_SILICON_KINDS);
  std::string line;
  int kinds = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    int rows = 0;
    double median = 0;
    double least = 0;
    double most = 0;
    double spread = 0;
    if (!(words >> kind >> rows >> median >> least >> most >> spread)) continue;
    text += fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", kind, rows, median, least, most, spread);
    ++kinds;
  }
  if (kinds == 0) {
    fmt::print(stderr, "{}: no kind stands there; ./dev bench silicon writes it\n", WAVEJIT_SILICON_KINDS);
    std::exit(1);
  }
  return text + matrix_row();
}

}  // namespace wavejit::bench
