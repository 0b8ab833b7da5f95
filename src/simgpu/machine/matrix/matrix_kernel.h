// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One matrix instruction as the kernels see it: a shape, register blocks, and the order of summation.
#pragma once

#include <cstddef>
#include <cstdint>

#include "simgpu/process/host_set.h"

namespace wavejit::simgpu::matrix {

inline constexpr unsigned lane_count = 64;
inline constexpr unsigned largest_k = 128;

enum class Element : std::uint8_t {
  f16,
  bf16,
  f32,
  xf32,  // float32 with a 10-bit mantissa
  f64,
  i8,
  fp8_fnuz,
  bf8_fnuz,
  fp8_ocp,
  bf8_ocp,
  fp6,
  bf6,
  fp4,
};

constexpr unsigned bits_of(Element element) {
  switch (element) {
    case Element::f64:
      return 64;
    case Element::f32:
    case Element::xf32:
      return 32;
    case Element::f16:
    case Element::bf16:
      return 16;
    case Element::fp6:
    case Element::bf6:
      return 6;
    case Element::fp4:
      return 4;
    default:
      return 8;
  }
}

// D[m×m] = A[m×k]·B[k×m] + C, for each of `blocks` independent blocks.
struct Shape {
  const char* name;
  std::uint8_t m;
  std::uint8_t k;
  std::uint8_t blocks;
  Element a;
  Element b;
  bool formats_in_modifiers = false;  // CBSZ and BLGP choose the formats of A and B
  const char* scaled_name = nullptr;  // the same with a scale for 32 elements

  // Consecutive k that one lane holds.
  constexpr unsigned k_per_lane() const { return static_cast<unsigned>(m) * k * blocks / lane_count; }
  constexpr unsigned results_per_lane() const { return static_cast<unsigned>(m) * m * blocks / lane_count; }
};

struct MatrixCall {
  const Shape* shape = nullptr;
  Element a = Element::f16;
  Element b = Element::f16;
  const std::uint32_t* a_registers = nullptr;
  const std::uint32_t* b_registers = nullptr;
  const std::uint32_t* c_registers = nullptr;
  // 0 repeats one register block for all of C (a constant).
  std::size_t c_stride = lane_count;
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

#define WAVEJIT_DECLARE_MATRIX_KERNELS(set)        \
  namespace set {                                  \
  void multiply(const MatrixCall& call);           \
  void multiply_in_groups(const MatrixCall& call); \
  }
WAVEJIT_FOR_EACH_HOST_SET(WAVEJIT_DECLARE_MATRIX_KERNELS);

}  // namespace wavejit::simgpu::matrix
