// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Products of 16x16 with finite operands, a row of the result at a time: columns are the vector. Compiled per host
// instruction set.
#include "simgpu/machine/matrix/wmma.h"
#include "simgpu/machine/numerics/rdna4_dot.h"

#if defined(__clang__)
// What is read and what is written lie apart, or in the same column.
#define WAVEJIT_COLUMN_LOOP _Pragma("clang loop vectorize(assume_safety)")
#else
#define WAVEJIT_COLUMN_LOOP _Pragma("GCC ivdep")
#endif

namespace wavejit::simgpu::matrix {
namespace {

using namespace numerics;

template <unsigned FractionBits>
bool multiply_all(WmmaFloats& call) {
  constexpr std::uint32_t exponent_mask = 0x7f800000u;
  // Units from 2^-126 to 2^96: sums of 31 bits of them are neither subnormal nor infinite.
  constexpr std::int32_t lowest = 126;
  constexpr std::uint32_t range = 126 + 96;
  std::uint32_t overflows[wmma_size] = {};
  const auto& significand = call.significand;
  const auto& exponent = call.exponent;
  for (const unsigned first : call.steps) {
    for (unsigned row = 0; row < wmma_size; ++row) {
      std::uint32_t* const c = call.c[row];
      std::int32_t values[wmma_size];
      std::int32_t grids[wmma_size];
      std::uint32_t far = 0;
      WAVEJIT_COLUMN_LOOP
      for (unsigned column = 0; column < wmma_size; ++column) {
        const auto product = [&](unsigned k) {
          return product_of<FractionBits>(significand.a[k][row], exponent.a[k][row], significand.b[k][column],
                                          exponent.b[k][column]);
        };
        const Product low = pair_of(product(first), product(first + 1));
        const Product high = pair_of(product(first + 2), product(first + 3));
        const StepSum sum = sum_of(c[column], low, high);
        values[column] = sum.value;
        grids[column] = sum.grid;
        far |= static_cast<std::uint32_t>(sum.grid + lowest) > range ? 1u : 0u;
      }
      if (far == 0) {
        // Rounded once, to float32; the power of two that follows is exact.
        for (unsigned column = 0; column < wmma_size; ++column) {
          const float power = float_of(static_cast<std::uint32_t>(grids[column] + 127) << 23);
          c[column] = numerics::bits_of(static_cast<float>(values[column]) * power);
        }
        continue;
      }
      for (unsigned column = 0; column < wmma_size; ++column) {
        c[column] = rounded({values[column], grids[column]});
        overflows[column] |= (c[column] & exponent_mask) == exponent_mask ? 1u : 0u;
      }
    }
  }
  std::uint32_t any = 0;
  for (const std::uint32_t overflow : overflows) any |= overflow;
  return any == 0;
}

}  // namespace

namespace WAVEJIT_HOST_SET {

bool multiply_floats(WmmaFloats& call, unsigned fraction_bits) {
  constexpr unsigned of_f16 = 10;
  constexpr unsigned of_bf16 = 7;
  constexpr unsigned of_bytes = 3;
  if (fraction_bits == of_f16) return multiply_all<of_f16>(call);
  if (fraction_bits == of_bf16) return multiply_all<of_bf16>(call);
  return multiply_all<of_bytes>(call);
}

void multiply_integers(WmmaIntegers& call) {
  for (unsigned row = 0; row < wmma_size; ++row) {
    std::int64_t sums[wmma_size];
    for (unsigned column = 0; column < wmma_size; ++column) sums[column] = call.c[row][column];
    for (unsigned k = 0; k < call.k; ++k) {
      for (unsigned column = 0; column < wmma_size; ++column) {
        sums[column] += call.value.a[k][row] * call.value.b[k][column];
      }
    }
    for (unsigned column = 0; column < wmma_size; ++column) {
      const std::int64_t sum = sums[column];
      const std::int64_t bounded = sum > 0x7fffffff ? 0x7fffffff : (sum < -0x80000000LL ? -0x80000000LL : sum);
      call.c[row][column] = static_cast<std::int32_t>(static_cast<std::uint32_t>(call.saturates ? bounded : sum));
    }
  }
}

}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::matrix
