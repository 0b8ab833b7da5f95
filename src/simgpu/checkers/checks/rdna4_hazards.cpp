// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/checkers/checks/rdna4_hazards.h"

#include <algorithm>
#include <format>
#include <string>

#include "simgpu/machine/decode/dual.h"
#include "simgpu/machine/launch/finding.h"

namespace wavejit::simgpu::checks {
namespace {

bool is_vcc(unsigned index) { return index == sgpr_vcc || index == sgpr_vcc + 1; }
// M0 and EXEC are no registers of that file.
bool is_followed(unsigned index) { return index < sgpr_m0; }

// What keeps a dual instruction from reading a DPP instruction's result too early, by trial on a gfx1150.
constexpr std::uint64_t permuted_states = 26;

bool overlap(const Operand& a, const Operand& b) {
  return a.is_vector() && b.is_vector() && a.index < b.index + b.dwords && b.index < a.index + a.dwords;
}

}  // namespace

void Rdna4Hazards::prepare(Rules rules) {
  is_strict_ = rules == Rules::strict;
  permuted_.fill({});
  clock_ = permuted_states;
  last_permuted_ = 0;
  vcc_written_ = {};
  read_by_vector_.fill(false);
  written_.fill({});
  any_written_ = false;
  last_vector_ = nullptr;
  last_wrote_exec_ = false;
}

void Rdna4Hazards::forget(Writer by, bool of_vcc, bool of_others) {
  if (!any_written_) return;
  if (of_vcc && vcc_written_.by == by) vcc_written_ = {};
  for (unsigned i = 0; i < tracked_registers; ++i) {
    if (written_[i].by == by && (is_vcc(i) ? of_vcc : of_others)) written_[i] = {};
  }
}

// va_vdst in bits 15:12, va_sdst in bits 11:9, va_vcc in bit 1, sa_sdst in bit 0.
void Rdna4Hazards::wait_alu(std::uint32_t fields) {
  if (((fields >> 12) & 15) == 0) last_permuted_ = 0;
  if ((fields & 1) == 0) forget(Writer::scalar, true, true);
  if ((fields & 2) == 0) forget(Writer::vector, true, false);
  if (((fields >> 9) & 7) == 0) forget(Writer::vector, false, true);
}

void Rdna4Hazards::check_matrix(Wave& wave, const Instruction& instruction) {
  const Instruction* before = last_vector_;
  if (before == nullptr || before->record->action != Action::matrix) return;
  const Operand& result = before->destination[0];
  if (!overlap(instruction.source[0], result) && !overlap(instruction.source[1], result)) return;
  if (!worth_reporting(wave, instruction, Check::hazards, before)) return;
  report(wave, instruction, Check::hazards, -1,
         std::format("multiplies the result of {} with no vector instruction in between (LLVM fixWMMAHazards)",
                     name_instruction(*before)),
         {.instruction = before, .wave = wave.index});
}

void Rdna4Hazards::report_written(Wave& wave, const Instruction& instruction, unsigned index, Written& written) {
  if (written.by == Writer::none) return;
  if (worth_reporting(wave, instruction, Check::hazards, written.instruction)) {
    const char* field = written.by == Writer::scalar ? "sa_sdst" : is_vcc(index) ? "va_vcc" : "va_sdst";
    const std::string name = is_vcc(index) ? "vcc" : std::format("s{}", index);
    report(wave, instruction, Check::hazards, -1,
           std::format("reads {}, which a vector instruction had read before {} wrote it; "
                       "no s_wait_alu with {} 0 since (LLVM AMDGPUWaitSGPRHazards)",
                       name, name_instruction(*written.instruction), field),
           {.instruction = written.instruction, .wave = wave.index});
  }
  written = {};
}

void Rdna4Hazards::read(Wave& wave, const Instruction& instruction, const Registers& range, bool is_vector) {
  for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) {
    if (!is_followed(i)) continue;
    // A scalar instruction waits for all that vector instructions write. LLVM counts on it for registers that vector
    // instructions may have read on any path, of which a wave has taken one.
    if (!is_vector) forget(Writer::vector, is_vcc(i), !is_vcc(i));
    if (is_vcc(i)) report_written(wave, instruction, i, vcc_written_);
    report_written(wave, instruction, i, written_[i]);
    if (is_vector) read_by_vector_[i / 2] = true;
  }
}

