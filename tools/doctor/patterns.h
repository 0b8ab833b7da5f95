// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What probes are given: words by the name of a pattern, the same on every machine.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/doctor/probe.h"

namespace wavejit::tools::doctor {

// 64 · workgroups · input_words words, those of a lane one after the other. Empty for a pattern that is none.
//   numbers          0, 1, 2, … in 16 bits each
//   floats           every kind of float32: normal, denormal, halves between two numbers of 16 bits, NaN, infinite
//   positive         positive floats of every exponent
//   exponents        floats from −150 to 130
//   products_f16, products_bf16, products_8_bits
//                    factors and an addend for a matrix instruction. Workgroups by turns: plain numbers, exponents far
//                    apart, an addend that is large and negative, denormals
std::vector<std::uint32_t> words_of(const Probe& probe);

}  // namespace wavejit::tools::doctor
