// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "tools/sweep/rms_policy.h"

#include <fmt/format.h>

#include <charconv>
#include <sstream>

namespace wavejit::tools::sweep {
namespace {

constexpr double usual_limit = 0.005;
constexpr double bf16_limit = 0.01;
constexpr double unscaled_limit = 0.15;
constexpr int largest_usual_dim = 64;

// "d128", "d192/128": the dims of Q and K; 0: the word is another one.
int dims_of(const std::string& word) {
  int dims = 0;
  if (word.starts_with('d')) std::from_chars(word.data() + 1, word.data() + word.size(), dims);
  return dims;
}

}  // namespace

double rocmlir_rms_limit(std::string_view descriptor) {
  double limit = usual_limit;
  bool unscaled = false;
  int dims = 0;
  std::istringstream words{std::string(descriptor)};
  for (std::string word; words >> word;) {
    if (word == "bf16") limit = bf16_limit;
    if (word == "scale=1") unscaled = true;
    if (const int found = dims_of(word); found > 0) dims = found;
  }
  return unscaled && dims > largest_usual_dim ? unscaled_limit : limit;
}

std::string wrong_by_rms(const Judgement& judgement, double limit) {
  if (judgement.compared == 0) return "nothing finite was compared";
  if (judgement.not_finite_result != judgement.not_finite_exact)
    return fmt::format("not finite: {} of the exact answer, {} of the result", judgement.not_finite_exact,
                       judgement.not_finite_result);
  const double rms = judgement.relative_rms();
  return rms <= limit ? std::string() : fmt::format("RMS {:.3g} of the largest element, limit {}", rms, limit);
}

}  // namespace wavejit::tools::sweep
