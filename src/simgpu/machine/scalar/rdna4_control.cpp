// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RDNA4's barriers in two parts, waits with a counter for each kind of memory, hints, messages and hardware registers.
// Semantics: AMD's RDNA4 ISA document; LLVM's AMDGPU operand syntax document ("hwreg").
#include <algorithm>
#include <format>
#include <string_view>

#include "boards/board.h"
#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/launch/launch.h"
#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu {
namespace rdna4_control {
namespace {

void nothing(Wave& /*wave*/, const Instruction& /*instruction*/) {}

// The workgroup's own barrier is number -1; there are others, which compilers do not make.
bool is_own_barrier(Wave& wave, const Instruction& instruction) {
  const Operand& number = instruction.source[0];
  if (number.is_constant() && static_cast<std::int32_t>(number.bits) == -1) return true;
  fault(wave, instruction, "barriers other than the workgroup's own (-1) are not simulated");
  return false;
}

// True: the first one of the workgroup.
bool signal(Wave& wave, const Instruction& instruction) {
  Workgroup& workgroup = *wave.workgroup;
  const bool is_first = std::ranges::none_of(workgroup.waves, &Wave::has_signalled);
  if (workgroup.waves.size() == 1) return true;
  if (wave.has_signalled || wave.may_pass) {
    fault(wave, instruction, "signals a barrier again that it has not waited for");
    return false;
  }
  wave.has_signalled = true;
  workgroup.complete_barrier();
  // The runner has to know before anybody goes on.
  if (workgroup.barrier_was_completed) wave.give_way();
  return is_first;
}
void barrier_signal(Wave& wave, const Instruction& instruction) {
  if (is_own_barrier(wave, instruction)) signal(wave, instruction);
}
void barrier_signal_isfirst(Wave& wave, const Instruction& instruction) {
  if (is_own_barrier(wave, instruction)) wave.scc = signal(wave, instruction) ? 1 : 0;
}
void barrier_wait(Wave& wave, const Instruction& instruction) {
  constexpr std::uint32_t own = 0xffff;
  if ((instruction.immediate & 0xffff) != own) {
    return fault(wave, instruction, "barriers other than the workgroup's own (-1) are not simulated");
  }
  if (wave.workgroup->waves.size() == 1) return;
  if (wave.may_pass) {
    wave.may_pass = false;
    return;
  }
  if (!wave.has_signalled) {
    return fault(wave, instruction, "waits at a barrier that it has not signalled: nothing would let it go on");
  }
  wave.stop(WaveState::at_barrier);
}

void sleep(Wave& wave, const Instruction& instruction) { wave.sleep(wave.scalar(instruction.source[0])); }
void round_mode(Wave& wave, const Instruction& instruction) {
  wave.mode = (wave.mode & ~0xfu) | (instruction.immediate & 0xf);
}
void denorm_mode(Wave& wave, const Instruction& instruction) {
  wave.mode = (wave.mode & ~0xf0u) | ((instruction.immediate & 0xf) << 4);
}

enum HardwareRegister : std::uint8_t {
  register_mode = 1,
  register_status = 2,
  register_gpr_alloc = 5,
  register_lds_alloc = 6,
  register_ib_sts = 7,
  register_exception_flags = 17,
  register_exception_flags_user = 18,
  register_trap_control = 19,
  register_hw_id1 = 23,
  register_hw_id2 = 24,
  register_cycles_low = 29,
  register_cycles_high = 30,
};

// What NaN becomes when it is clamped is no choice here, nor are there IEEE rules of old.
constexpr std::uint32_t fixed_mode_bits = mode_dx10_clamp | mode_ieee;

bool read_hardware(const Wave& wave, unsigned id, std::uint32_t& value) {
  switch (id) {
    case register_mode:
      value = wave.mode & ~fixed_mode_bits;
      return true;
    case register_status:
      value = (wave.exec() == 0 ? 1u << 9 : 0) | (wave.vcc() == 0 ? 1u << 10 : 0) |
              (wave.workgroup->waves.size() > 1 ? 1u << 11 : 0) | (1u << 16);
      return true;
    case register_gpr_alloc:
    case register_ib_sts:
    case register_exception_flags:
    case register_exception_flags_user:
    case register_trap_control:
    case register_hw_id2:
      value = 0;
      return true;
    // Where a wave sits is the machine's choice; ours is: SIMD and slot by wave.
    case register_hw_id1:
      value = (wave.index / 4u) | ((wave.index % 4u) << 8);
      return true;
    case register_lds_alloc:
      value = wave.lds_bytes / static_cast<std::uint32_t>(wave.workgroup->launch->target->lds_granule) << 12;
      return true;
    case register_cycles_low:
      value = static_cast<std::uint32_t>(guest_time(wave).cycles);
      return true;
    case register_cycles_high:
      value = static_cast<std::uint32_t>(guest_time(wave).cycles >> 32);
      return true;
    default:
      return false;
  }
}

struct Field {
  unsigned id;
  unsigned offset;
  std::uint32_t mask;
};
Field field_of(const Instruction& instruction) {
  const unsigned size = ((instruction.immediate >> 11) & 0x1f) + 1;
  return {instruction.immediate & 0x3f, (instruction.immediate >> 6) & 0x1f, size == 32 ? ~0u : (1u << size) - 1};
}
void getreg(Wave& wave, const Instruction& instruction) {
  const Field field = field_of(instruction);
  std::uint32_t value = 0;
  if (!read_hardware(wave, field.id, value)) {
    return fault(wave, instruction, std::format("hardware register {} is not simulated", field.id));
  }
  wave.set_scalar(instruction.destination[0], (value >> field.offset) & field.mask);
}
void setreg(Wave& wave, const Instruction& instruction) {
  const Field field = field_of(instruction);
  const std::uint32_t value = wave.scalar(instruction.source[1]);
  if (field.id == register_mode) {
    const std::uint32_t mask = (field.mask << field.offset) & ~fixed_mode_bits;
    wave.mode = (wave.mode & ~mask) | ((value << field.offset) & mask);
  } else if (field.id != register_exception_flags_user && field.id != register_trap_control) {
    fault(wave, instruction, std::format("writing hardware register {} is not simulated", field.id));
  }
}

// s_sendmsg_rtn: what the wave asks for (LLVM, AMDGPU operand syntax, "sendmsg").
void message_with_answer(Wave& wave, const Instruction& instruction) {
  constexpr unsigned get_doorbell = 128;
  constexpr unsigned get_realtime = 131;
  std::uint64_t answer = 0;
  switch (instruction.immediate & 0xff) {
    case get_realtime:
      answer = guest_time(wave).ticks;
      break;
    case get_doorbell:
      break;
    default:
      return fault(wave, instruction, std::format("message {} is not simulated", instruction.immediate & 0xff));
  }
  if (instruction.destination[0].dwords == 2) {
    wave.set_scalar64(instruction.destination[0], answer);
  } else {
    wave.set_scalar(instruction.destination[0], static_cast<std::uint32_t>(answer));
  }
}

}  // namespace
}  // namespace rdna4_control