void Rdna4Hazards::write(const Instruction& instruction, const Registers& range, bool is_vector) {
  for (unsigned i = range.first; i < range.first + unsigned{range.count}; ++i) {
    if (!is_followed(i) || !read_by_vector_[i / 2]) continue;
    const Written written = {.by = is_vector ? Writer::vector : Writer::scalar, .instruction = &instruction};
    if (is_vcc(i)) vcc_written_ = written;
    if (!is_vcc(i) || is_strict_) written_[i] = written;
    any_written_ = true;
  }
}

void Rdna4Hazards::check_dual(Wave& wave, const Instruction& instruction) {
  const Dual& dual = dual_of(instruction);
  for (unsigned i = 0; i < std::min(dual.first.source_count, dual.second.source_count); ++i) {
    const Operand& x = dual.first.source[i];
    const Operand& y = dual.second.source[i];
    if (!x.is_vector() || !y.is_vector() || ((x.index ^ y.index) & 1) != 0) continue;
    for (const Operand* source : {&x, &y}) {
      const Permuted& made = permuted_[source->index];
      if (made.by == nullptr || clock_ - made.clock > permuted_states) continue;
      if (!worth_reporting(wave, instruction, Check::hazards, made.by)) return;
      report(wave, instruction, Check::hazards, -1,
             std::format("reads v{} {} wait states after {} as one of two {} registers; gfx11 needs {}, or s_wait_alu "
                         "with va_vdst 0 (ROCm/aotriton#183)",
                         source->index, clock_ - made.clock - 1, name_instruction(*made.by),
                         source->index % 2 == 0 ? "even" : "odd", permuted_states),
             {.instruction = made.by, .wave = wave.index});
      return;
    }
  }
}

void Rdna4Hazards::note_vectors(const Instruction& instruction, const Effects& effects) {
  const bool permutes = instruction.encoding == Encoding::dpp;
  if (!permutes && clock_ - last_permuted_ > permuted_states) return;
  if (last_permuted_ == 0) permuted_.fill({});
  if (permutes) last_permuted_ = clock_;
  for (unsigned i = 0; i < effects.write_count; ++i) {
    const Registers& range = effects.writes[i];
    for (unsigned at = range.first; !range.scalar && at < range.first + unsigned{range.count}; ++at) {
      permuted_[at] = {.by = permutes ? &instruction : nullptr, .clock = clock_};
    }
  }
}

void Rdna4Hazards::step(Wave& wave, const Instruction& instruction, const Effects& effects) {
  clock_ += effects.wait_states;
  if (is_strict_) {
    if (effects.action == Action::dual && last_permuted_ != 0) check_dual(wave, instruction);
    note_vectors(instruction, effects);
  }
  if (effects.action == Action::wait_alu) return wait_alu(instruction.immediate);
  const bool is_matrix = effects.action == Action::matrix;
  const bool is_vector = effects.vector_alu || is_matrix;
  if (effects.space == Space::buffer || effects.space == Space::scalar || effects.space == Space::scalar_buffer) {
    forget(Writer::scalar, true, true);
    forget(Writer::vector, true, true);
    any_written_ = false;
    return;
  }
  if (effects.counts_vector || effects.counts_local) return;
  // Compilers wait for everything before calls and returns, and do not look at the address.
  if (effects.action == Action::jump || effects.action == Action::call) {
    forget(Writer::scalar, true, true);
    forget(Writer::vector, true, true);
    return;
  }
  // Control is scalar, too: s_getpc_b64 writes, s_getreg_b32 and its kind read or write.
  const bool is_scalar = effects.scalar_alu || instruction.instruction_class == InstructionClass::control;
  if (!is_vector && !is_scalar) return;
  if (is_matrix) check_matrix(wave, instruction);
  if (effects.action == Action::permute_row && last_wrote_exec_ &&
      worth_reporting(wave, instruction, Check::hazards, last_vector_)) {
    report(wave, instruction, Check::hazards, -1,
           std::format("permutes lanes right behind {}, with no vector instruction in between "
                       "(LLVM fixVcmpxPermlaneHazards)",
                       name_instruction(*last_vector_)),
           {.instruction = last_vector_, .wave = wave.index});
  }
  for (unsigned i = 0; i < effects.read_count; ++i) {
    if (effects.reads[i].scalar) read(wave, instruction, effects.reads[i], is_vector);
  }
  for (unsigned i = 0; i < effects.write_count; ++i) {
    if (effects.writes[i].scalar) write(instruction, effects.writes[i], is_vector);
  }
  if (!is_vector) return;
  last_vector_ = &instruction;
  last_wrote_exec_ = effects.bound != nullptr && (effects.bound->flags & vector::flag_writes_exec) != 0;
}

}  // namespace wavejit::simgpu::checks
