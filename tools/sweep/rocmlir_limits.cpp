// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sweep/rocmlir_limits.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

namespace wavejit::tools::sweep {
namespace {

constexpr double usual_limit = 0.005;
constexpr double bf16_limit = 0.01;
constexpr double unscaled_limit = 0.15;
constexpr int largest_usual_dim = 64;

// The dims of Q and K that "d128" and "d192/128" say; 0 for other words.
int query_dims(const std::string& word) {
  int dims = 0;
  if (word.starts_with('d')) std::from_chars(word.data() + 1, word.data() + word.size(), dims);
  return dims;
}

}  // namespace

double rocmlir_limit(std::string_view descriptor) {
  std::istringstream words{std::string(descriptor)};
  std::string word;
  double limit = usual_limit;
  bool unscaled = false;
  int dims = 0;
  while (words >> word) {
    if (word == "bf16") limit = bf16_limit;
    if (word == "scale=1") unscaled = true;
    if (const int found = query_dims(word); found > 0) dims = found;
  }
  return unscaled && dims > largest_usual_dim ? unscaled_limit : limit;
}

std::string wrong_by_rms(const Comparison& comparison, double limit) {
  if (comparison.compared == 0) return "nothing finite was compared";
  if (comparison.not_finite_result != comparison.not_finite_exact) return comparison.remarks();
  const double rms = comparison.relative_rms();
  return rms <= limit ? std::string() : fmt::format("RMS error {:.3g} of the largest element, limit {}", rms, limit);
}

}  // namespace wavejit::tools::sweep
