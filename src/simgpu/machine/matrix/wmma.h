// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RDNA4's matrix instructions: D = A·B + C of 16x16, over a wave of 32 or 64 lanes. Layouts: docs/isa.md, "RDNA4".
//
//   A: row = lane % 16, B: column = lane % 16; of 32 lanes each half h holds k = 8h … 8h + 7 (two runs of eight where k
//   is 32), of 64 lanes each quarter q holds k = 4q … 4q + 3
//   C, D: column = lane % 16; 32 lanes: row = 8h + r; 64 lanes: row = 8(lane / 16 % 2) + 4(lane / 32) + r
#pragma once

#include <cstdint>

#include "simgpu/machine/matrix/matrix_kernel.h"

namespace wavejit::simgpu {
class Registry;
}

namespace wavejit::simgpu::matrix {

inline constexpr unsigned wmma_size = 16;

struct WmmaPlace {
  unsigned row;
  unsigned column;
};
// Result `r` of a lane.
constexpr WmmaPlace wmma_place(unsigned lane, unsigned lanes, unsigned r) {
  const unsigned row = lanes == 32 ? 8 * (lane / 16) + r : 8 * (lane / 16 % 2) + 4 * (lane / 32) + r;
  return {row, lane % 16};
}
// k of element `i` of a lane's A or B registers.
constexpr unsigned wmma_k(unsigned lane, unsigned lanes, unsigned i, unsigned k) {
  const unsigned groups = lanes / 16;
  const unsigned per_lane = k / groups;
  return per_lane * (lane / 16) + i;
}

// A row of A and a column of B, gathered: index k.
template <typename T>
struct WmmaOperands {
  alignas(64) T a[32][wmma_size];  // [k][row]
  alignas(64) T b[32][wmma_size];  // [k][column]
};

struct WmmaFloats {
  WmmaOperands<std::int32_t> significand;
  WmmaOperands<std::int32_t> exponent;
  std::uint32_t c[wmma_size][wmma_size];  // bits of float32, [row][column]; D afterwards
  // The first k of each step of four.
  unsigned steps[4];
};
struct WmmaIntegers {
  WmmaOperands<std::int32_t> value;
  std::int32_t c[wmma_size][wmma_size];
  unsigned k;
  bool saturates;
};

// Products of f16 or bf16 with results of float32 over 32 lanes, in registers. Signs that an instruction turns stand
// as bits of a register's word.
struct WmmaRegisters {
  const std::uint32_t* a;
  const std::uint32_t* b;
  const std::uint32_t* c;
  std::size_t c_stride;  // 0 repeats one register (a constant)
  std::uint32_t* d;
  std::uint32_t flips_a = 0;
  std::uint32_t flips_b = 0;
  std::uint32_t keeps_c = ~0U;
  std::uint32_t flips_c = 0;
};

// multiply_floats is of finite factors, and false when the sum of a step became infinite: what follows then is not
// worked out there. Those of registers are false, and have written nothing, where some sum is out of the ordinary.
#define WAVEJIT_DECLARE_WMMA_KERNELS(set)                                       \
  namespace set {                                                               \
  [[gnu::weak]] bool multiply_floats(WmmaFloats& call, unsigned fraction_bits); \
  [[gnu::weak]] bool multiply_f16(const WmmaRegisters& call);                   \
  [[gnu::weak]] bool multiply_bf16(const WmmaRegisters& call);                  \
  [[gnu::weak]] void multiply_integers(WmmaIntegers& call);                     \
  }
WAVEJIT_FOR_EACH_HOST_SET(WAVEJIT_DECLARE_WMMA_KERNELS);

void register_wmma(Registry& registry);

}  // namespace wavejit::simgpu::matrix
