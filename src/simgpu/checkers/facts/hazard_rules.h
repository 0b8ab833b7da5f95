// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The wait states that software owes the hardware between an instruction that produces something and one that uses it,
// as data. A wait state is one instruction issued, or one of the n + 1 of s_nop n.
//
// Sources: LLVM 22's AMDGPU backend, whose hazard recognizer (GCNHazardRecognizer.cpp) inserts what is missing into
// everything that this project compiles; its functions are named. tests/simgpu/checks/hazards_test.cpp asks that
// recognizer for every rule and expects the same number, but where LLVM is known to insert too few. AMD's ISA documents
// were not at hand.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "simgpu/machine/instruction/instruction.h"

namespace wavejit::isa {
struct MatrixPipe;
}

namespace wavejit::simgpu::checks {

// What an instruction leaves in a register.
enum class Product : std::uint8_t {
  none,
  vector,        // a vector instruction's result
  vector_trans,  // of a transcendental one
  vector_part,   // written to part of the register (SDWA, op_sel) or scaled on conversion
  vector_dot,
  matrix,                    // of the matrix pipe with small inputs ("XDL")
  matrix_f32,                // f32 inputs
  matrix_f64_small,          // 4x4x4
  matrix_f64,                // 16x16x4
  matrix_c,                  // not a result: C, which the matrix pipe still reads
  store_data,                // not a result: more than 8 bytes that a store still reads
  store_data_behind_offset,  // likewise, of a buffer store whose scalar offset is in a register
  scalar_by_vector,          // SGPR or VCC written by a vector instruction
  exec_by_vector,
  m0_by_scalar,
  mode,  // s_setreg
  count
};

// How an instruction uses it.
enum class Use : std::uint8_t {
  none,
  vector_read,
  trans_read,
  dot_addend,  // the addend of a dot product
  dpp_read,
  lane_read,  // v_readlane, v_readfirstlane: the vector register
  permlane_read,
  memory_read,  // address or data of memory instructions
  vector_write,
  memory_write,  // a load's destination
  matrix_ab,
  matrix_c,        // C overlaps the earlier result without being it, or is that of another matrix instruction
  matrix_float_c,  // the same in an instruction with f32 or f64 inputs, which the small-input pipe does not wait for
  matrix_same_c,   // C is the earlier result: accumulation
  scalar_read_by_vector,
  scalar_read_by_memory,
  lane_select,
  div_fmas,  // v_div_fmas reads VCC
  exec_by_matrix,
  exec_by_dpp,
  exec_by_lane,
  m0_by_memory,
  mode_read,
  count
};

struct HazardRule {
  Product product;
  Use use;
  int states;  // plus `passes` times the producer's passes
  int passes;
  unsigned extra_from;  // plus one on targets with the wide matrix pipe, from this many passes on; 0: never
  std::string_view what;
  std::string_view source;
  unsigned only_passes = 0;  // if not 0, the rule holds only for producers of this many passes
};

std::span<const HazardRule> hazard_rules();

// Passes of the matrix pipe that an instruction takes (src/isa/matrix.h): four clocks each.
unsigned matrix_passes(const Instruction& instruction, const isa::MatrixPipe& pipe);
Product matrix_product(const Instruction& instruction);

// v_pk_fma_f32 with op_sel:[0,1,0], of which ROCm/rocMLIR#2459 reports that gfx950 now and then leaves out the low half's
// addition. LLVM 22 makes it, so that only Rules::strict reports it.
bool may_lose_an_addition(const Instruction& instruction);

}  // namespace wavejit::simgpu::checks