void Workgroup::complete_barrier() {
  for (const Wave* wave : waves) {
    if (wave->state != WaveState::ended && !wave->has_signalled) return;
  }
  for (Wave* wave : waves) {
    if (wave->state == WaveState::ended) continue;
    wave->has_signalled = false;
    wave->may_pass = true;
  }
  barrier_was_completed = true;
}

void register_rdna4_control(Registry& registry) {
  namespace own = rdna4_control;
  const auto add = [&](std::string_view name, Handler handler, Record record) {
    record.instruction_class = InstructionClass::control;
    registry.add_own(name, handler, record);
  };
  constexpr Record internal{.kind = IssueKind::scalar};
  const auto waits = [](std::uint8_t counters) {
    return Record{.kind = IssueKind::wait, .action = Action::wait, .waits = counters};
  };
  add("s_wait_loadcnt", own::nothing, waits(counter_load));
  add("s_wait_storecnt", own::nothing, waits(counter_store));
  add("s_wait_dscnt", own::nothing, waits(counter_ds));
  add("s_wait_kmcnt", own::nothing, waits(counter_km));
  add("s_wait_loadcnt_dscnt", own::nothing, waits(counter_load | counter_ds));
  add("s_wait_storecnt_dscnt", own::nothing, waits(counter_store | counter_ds));
  add("s_wait_samplecnt", own::nothing, waits(counter_other));
  add("s_wait_bvhcnt", own::nothing, waits(counter_other));
  add("s_wait_expcnt", own::nothing, waits(counter_other));
  add("s_wait_idle", own::nothing, waits(counter_load | counter_store | counter_ds | counter_km));
  // As gfx11 has it: documents of RDNA4 do not name it, LLVM decodes it, and ROCr's own copies have it.
  add("s_waitcnt", own::nothing, waits(counters_together));
  add("s_wait_alu", own::nothing, {.kind = IssueKind::scalar, .action = Action::wait_alu});
  add("s_delay_alu", own::nothing, {.kind = IssueKind::scalar, .action = Action::delay_alu});
  add("s_barrier_signal", own::barrier_signal,
      {.kind = IssueKind::barrier, .action = Action::signal_barrier, .ends_block = true});
  add("s_barrier_signal_isfirst", own::barrier_signal_isfirst,
      {.kind = IssueKind::barrier, .action = Action::signal_barrier, .ends_block = true, .writes_scc = true});
  add("s_barrier_wait", own::barrier_wait,
      {.kind = IssueKind::barrier, .action = Action::wait_barrier, .ends_block = true});
  add("s_sleep_var", own::sleep, {.kind = IssueKind::scalar, .action = Action::sleep, .ends_block = true});
  add("s_round_mode", own::round_mode, internal);
  add("s_denorm_mode", own::denorm_mode, internal);
  add("s_getreg_b32", own::getreg, {.kind = IssueKind::scalar, .action = Action::get_register});
  add("s_setreg_b32", own::setreg, {.kind = IssueKind::scalar, .action = Action::set_register});
  add("s_setreg_imm32_b32", own::setreg, {.kind = IssueKind::scalar, .action = Action::set_register});
  constexpr Record answered{
      .kind = IssueKind::scalar_load, .space = Space::scalar, .reads_time = true, .counts_local = true};
  add("s_sendmsg_rtn_b32", own::message_with_answer, answered);
  add("s_sendmsg_rtn_b64", own::message_with_answer, answered);
  for (const std::string_view name :
       {"s_clause", "s_version", "s_wait_event", "s_prefetch_inst", "s_prefetch_inst_pc_rel", "s_prefetch_data",
        "s_prefetch_data_pc_rel", "s_buffer_prefetch_data", "s_ttracedata_imm"}) {
    add(name, own::nothing, internal);
  }
  // Caches: everything is in memory at once, for all to see.
  add("global_inv", own::nothing, {.kind = IssueKind::store, .action = Action::invalidate});
  add("global_wb", own::nothing, {.kind = IssueKind::store, .action = Action::write_back, .counts_vector = true});
  add("global_wbinv", own::nothing, {.kind = IssueKind::store, .action = Action::write_back, .counts_vector = true});
}

}  // namespace wavejit::simgpu
