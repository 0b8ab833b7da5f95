// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "program_errors.h"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "model_error.h"

namespace wavejit::bench {

std::string errors_by_kind() {
  std::string text =
      "\n### By what a launch takes its time with\n\n"
      "Programs of others on an MI300A, rows that no constant was made of ([silicon-score.md](silicon-score.md) has "
      "each row; rules were chosen with them in sight), and below them kernels with matrix instructions, as quoted "
      "above. Errors are of speed: too high is faster than it was.\n\n"
      "| kind | rows | median | too low by up to | too high by up to | root mean square |\n|---|---|---|---|---|---|\n";
  std::ifstream file(WAVEJIT_SILICON_KINDS);
  std::string line;
  int kinds = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string kind;
    int rows = 0;
    double median = 0;
    ModelError error;
    if (!(words >> kind >> rows >> median >> error.too_low >> error.too_high >> error.root_mean_square)) continue;
    text += fmt::format("| {} | {} | {:+.1f} % | {:.1f} % | {:.1f} % | {:.1f} % |\n", kind, rows, median, error.too_low,
                        error.too_high, error.root_mean_square);
    ++kinds;
  }
  if (kinds == 0) {
    fmt::print(stderr, "{}: no kind stands there; ./dev bench silicon writes it\n", WAVEJIT_SILICON_KINDS);
    std::exit(1);
  }
  const ModelError& matrix = model_error();
  return text + fmt::format("| matrix | {} | – | {:.1f} % | {:.1f} % | {:.1f} % |\n", matrix.anchors, matrix.too_low,
                            matrix.too_high, matrix.root_mean_square);
}

}  // namespace wavejit::bench
