// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One matrix instruction as the kernels see it: a shape, register blocks, and the order of summation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "isa/matrix.h"
#include "simgpu/machine/instruction/lane_places.h"
#include "simgpu/process/host_set.h"

namespace wavejit::simgpu::matrix {

inline constexpr unsigned largest_k = 128;  // of instructions over 64 lanes, which these kernels are for

using isa::bits_of;
using isa::Element;
using Shape = isa::MatrixInstruction;

struct MatrixCall {
  const Shape* shape = nullptr;
  Element a = Element::f16;
  Element b = Element::f16;
  const std::uint32_t* a_registers = nullptr;
  const std::uint32_t* b_registers = nullptr;
  const std::uint32_t* c_registers = nullptr;
  // 0 repeats one register block for all of C (a constant).
  std::size_t c_stride = lane_places;
  std::uint32_t* d_registers = nullptr;
  std::uint8_t cbsz = 0;
  std::uint8_t abid = 0;
  std::uint8_t blgp = 0;
  bool negate[3] = {};  // A, B, C of float64 instructions
  // order[position] = k: which product is added at `position`. Null: ascending.
  const std::uint8_t* order = nullptr;
  std::uint8_t before_c = 0;  // how many products are added before C is
  // Scaled instructions: one e8m0 exponent a lane: lane g*m + i is for row or column i and k = 32*g … 32*g + 31. Null:
  // no scaling.
  const std::uint8_t* a_scale = nullptr;
  const std::uint8_t* b_scale = nullptr;
};

#define WAVEJIT_DECLARE_MATRIX_KERNELS(set)                      \
  namespace set {                                                \
  [[gnu::weak]] void multiply(const MatrixCall& call);           \
  [[gnu::weak]] void multiply_in_groups(const MatrixCall& call); \
  }
WAVEJIT_FOR_EACH_HOST_SET(WAVEJIT_DECLARE_MATRIX_KERNELS);

}  // namespace wavejit::simgpu::matrix
