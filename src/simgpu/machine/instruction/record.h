// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The facts of an instruction that follow from its mnemonic alone. Each mnemonic has one record, in the row that
// registers it.
//
//   registry.add("v_readfirstlane_b32", &execute_readfirstlane, {.action = Action::read_first_lane});
//
// Execution, checks, clock and translator read the record. None of them looks at how a mnemonic is spelled
// (tests/architecture/rules.py). What depends on operands and modifiers is worked out from both: checks/effects.cpp,
// clock/kind.cpp.
//
// A registry belongs to one target, so that another target may give the same mnemonic another record.
#pragma once

#include <cstdint>

namespace wavejit::isa {
struct MatrixInstruction;
}

namespace wavejit::simgpu {

// How statistics count an instruction.
enum class InstructionClass : std::uint8_t { scalar, vector, matrix, memory, lds, control };

// How an instruction uses the machine: what decides its cost and which unit takes it.
enum class IssueKind : std::uint8_t {
  matrix,
  plain,
  three_source,
  packed,
  transcendental,
  lane_swap,
  double_precision,
  wide,      // shifts and comparisons of 64 bits, where they take longer than others
  multiply,  // 32-bit integer products, likewise
  lds_read,
  lds_write,  // and atomics
  lds_dma,
  lds_lanes,  // ds_bpermute_b32 and its kind: the LDS crossbar without its memory
  load,       // and atomics that return something
  store,
  scalar_load,
  wait,
  barrier,
  branch,
  scalar,  // everything else that does not touch the vector port: scalar ALU, priority, no-ops
  count
};

enum class Space : std::uint8_t { none, buffer, global, flat, scratch, lds, scalar, scalar_buffer };

// Instructions that execution, checks or the clock treat specially.
enum class Action : std::uint8_t {
  none,
  wait,  // s_waitcnt
  nop,   // s_nop
  sleep,
  set_priority,
  barrier,
  end,
  halt,
  matrix,
  branch,  // to a place in the function, always
  branch_scc,
  branch_vcc,
  branch_exec,
  call,  // as branch, keeping where it came from
  jump,  // to an address in registers
  set_register,
  get_register,
  index_on,  // from here on vector registers are relative to M0
  index_off,
  index,  // changes how
  read_first_lane,
  read_lane,
  write_lane,
  swap,
  lane_swap,  // v_permlane16/32_swap: works on all lanes
  transpose_read,
  permute_row,      // v_permlane16 and its kind: lanes of a row read each other
  scalar_function,  // v_s_exp_f32 and its kind: the vector ALU, of scalar registers
  dual,             // two vector instructions in one (decode/dual.h)
  wait_alu,         // s_wait_alu: for what the ALUs are about to write
  delay_alu,        // s_delay_alu: a hint that it has to be waited for
  signal_barrier,   // a barrier in two parts: arrived
  wait_barrier,     // and on when all have
  write_back,       // buffer_wbl2: what the L2 holds goes to memory
  invalidate,       // buffer_inv: what caches hold is forgotten
};

// How bytes of undefined value spread from sources to results (checks/definedness*.cpp).
enum class Flow : std::uint8_t {
  arithmetic,  // any undefined byte that is read makes the whole result undefined
  copy,        // one dword, unchanged
  move,        // bytes of the sources, put where the sources in `steering` say
  select,      // each lane takes one of two sources, as its bit says
  insert,      // each bit comes from one of two sources, as a mask says
  mask,        // bits that a constant masks away do not matter
  field,       // bits of the first source, as two constants say
  sum,         // a sum of two dwords: undefined bits affect only higher ones
  pack,        // each source gives half of the result
  // Bit by bit, of scalar instructions. Those that write EXEC as well combine a source with it.
  bits_copied,
  bits_and,
  bits_or,
  bits_and_not,  // the second one inverted
  bits_or_not,
  bits_xor,
  bits_chosen,  // SCC says which
};

// If the second source of a scalar instruction is a constant: which bits of its first source it looks at. below_shift:
// the bits that the result keeps; whether they matter depends on the readers of the result.
enum class Window : std::uint8_t { all, above_shift, below_shift, in_mask, in_field, one_bit };

// Which half of a register a load fills (it keeps the other half), or a store takes.
enum class RegisterHalf : std::uint8_t { whole, low, high };

// Results with wait states of their own (checks/hazard_rules.h).
enum class ResultKind : std::uint8_t { plain, partial, dot_product };

// Counters of outstanding operations, on targets where each kind of memory has its own (RDNA4): bits of Record::waits.
enum Counter : std::uint8_t {
  counter_load = 1,
  counter_store = 2,
  counter_ds = 4,
  counter_km = 8,          // scalar memory and messages
  counter_other = 16,      // of graphics: no simulated instruction raises it
  counters_together = 32,  // in one word: loads, LDS with scalar memory, exports
};

struct Record {
  InstructionClass instruction_class = InstructionClass::vector;
  IssueKind kind = IssueKind::plain;
  Action action = Action::none;
  Flow flow = Flow::arithmetic;
  std::uint8_t steering = 0;  // Flow::move: a bit for each source that only says where bytes go

  // How many of the first printed operands are results. 0: as many as LLVM's description has, which leaves out masks
  // and carries that are printed among the operands.
  std::uint8_t destinations = 0;
  bool op_sel_hi_is_zero = false;  // the value of op_sel_hi where it is not printed
  bool ends_block = false;         // the next instruction is not the next in memory, or another wave may run
  bool relative = false;           // its registers are chosen at run time
  bool keeps_destination = false;  // the destination's old value matters
  bool all_lanes = false;          // works on all lanes whatever EXEC says
  bool reads_m0 = false;
  bool writes_m0 = false;
  bool changes_exec = false;  // reads and writes EXEC without naming it

  // Scalar.
  bool reads_scc = false;
  bool writes_scc = false;
  Window window = Window::all;

  // Vector.
  ResultKind result = ResultKind::plain;
  bool three_sources_are_plain = false;  // as fast as two
  bool divides = false;                  // reads VCC as v_div_fmas does
  bool compares_equal = false;

  // Matrix. The shape's elements decide passes and hazards.
  const isa::MatrixInstruction* shape = nullptr;
  bool formats_in_modifiers = false;  // cbsz and blgp name the formats

  // Memory.
  Space space = Space::none;
  RegisterHalf half = RegisterHalf::whole;
  bool loads = false;
  bool stores = false;
  bool atomic = false;
  bool reads_time = false;     // loads the time at which it issues
  bool swaps = false;          // an atomic that writes only if it finds a given value
  bool to_lds = false;         // a load whose data goes to LDS, whatever its modifiers
  bool counts_vector = false;  // raises vmcnt
  bool counts_local = false;   // raises lgkmcnt
  // Each kind of memory has a counter of its own in place of these two (set by the registry of such a target).
  bool split_counters = false;
  std::uint8_t waits = 0;     // Action::wait: the counters that it waits for
  std::uint8_t bytes = 0;     // of one element of a lane
  std::uint8_t elements = 1;  // 2 for ds_read2 and its kind
  std::uint16_t stride = 0;   // the unit of the offsets of two-address LDS instructions
};

}  // namespace wavejit::simgpu
