// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/facts/hazard_rules.h"

#include <array>

#include "isa/matrix.h"

namespace wavejit::simgpu::checks {
namespace {

constexpr std::string_view mai_valu = "LLVM checkMAIVALUHazards";
constexpr std::string_view mai_mai = "LLVM checkMAIHazards90A";
constexpr std::string_view valu = "LLVM checkVALUHazards";
constexpr std::string_view matrix_result = "the result of a matrix instruction";

using P = Product;
using U = Use;

constexpr std::array rules = {
    // Matrix results. C that is the earlier result: the pipe hands it on to the same instruction alone. Others wait as
    // for a part of it, by llvm/llvm-project#218363, which was open when this was written; LLVM 22 puts nothing between
    // them. The number is LLVM 22's for a part: on gfx950 `s_nop 5` behind four passes, six wait states.
    HazardRule{P::matrix, U::vector_read, 3, 1, 4, matrix_result, mai_valu},
    HazardRule{P::matrix, U::memory_read, 3, 1, 4, matrix_result, mai_valu},
    HazardRule{P::matrix, U::vector_write, 3, 1, 4, matrix_result, mai_valu},
    HazardRule{P::matrix, U::memory_write, 3, 1, 4, matrix_result, mai_valu},
    HazardRule{P::matrix, U::matrix_ab, 3, 1, 4, matrix_result, mai_mai},
    HazardRule{P::matrix, U::matrix_c, 1, 1, 2, matrix_result, mai_mai},
    HazardRule{P::matrix, U::matrix_float_c, 1, 1, 4, matrix_result, mai_mai},
    HazardRule{P::matrix, U::matrix_same_c, 2, 0, 0, matrix_result, mai_mai, 2},
    HazardRule{P::matrix_f32, U::vector_read, 2, 1, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f32, U::memory_read, 2, 1, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f32, U::vector_write, 2, 1, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f32, U::memory_write, 2, 1, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f32, U::matrix_ab, 2, 1, 0, matrix_result, mai_mai},
    HazardRule{P::matrix_f32, U::matrix_float_c, 0, 1, 0, matrix_result, mai_mai},
    HazardRule{P::matrix_f32, U::matrix_same_c, 2, 0, 0, matrix_result, mai_mai, 2},
    HazardRule{P::matrix_f64_small, U::vector_read, 6, 0, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64_small, U::memory_read, 9, 0, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64_small, U::vector_write, 6, 0, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64_small, U::memory_write, 6, 0, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64_small, U::matrix_ab, 6, 0, 0, matrix_result, mai_mai},
    HazardRule{P::matrix_f64_small, U::matrix_float_c, 4, 0, 0, matrix_result, mai_mai},
    HazardRule{P::matrix_f64_small, U::matrix_same_c, 4, 0, 0, matrix_result, mai_mai},
    HazardRule{P::matrix_f64, U::vector_read, 3, 1, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64, U::memory_read, 18, 0, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64, U::vector_write, 11, 0, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64, U::memory_write, 11, 0, 0, matrix_result, mai_valu},
    HazardRule{P::matrix_f64, U::matrix_ab, 3, 1, 0, matrix_result, mai_mai},
    HazardRule{P::matrix_f64, U::matrix_float_c, 1, 1, 0, matrix_result, mai_mai},
    // What the matrix pipe still reads.
    HazardRule{P::matrix_c, U::vector_write, -1, 1, 0, "C, which a matrix instruction still reads", mai_valu},
    HazardRule{P::matrix_c, U::memory_write, -1, 1, 0, "C, which a matrix instruction still reads", mai_valu},
    // A store with a register as scalar offset reads its data a cycle earlier, and LLVM 22 takes it for safe. On a gfx950
    // the next instruction changed what was stored, each time (llvm/llvm-project#197267).
    HazardRule{P::store_data, U::vector_write, 2, 0, 0, "the data of a wide store", "LLVM checkVALUHazardsHelper"},
    HazardRule{P::store_data_behind_offset, U::vector_write, 1, 0, 0, "the data of a wide store",
               "llvm/llvm-project#197267"},
    // Vector results.
    HazardRule{P::vector, U::matrix_ab, 2, 0, 0, "the result of a vector instruction", mai_mai},
    HazardRule{P::vector, U::matrix_c, 2, 0, 0, "the result of a vector instruction", mai_mai},
    HazardRule{P::vector, U::matrix_float_c, 2, 0, 0, "the result of a vector instruction", mai_mai},
    HazardRule{P::vector, U::dpp_read, 2, 0, 0, "the result of a vector instruction", "LLVM checkDPPHazards"},
    HazardRule{P::vector, U::lane_read, 1, 0, 0, "the result of a vector instruction", valu},
    HazardRule{P::vector, U::permlane_read, 2, 0, 0, "the result of a vector instruction", "LLVM checkPermlaneHazards"},
    HazardRule{P::vector_trans, U::vector_read, 1, 0, 0, "the result of a transcendental instruction", valu},
    HazardRule{P::vector_part, U::vector_read, 1, 0, 0, "a register written in part", valu},
    HazardRule{P::vector_part, U::trans_read, 1, 0, 0, "a register written in part", valu},
    HazardRule{P::vector_dot, U::vector_read, 3, 0, 0, "the result of a dot product", mai_valu},
    HazardRule{P::vector_dot, U::memory_read, 3, 0, 0, "the result of a dot product", mai_valu},
    HazardRule{P::vector_dot, U::vector_write, 3, 0, 0, "the result of a dot product", mai_valu},
    // Scalar registers written by vector instructions.
    HazardRule{P::scalar_by_vector, U::scalar_read_by_vector, 2, 0, 0, "a scalar result of a vector instruction", valu},
    HazardRule{P::scalar_by_vector, U::scalar_read_by_memory, 5, 0, 0, "a scalar result of a vector instruction",
               "LLVM checkVMEMHazards"},
    HazardRule{P::scalar_by_vector, U::lane_select, 4, 0, 0, "a scalar result of a vector instruction",
               "LLVM checkRWLaneHazards"},
    HazardRule{P::scalar_by_vector, U::div_fmas, 4, 0, 0, "VCC written by a vector instruction",
               "LLVM checkDivFMasHazards"},
    HazardRule{P::exec_by_vector, U::exec_by_matrix, 4, 0, 0, "EXEC written by a vector instruction", mai_mai},
    HazardRule{P::exec_by_vector, U::exec_by_dpp, 5, 0, 0, "EXEC written by a vector instruction",
               "LLVM checkDPPHazards"},
    HazardRule{P::exec_by_vector, U::exec_by_lane, 4, 0, 0, "EXEC written by a vector instruction", valu},
    // LLVM asks for this one; AMD's own assembly for gfx950 writes M0 directly before an LDS DMA and has it reported.
    HazardRule{P::m0_by_scalar, U::m0_by_memory, 1, 0, 0, "M0 written by a scalar instruction",
               "LLVM checkReadM0Hazards"},
    HazardRule{P::mode, U::mode_read, 2, 0, 0, "a hardware register written by s_setreg", "LLVM checkGetRegHazards"},
};

}  // namespace

std::span<const HazardRule> hazard_rules() { return rules; }

Product matrix_product(const Instruction& instruction) {
  const isa::MatrixInstruction& shape = *instruction.record->shape;
  if (shape.a == isa::Element::f64) return shape.m == 4 ? Product::matrix_f64_small : Product::matrix_f64;
  return shape.a == isa::Element::f32 ? Product::matrix_f32 : Product::matrix;
}

bool may_lose_an_addition(const Instruction& instruction) {
  constexpr unsigned of_second_source = 2;
  const bool is_fma = instruction.record->kind == IssueKind::packed && instruction.source_count == 3;
  return is_fma && (instruction.op_sel & 7) == of_second_source;
}

unsigned matrix_passes(const Instruction& instruction, const isa::MatrixPipe& pipe) {
  return isa::matrix_passes(*instruction.record->shape, pipe, instruction.cbsz, instruction.blgp);
}

}  // namespace wavejit::simgpu::checks
