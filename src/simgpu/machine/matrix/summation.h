// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The ways in which matrix instructions add that WAVEJIT_SIM_MATRIX chooses among (README.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "simgpu/machine/matrix/matrix_kernel.h"

namespace wavejit::simgpu::matrix {

// One order for all elements of an instruction's result: instructions that are equal give results that are equal.
struct Order {
  std::array<std::uint8_t, largest_k> products{};  // products[position] = k
  std::uint8_t before_c = 0;                       // how many products are added before C is
};

struct Summation {
  bool in_groups = false;         // as a CDNA3 does; no other order
  std::array<Order, 8> orders{};  // otherwise: by the logarithm of the instruction's k
};

Summation cdna3_summation();
// A permutation for each k that occurs, C included: a function of the seed and of nothing else.
Summation seeded_summation(std::uint64_t seed);

}  // namespace wavejit::simgpu::matrix
