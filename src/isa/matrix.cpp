// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "isa/matrix.h"

#include <algorithm>
#include <array>

namespace wavejit::isa {
namespace {

using enum Element;
using enum targets::MatrixId;

// Passes: AMD's matrix instruction calculator, LLVM's scheduling model; confirmed against published figures for the
// rows that have an id. tests/targets/matrix_cost_test.cpp asks LLVM's model of every row,
// tests/simgpu/checks/hazards_test.cpp its hazard recognizer.
constexpr std::array<MatrixInstruction, 40> table = {{
    // name, m, k, blocks, A, B, passes, id, passes on the wide pipe, formats in modifiers, passes of bytes, scaled
    {"v_mfma_f32_32x32x8_f16", 32, 8, 1, f16, f16, 8, f32_32x32x8_f16},
    {"v_mfma_f32_32x32x8_bf16", 32, 8, 1, bf16, bf16, 8, f32_32x32x8_bf16},
    {"v_mfma_f32_32x32x16_f16", 32, 16, 1, f16, f16, 8, f32_32x32x16_f16},
    {"v_mfma_f32_32x32x16_bf16", 32, 16, 1, bf16, bf16, 8, f32_32x32x16_bf16},
    {"v_mfma_f32_16x16x16_f16", 16, 16, 1, f16, f16, 4, f32_16x16x16_f16},
    {"v_mfma_f32_16x16x16_bf16", 16, 16, 1, bf16, bf16, 4, f32_16x16x16_bf16},
    {"v_mfma_f32_16x16x32_f16", 16, 32, 1, f16, f16, 4, f32_16x16x32_f16},
    {"v_mfma_f32_16x16x32_bf16", 16, 32, 1, bf16, bf16, 4, f32_16x16x32_bf16},
    {"v_mfma_f32_32x32x4_2b_f16", 32, 4, 2, f16, f16, 16},
    {"v_mfma_f32_32x32x4_2b_bf16", 32, 4, 2, bf16, bf16, 16},
    {"v_mfma_f32_16x16x4_4b_f16", 16, 4, 4, f16, f16, 8},
    {"v_mfma_f32_16x16x4_4b_bf16", 16, 4, 4, bf16, bf16, 8},
    {"v_mfma_f32_4x4x4_16b_f16", 4, 4, 16, f16, f16, 2},
    {"v_mfma_f32_4x4x4_16b_bf16", 4, 4, 16, bf16, bf16, 2},
    {"v_mfma_f32_32x32x1_2b_f32", 32, 1, 2, f32, f32, 16},
    {"v_mfma_f32_16x16x1_4b_f32", 16, 1, 4, f32, f32, 8},
    {"v_mfma_f32_4x4x1_16b_f32", 4, 1, 16, f32, f32, 2},
    {"v_mfma_f32_32x32x2_f32", 32, 2, 1, f32, f32, 16},
    {"v_mfma_f32_16x16x4_f32", 16, 4, 1, f32, f32, 8},
    {"v_mfma_f32_32x32x4_xf32", 32, 4, 1, xf32, xf32, 8},
    {"v_mfma_f32_16x16x8_xf32", 16, 8, 1, xf32, xf32, 4},
    {"v_mfma_f64_16x16x4_f64", 16, 4, 1, f64, f64, 8, none, 16},
    {"v_mfma_f64_4x4x4_4b_f64", 4, 4, 4, f64, f64, 4},
    {"v_mfma_i32_32x32x16_i8", 32, 16, 1, i8, i8, 8},
    {"v_mfma_i32_16x16x32_i8", 16, 32, 1, i8, i8, 4},
    {"v_mfma_i32_32x32x32_i8", 32, 32, 1, i8, i8, 8},
    {"v_mfma_i32_16x16x64_i8", 16, 64, 1, i8, i8, 4},
    {"v_mfma_i32_32x32x4_2b_i8", 32, 4, 2, i8, i8, 16},
    {"v_mfma_i32_16x16x4_4b_i8", 16, 4, 4, i8, i8, 8},
    {"v_mfma_i32_4x4x4_16b_i8", 4, 4, 16, i8, i8, 2},
    {"v_mfma_f32_32x32x16_fp8_fp8", 32, 16, 1, fp8_fnuz, fp8_fnuz, 8},
    {"v_mfma_f32_32x32x16_fp8_bf8", 32, 16, 1, fp8_fnuz, bf8_fnuz, 8},
    {"v_mfma_f32_32x32x16_bf8_fp8", 32, 16, 1, bf8_fnuz, fp8_fnuz, 8},
    {"v_mfma_f32_32x32x16_bf8_bf8", 32, 16, 1, bf8_fnuz, bf8_fnuz, 8},
    {"v_mfma_f32_16x16x32_fp8_fp8", 16, 32, 1, fp8_fnuz, fp8_fnuz, 4},
    {"v_mfma_f32_16x16x32_fp8_bf8", 16, 32, 1, fp8_fnuz, bf8_fnuz, 4},
    {"v_mfma_f32_16x16x32_bf8_fp8", 16, 32, 1, bf8_fnuz, fp8_fnuz, 4},
    {"v_mfma_f32_16x16x32_bf8_bf8", 16, 32, 1, bf8_fnuz, bf8_fnuz, 4},
    // CBSZ and BLGP choose the formats of A and B.
    {"v_mfma_f32_32x32x64_f8f6f4", 32, 64, 1, fp8_ocp, fp8_ocp, 8, none, 0, true, 16,
     "v_mfma_scale_f32_32x32x64_f8f6f4"},
    {"v_mfma_f32_16x16x128_f8f6f4", 16, 128, 1, fp8_ocp, fp8_ocp, 4, none, 0, true, 8,
     "v_mfma_scale_f32_16x16x128_f8f6f4"},
}};

// WMMA. Clocks: 16 of 16-bit inputs, half of that for bytes and for i4, whose gain is its depth: 32 in the clocks of 16
// (measured on an R9700: docs/isa.md, "RDNA4"; of i4 by a thread trace of gfx1201, tinygrad: every instruction).
constexpr std::array<MatrixInstruction, 11> wmma_table = {{
    {.name = "v_wmma_f32_16x16x16_f16",
     .m = 16,
     .k = 16,
     .blocks = 1,
     .a = f16,
     .b = f16,
     .passes = 4,
     .id = wmma_f32_16x16x16_f16,
     .lanes = 32},
    {.name = "v_wmma_f32_16x16x16_bf16",
     .m = 16,
     .k = 16,
     .blocks = 1,
     .a = bf16,
     .b = bf16,
     .passes = 4,
     .id = wmma_f32_16x16x16_bf16,
     .lanes = 32},
    {.name = "v_wmma_f16_16x16x16_f16", .m = 16, .k = 16, .blocks = 1, .a = f16, .b = f16, .passes = 4, .lanes = 32},
    {.name = "v_wmma_bf16_16x16x16_bf16",
     .m = 16,
     .k = 16,
     .blocks = 1,
     .a = bf16,
     .b = bf16,
     .passes = 4,
     .lanes = 32},
    {.name = "v_wmma_i32_16x16x16_iu8", .m = 16, .k = 16, .blocks = 1, .a = i8, .b = i8, .passes = 2, .lanes = 32},
    {.name = "v_wmma_i32_16x16x16_iu4", .m = 16, .k = 16, .blocks = 1, .a = i4, .b = i4, .passes = 2, .lanes = 32},
    {.name = "v_wmma_i32_16x16x32_iu4", .m = 16, .k = 32, .blocks = 1, .a = i4, .b = i4, .passes = 2, .lanes = 32},
    {.name = "v_wmma_f32_16x16x16_fp8_fp8",
     .m = 16,
     .k = 16,
     .blocks = 1,
     .a = fp8_ocp,
     .b = fp8_ocp,
     .passes = 2,
     .lanes = 32},
    {.name = "v_wmma_f32_16x16x16_fp8_bf8",
     .m = 16,
     .k = 16,
     .blocks = 1,
     .a = fp8_ocp,
     .b = bf8_ocp,
     .passes = 2,
     .lanes = 32},
    {.name = "v_wmma_f32_16x16x16_bf8_fp8",
     .m = 16,
     .k = 16,
     .blocks = 1,
     .a = bf8_ocp,
     .b = fp8_ocp,
     .passes = 2,
     .lanes = 32},
    {.name = "v_wmma_f32_16x16x16_bf8_bf8",
     .m = 16,
     .k = 16,
     .blocks = 1,
     .a = bf8_ocp,
     .b = bf8_ocp,
     .passes = 2,
     .lanes = 32},
}};

constexpr std::array<MatrixPipe, 2> pipes = {{
    {.target = "gfx942", .sums_published = true},
    {.target = "gfx950", .wide = true},
}};

}  // namespace

std::span<const MatrixInstruction> matrix_instructions() { return table; }

std::span<const MatrixInstruction> wmma_instructions() { return wmma_table; }

const MatrixInstruction* find_matrix_instruction(targets::MatrixId id) {
  if (id == none) return nullptr;
  for (const std::span<const MatrixInstruction> rows :
       {std::span<const MatrixInstruction>(table), wmma_instructions()}) {
    const auto found = std::ranges::find(rows, id, &MatrixInstruction::id);
    if (found != rows.end()) return &*found;
  }
  return nullptr;
}

const MatrixPipe& matrix_pipe(const targets::Target& target) {
  static constexpr MatrixPipe unknown;
  const auto* found = std::ranges::find(pipes, target.id, &MatrixPipe::target);
  return found == pipes.end() ? unknown : *found;
}

unsigned matrix_passes(const MatrixInstruction& instruction, const MatrixPipe& pipe, unsigned cbsz, unsigned blgp) {
  if (pipe.wide && instruction.wide_passes != 0) return instruction.wide_passes;
  // Formats 0 and 1 have eight bits.
  constexpr unsigned first_small_format = 2;
  const bool bytes = cbsz < first_small_format || blgp < first_small_format;
  return instruction.byte_passes != 0 && bytes ? instruction.byte_passes : instruction.passes;
}

}  // namespace wavejit::isa
