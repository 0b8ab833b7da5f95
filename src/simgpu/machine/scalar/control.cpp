// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Branches, calls, barriers, messages, waits and hardware registers (SOPP and parts of SOP1 and SOPK).
// Semantics: CDNA3 ISA, chapters 4 and 12.5.
#include <format>

#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {
namespace {

void jump(Wave& wave, const Instruction& instruction, std::uint64_t address) {
  const Instruction* target = instruction.function->at(address);
  if (target == nullptr) target = wave.workgroup->launch->code->instruction_at(address);
  if (target == nullptr) {
    return fault(wave, instruction, std::format("jump to {:#x}, which is no instruction of this code object", address));
  }
  wave.next = target;
}

void take(Wave& wave, const Instruction& instruction) {
  if (instruction.target != nullptr) {
    wave.next = instruction.target;
    return;
  }
  const std::int64_t distance = static_cast<std::int16_t>(instruction.immediate) * std::int64_t{4};
  jump(wave, instruction, instruction.address + 4 + static_cast<std::uint64_t>(distance));
}

void branch(Wave& wave, const Instruction& instruction) { take(wave, instruction); }
void cbranch_scc0(Wave& wave, const Instruction& instruction) {
  if (wave.scc == 0) take(wave, instruction);
}
void cbranch_scc1(Wave& wave, const Instruction& instruction) {
  if (wave.scc != 0) take(wave, instruction);
}
void cbranch_vccz(Wave& wave, const Instruction& instruction) {
  if (wave.vcc() == 0) take(wave, instruction);
}
void cbranch_vccnz(Wave& wave, const Instruction& instruction) {
  if (wave.vcc() != 0) take(wave, instruction);
}
void cbranch_execz(Wave& wave, const Instruction& instruction) {
  if (wave.exec() == 0) take(wave, instruction);
}
void cbranch_execnz(Wave& wave, const Instruction& instruction) {
  if (wave.exec() != 0) take(wave, instruction);
}
void getpc(Wave& wave, const Instruction& instruction) {
  wave.set_scalar64(instruction.destination[0], instruction.address + 4);
}
void setpc(Wave& wave, const Instruction& instruction) {
  jump(wave, instruction, wave.scalar64(instruction.source[0]));
}
void swappc(Wave& wave, const Instruction& instruction) {
  const std::uint64_t target = wave.scalar64(instruction.source[0]);
  wave.set_scalar64(instruction.destination[0], instruction.address + 4);
  jump(wave, instruction, target);
}
void call(Wave& wave, const Instruction& instruction) {
  wave.set_scalar64(instruction.destination[0], instruction.address + 4);
  take(wave, instruction);
}

void nothing(Wave&, const Instruction&) {}
void endpgm(Wave& wave, const Instruction&) { wave.stop(WaveState::ended); }
void barrier(Wave& wave, const Instruction&) {
  // A workgroup of one wave needs no meeting (the hardware treats s_barrier as s_nop there).
  if (wave.workgroup->waves.size() > 1) wave.stop(WaveState::at_barrier);
}
void sleep(Wave& wave, const Instruction& instruction) { wave.sleep(instruction.immediate); }
void setprio(Wave& wave, const Instruction& instruction) {
  wave.priority = static_cast<std::uint8_t>(instruction.immediate & 3);
}
void trap(Wave& wave, const Instruction& instruction) {
  // The trap handler ABI: 2 is llvm.trap (abort), 3 is llvm.debugtrap, which does nothing without a debugger.
  if ((instruction.immediate & 0xff) == 3) return;
  fault(wave, instruction,
        std::format("trap {}: the program gave up (abort, assert or __builtin_trap)", instruction.immediate & 0xff));
}
void sethalt(Wave& wave, const Instruction& instruction) {
  if ((instruction.immediate & 1) != 0) fault(wave, instruction, "the wave halts itself: nothing would wake it");
}

// Hardware registers (LLVM's AMDGPU operand syntax document, "hwreg"; CDNA3 ISA, "Hardware registers").
enum HardwareRegister : std::uint8_t {
  register_mode = 1,
  register_status = 2,
  register_trapsts = 3,
  register_hw_id = 4,
  register_gpr_alloc = 5,
  register_lds_alloc = 6,
  register_ib_sts = 7,
  register_sh_mem_bases = 15,
  register_xcc_id = 20,
};

std::uint32_t status_register(const Wave& wave) {
  return wave.scc | (wave.exec() == 0 ? 1u << 9 : 0) | (wave.vcc() == 0 ? 1u << 10 : 0) |
         (wave.workgroup->waves.size() > 1 ? 1u << 11 : 0) | (1u << 16);
}

bool read_hardware(const Wave& wave, unsigned id, std::uint32_t& value) {
  switch (id) {
    case register_mode:
      value = wave.mode;
      return true;
    case register_status:
      value = status_register(wave);
      return true;
    case register_trapsts:
    case register_ib_sts:
      value = 0;
      return true;
    // Where a wave sits is the machine's choice; ours is: SIMD and slot by wave, die by workgroup, everything else 0.
    case register_hw_id:
      value = (wave.index / 4u) | ((wave.index % 4u) << 4);
      return true;
    case register_gpr_alloc:
      value = 0;
      return true;
    case register_lds_alloc:
      value = wave.lds_bytes / static_cast<std::uint32_t>(wave.workgroup->launch->target->lds_granule) << 12;
      return true;
    case register_sh_mem_bases:
      value = static_cast<std::uint32_t>((shared_aperture >> 48) << 16 | (private_aperture >> 48));
      return true;
    // Workgroups go round the dies, as the clock has it.
    case register_xcc_id:
      value = static_cast<std::uint32_t>(wave.workgroup->linear_id %
                                         static_cast<std::uint64_t>(wave.workgroup->launch->target->xcds));
      return true;
    default:
      return false;
  }
}

std::uint32_t field_of(const Instruction& instruction, unsigned& id, unsigned& offset) {
  id = instruction.immediate & 0x3f;
  offset = (instruction.immediate >> 6) & 0x1f;
  const unsigned size = ((instruction.immediate >> 11) & 0x1f) + 1;
  return size == 32 ? ~0u : (1u << size) - 1;
}

void getreg(Wave& wave, const Instruction& instruction) {
  unsigned id = 0;
  unsigned offset = 0;
  const std::uint32_t mask = field_of(instruction, id, offset);
  std::uint32_t value = 0;
  if (!read_hardware(wave, id, value))
    return fault(wave, instruction, std::format("hardware register {} is not simulated", id));
  wave.set_scalar(instruction.destination[0], (value >> offset) & mask);
}
void setreg(Wave& wave, const Instruction& instruction) {
  unsigned id = 0;
  unsigned offset = 0;
  const std::uint32_t mask = field_of(instruction, id, offset);
  const std::uint32_t value = wave.scalar(instruction.source[1]);
  if (id == register_mode) {
    wave.mode = (wave.mode & ~(mask << offset)) | ((value & mask) << offset);
  } else if (id != register_trapsts) {
    fault(wave, instruction, std::format("writing hardware register {} is not simulated", id));
  }
}

void memtime(Wave& wave, const Instruction& instruction) {
  wave.set_scalar64(instruction.destination[0], guest_time(wave).cycles);
}
void memrealtime(Wave& wave, const Instruction& instruction) {
  wave.set_scalar64(instruction.destination[0], guest_time(wave).ticks);
}

// Relative vector register addressing (CDNA3 ISA, "VGPR indexing"): between _on and _off, register numbers of vector
// instructions are moved by M0[7:0]. The wave keeps the operands it applies to; decode/function.cpp wraps the
// instructions.
void set_gpr_idx_on(Wave& wave, const Instruction& instruction) {
  const std::uint32_t index = wave.scalar(instruction.source[0]) & 0xff;
  // The operand mask is encoded in the place of S1: bits 15:12 of M0 keep it.
  const std::uint32_t enabled = instruction.source[1].is_present() ? (instruction.immediate >> 8) & 0xf : 0;
  wave.sgpr[sgpr_m0] = (wave.m0() & 0xffff0f00) | index | (enabled << 12);
}
void set_gpr_idx_idx(Wave& wave, const Instruction& instruction) {
  wave.sgpr[sgpr_m0] = (wave.m0() & 0xffffff00) | (wave.scalar(instruction.source[0]) & 0xff);
}
void set_gpr_idx_mode(Wave& wave, const Instruction& instruction) {
  wave.sgpr[sgpr_m0] = (wave.m0() & 0xffff0fff) | ((instruction.immediate & 0xf) << 12);
}

}  // namespace

