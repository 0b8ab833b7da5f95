// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program_errors.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "model_error.h"

namespace wavejit::bench {

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
  const ModelError& matrix = model_error();
  return text + fmt::format("| matrix | {} | – | {:.2f} | {:.2f} | – |\n", matrix.anchors,
                            1 / (1 + matrix.too_high / 100), 1 / (1 - matrix.too_low / 100));
}

}  // namespace wavejit::bench
