// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What an instruction touches, apart from what it computes: registers, memory, counters. Worked out from its record
// (decode/record.h), operands and modifiers, once per decoded instruction, the first time that its function runs under
// checks; the handlers know nothing of it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "simgpu/checkers/facts/hazard_rules.h"
#include "simgpu/checkers/facts/register_set.h"
#include "simgpu/machine/decode/function.h"
#include "simgpu/machine/instruction/instruction.h"
#include "simgpu/machine/vector/execute.h"

namespace wavejit::simgpu::checks {

struct Counts {
  static constexpr std::uint8_t any = 255;
  std::uint8_t vector = 63;  // vmcnt
  std::uint8_t local = 15;   // lgkmcnt
  // RDNA4 has a counter for each kind: `vector` is loadcnt, `local` dscnt, and these are storecnt and kmcnt.
  bool split = false;
  std::uint8_t store = any;
  std::uint8_t scalar = any;
};

struct Effects {
  static constexpr std::uint8_t none_kept = 255;
  std::array<Registers, 10> reads;
  std::array<Registers, 3> writes;
  std::uint8_t read_count = 0;
  std::uint8_t write_count = 0;
  RegisterSet touched;  // all of them at once

  Action action = Action::none;
  Space space = Space::none;
  bool loads = false;
  bool stores = false;
  bool atomic = false;
  bool swaps = false;              // an atomic that writes if it finds what it was given
  bool lds_dma = false;            // a load whose data goes to LDS
  std::uint8_t kept = none_kept;   // the one of `reads` that is a destination of which the rest is kept
  bool keeps_destination = false;  // the destination's old value matters: halves, accumulators, swaps
  bool all_lanes = false;          // works on all lanes whatever EXEC says
  bool opaque = false;             // registers chosen at run time (M0-relative): not followed
  bool trans = false;              // transcendental vector instruction
  bool vector_alu = false;         // any v_ instruction but the matrix ones
  bool scalar_alu = false;
  bool writes_scc = false;
  bool reads_scc = false;
  std::uint8_t bytes = 0;     // of one element, a lane
  std::uint8_t elements = 1;  // 2 for ds_read2 and its kind
  std::uint16_t stride = 0;   // what the offsets of two-address LDS instructions count
  std::uint8_t address_operand = 0;
  std::uint8_t data_operand = 0;  // first data operand of a store or atomic among the sources
  std::uint8_t wait_states = 1;
  Product product = Product::none;  // of what it writes, for `hazards`; of matrix instructions their own
  bool asks_hazards = false;        // in danger of more than what the registers that it touches await
  Counts wait;

  // Counters that it raises.
  bool counts_vector = false;
  bool counts_local = false;
  bool counts_store = false;  // and not as a load, where the two are counted apart

  const vector::Bound* bound = nullptr;  // vector instructions with a lane kernel
};

// By place in Function::instructions.
class FunctionEffects {
 public:
  explicit FunctionEffects(const Function& function);
  const Effects& operator[](std::size_t index) const { return effects_[index]; }
  // Whether some instruction is there for what other workgroups see: cache control, loads and stores of agent scope.
  bool orders_workgroups() const { return orders_workgroups_; }
  // Whether it has a compare-and-swap.
  bool swaps() const { return swaps_; }

 private:
  std::vector<Effects> effects_;
  bool orders_workgroups_ = false;
  bool swaps_ = false;
};

// Made at the first call, kept with the function.
const FunctionEffects& effects_of(const Function& function);

Effects describe(const Instruction& instruction);

}  // namespace wavejit::simgpu::checks
