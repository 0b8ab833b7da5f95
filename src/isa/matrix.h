// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What a matrix instruction is and costs, one row each: read by the simulated GPU, its checks and its clock, and by the
// analysis of finished kernels. Nothing here is in a cache key; what emission uses of the same instruction stands in
// src/targets, under the same MatrixId (tests/targets holds the two together).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "targets/targets.h"

namespace wavejit::isa {

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
  i4,
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
    case Element::i4:
      return 4;
    default:
      return 8;
  }
}

// D[m×m] = A[m×k]·B[k×m] + C, for each of `blocks` independent blocks.
struct MatrixInstruction {
  const char* name;  // as LLVM prints it
  std::uint8_t m;
  std::uint8_t k;
  std::uint8_t blocks;
  Element a;  // 8-bit floats: CDNA3's flavour; the target says which it has
  Element b;
  // A pass is four clocks of the matrix pipe (timing: wave.pass).
  std::uint8_t passes;
  targets::MatrixId id = targets::MatrixId::none;
  std::uint8_t wide_passes = 0;       // on the wide pipe, where they are others
  bool formats_in_modifiers = false;  // CBSZ and BLGP choose the formats of A and B
  std::uint8_t byte_passes = 0;       // with a format of 8 bits on either side
  const char* scaled_name = nullptr;  // the same with a scale for 32 elements
  std::uint8_t lanes = 64;            // of the waves that have it

  // Consecutive k that one lane holds.
  constexpr unsigned k_per_lane() const { return static_cast<unsigned>(m) * k * blocks / lanes; }
  constexpr unsigned results_per_lane() const { return static_cast<unsigned>(m) * m * blocks / lanes; }
};

// All of them, float64 and f8f6f4 ones included; which of them a target has is the decoder's business.
std::span<const MatrixInstruction> matrix_instructions();

// RDNA4's, whose lanes hold the same for all elements of a row or column; 64 lanes have them too.
std::span<const MatrixInstruction> wmma_instructions();

// The row of what emission uses; null for MatrixId::none.
const MatrixInstruction* find_matrix_instruction(targets::MatrixId id);

// What the matrix pipe of a target is.
struct MatrixPipe {
  std::string_view target;
  // Takes k = 16 of 16-bit inputs in 32x32: its results come a wait state later than its predecessor's (LLVM's hazard
  // recognizer), and float64 runs at half the rate.
  bool wide = false;
  // How an element of a result is added up is published, bit for bit (MMA-Sim, arXiv 2511.10909).
  bool sums_published = false;
};
const MatrixPipe& matrix_pipe(const targets::Target& target);

// Passes that an instruction takes with these modifiers.
unsigned matrix_passes(const MatrixInstruction& instruction, const MatrixPipe& pipe, unsigned cbsz, unsigned blgp);

}  // namespace wavejit::isa
