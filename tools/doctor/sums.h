// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Ways in which a matrix instruction may add up an element of its result. Which of them a GPU has can only be seen by
// trying: each is computed here and held against what came out, bit for bit.
//
// Independent of the simulated GPU's own models on purpose: one is a check of the other.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace wavejit::tools::doctor {

struct Factor {
  double value = 0;
  int exponent = 0;  // not normalised: a denormal has its format's lowest, a zero −126
};
Factor factor_of_f16(std::uint16_t bits);
Factor factor_of_bf16(std::uint16_t bits);

// `a` and `b` in the order of k.
using AddUp = float (*)(std::span<const Factor> a, std::span<const Factor> b, float c);

struct SumModel {
  std::string_view name;
  AddUp add_up;
};

// Those that are tried, the likeliest first.
std::span<const SumModel> sum_models();

}  // namespace wavejit::tools::doctor
