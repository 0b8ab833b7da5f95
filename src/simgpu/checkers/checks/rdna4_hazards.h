// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What software owes RDNA4: instructions between dependent ones, and waits for what the ALUs are about to write.
//
// Sources: LLVM 22's AMDGPU backend, which keeps to them in everything that it compiles: fixWMMAHazards and
// fixVcmpxPermlaneHazards of its hazard recognizer, and the pass AMDGPUWaitSGPRHazards.
//
//  * A WMMA whose A or B overlaps the result of the WMMA before it: another vector instruction in between.
//  * A permute of lanes after a v_cmpx: another vector instruction in between.
//  * A pair of scalar registers that a vector instruction has once read and that was written since: who reads it next
//    waits first (s_wait_alu). For a scalar instruction's result: sa_sdst 0. For a vector instruction's: va_sdst 0, of
//    VCC va_vcc 0; a scalar instruction that reads a register (of VCC, VCC) waits by itself for the latter. Accesses
//    to buffers and scalar loads wait for all of it; those by a global, flat or scratch address and to LDS do not.
//    VCC's halves have one state in LLVM: who writes one of them last says what is waited for before either is read.
//    Nobody has said whether the hardware joins them, so Rules::strict asks for what each half was written by, too.
//  * Under Rules::strict: a dual instruction whose halves both read an even, or both an odd, register as the same source,
//    one of which a DPP instruction wrote: 26 instructions or wait states later, or behind va_vdst 0. gfx11 gave old
//    values there (ROCm/aotriton#183: 16 were too few, 26 enough; llvm/llvm-project#220348 forbids such pairs on gfx11).
//    Nobody has reported it of RDNA4, nor that RDNA4 is free of it.
#pragma once

#include <array>
#include <cstdint>

#include "simgpu/checkers/facts/effects.h"
#include "simgpu/machine/wave/wave.h"
#include "simgpu/process/config.h"

namespace wavejit::simgpu::checks {

class Rdna4Hazards {
 public:
  void prepare(Rules rules);
  // An instruction that is about to run.
  void step(Wave& wave, const Instruction& instruction, const Effects& effects);

 private:
  enum class Writer : std::uint8_t { none, scalar, vector };
  struct Written {
    Writer by = Writer::none;
    const Instruction* instruction = nullptr;
  };
  void wait_alu(std::uint32_t fields);
  void forget(Writer by, bool of_vcc, bool of_others);
  void check_matrix(Wave& wave, const Instruction& instruction);
  void report_written(Wave& wave, const Instruction& instruction, unsigned index, Written& written);
  void read(Wave& wave, const Instruction& instruction, const Registers& range, bool is_vector);
  void write(const Instruction& instruction, const Registers& range, bool is_vector);
  void check_dual(Wave& wave, const Instruction& instruction);
  void note_vectors(const Instruction& instruction, const Effects& effects);

  static constexpr unsigned tracked_registers = 128;
  std::array<bool, tracked_registers / 2> read_by_vector_{};  // by pairs
  std::array<Written, tracked_registers> written_{};
  Written vcc_written_;  // either half
  bool is_strict_ = false;
  bool any_written_ = false;
  // Results of DPP instructions, and when they were made.
  struct Permuted {
    const Instruction* by = nullptr;
    std::uint64_t clock = 0;
  };
  static constexpr unsigned vector_registers = 256;
  std::array<Permuted, vector_registers> permuted_{};
  std::uint64_t clock_ = 0;                   // wait states since the wave began
  std::uint64_t last_permuted_ = 0;           // 0: none yet
  const Instruction* last_vector_ = nullptr;  // WMMA included
  bool last_wrote_exec_ = false;              // as v_cmpx does
};

}  // namespace wavejit::simgpu::checks