void register_control(Registry& registry) {
  const auto add = [&](std::string_view name, Handler handler, Record record) {
    record.instruction_class = InstructionClass::control;
    registry.add(name, handler, record);
  };
  const auto branches = [](Action action) {
    return Record{.kind = IssueKind::branch, .action = action, .ends_block = true};
  };
  constexpr Record internal{.kind = IssueKind::scalar};
  const auto acts = [](Action action) { return Record{.kind = IssueKind::scalar, .action = action}; };
  const auto gives_way = [](IssueKind kind, Action action) {
    return Record{.kind = kind, .action = action, .ends_block = true};
  };
  const auto indexes = [](Action action) {
    return Record{.kind = IssueKind::scalar, .action = action, .writes_m0 = true};
  };
  constexpr Record reads_clock{
      .kind = IssueKind::scalar_load, .space = Space::scalar, .reads_time = true, .counts_local = true};
  constexpr Record cache_control{.kind = IssueKind::store};

  add("s_branch", branch, branches(Action::branch));
  add("s_cbranch_scc0", cbranch_scc0, branches(Action::branch_scc));
  add("s_cbranch_scc1", cbranch_scc1, branches(Action::branch_scc));
  add("s_cbranch_vccz", cbranch_vccz, branches(Action::branch_vcc));
  add("s_cbranch_vccnz", cbranch_vccnz, branches(Action::branch_vcc));
  add("s_cbranch_execz", cbranch_execz, branches(Action::branch_exec));
  add("s_cbranch_execnz", cbranch_execnz, branches(Action::branch_exec));
  add("s_getpc_b64", getpc, internal);
  add("s_setpc_b64", setpc, branches(Action::jump));
  add("s_swappc_b64", swappc, branches(Action::jump));
  add("s_call_b64", call, gives_way(IssueKind::scalar, Action::call));
  add("s_endpgm", endpgm, gives_way(IssueKind::scalar, Action::end));
  add("s_endpgm_saved", endpgm, gives_way(IssueKind::scalar, Action::end));
  add("s_barrier", barrier, gives_way(IssueKind::barrier, Action::barrier));
  add("s_sleep", sleep, gives_way(IssueKind::scalar, Action::sleep));
  add("s_setprio", setprio, acts(Action::set_priority));
  add("s_trap", trap, internal);
  add("s_sethalt", sethalt, gives_way(IssueKind::scalar, Action::halt));
  add("s_getreg_b32", getreg, acts(Action::get_register));
  add("s_setreg_b32", setreg, acts(Action::set_register));
  add("s_setreg_imm32_b32", setreg, acts(Action::set_register));
  add("s_memtime", memtime, reads_clock);
  add("s_memrealtime", memrealtime, reads_clock);
  add("s_set_gpr_idx_on", set_gpr_idx_on, indexes(Action::index_on));
  add("s_set_gpr_idx_off", nothing, indexes(Action::index_off));
  add("s_set_gpr_idx_idx", set_gpr_idx_idx, indexes(Action::index));
  add("s_set_gpr_idx_mode", set_gpr_idx_mode, indexes(Action::index));
  // Memory results arrive at once here, so waits and cache maintenance have nothing to do; hints and profiling have
  // none ever.
  add("s_nop", nothing, acts(Action::nop));
  add("s_waitcnt", nothing, {.kind = IssueKind::wait, .action = Action::wait});
  for (const std::string_view name :
       {"s_wakeup", "s_icache_inv", "s_dcache_inv", "s_dcache_wb", "s_dcache_inv_vol", "s_dcache_wb_vol",
        "s_incperflevel", "s_decperflevel", "s_ttracedata", "s_setkill", "s_sendmsg", "s_code_end"}) {
    add(name, nothing, internal);
  }
  add("buffer_wbl2", nothing, {.kind = IssueKind::store, .action = Action::write_back, .counts_vector = true});
  add("buffer_inv", nothing, {.kind = IssueKind::store, .action = Action::invalidate});
  for (const std::string_view name : {"buffer_wbinvl1", "buffer_wbinvl1_vol"}) add(name, nothing, cache_control);
  add("ds_nop", nothing, {.kind = IssueKind::lds_write});
}

}  // namespace wavejit::simgpu
