// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The instructions of a program as the clock sees them: who takes them, what they cost, what they need and leave.
// Worked out once per instruction.
#pragma once

#include <unordered_map>
#include <vector>

#include "simgpu/checkers/facts/effects.h"
#include "simgpu/checkers/facts/kind.h"
#include "simgpu/machine/decode/function.h"
#include "timing/timing.h"

namespace wavejit::targets {
struct Target;
}
namespace wavejit::boards {
struct Board;
}

namespace wavejit::simgpu::clock {

// The units. A SIMD issues at most one instruction a look to each; `internal` ones (waits, barriers, no-ops, priority)
// never leave the instruction buffer.
enum class Unit : std::uint8_t { vector, memory, scalar, lds, branch, internal, count };

struct Step {
  const Instruction* instruction = nullptr;
  checks::Effects effects;
  Kind kind = Kind::scalar;
  Unit unit = Unit::scalar;
  int port_cycles = 0;    // of the vector issue port
  int pipe_cycles = 0;    // of the matrix pipe
  int result_cycles = 0;  // of a matrix instruction: from issue until a dependent one may issue
  int interval = 4;       // until the wave issues again
  int data_cycles = 0;    // of the way to LDS and memory: a vector register of all lanes each
  int fetch_cycles = 0;   // of a pair: until what it reads has left the banks of vector registers, beyond the first
  bool transcendental_unit = false;
  bool ahead = false;             // s_delay_alu, s_wait_alu of an ordered target: looked at beside what issues
  bool no_overlap = false;        // never runs beside the matrix pipe
  checks::Registers accumulator;  // C of a matrix instruction
  const timing::LdsAccess* access = nullptr;
  bool writes_scalars = false;
  bool reads_scalars = false;  // of vector instructions of an ordered target
  bool ends_wave = false;
};

Step describe_step(const Instruction& instruction, const timing::Timing& timing, const targets::Target& target);

// The table's row for an LDS access, or that of the nearest width.
const timing::LdsAccess* nearest_access(const timing::Timing& timing, const Instruction& instruction,
                                        const checks::Effects& effects);

// All functions that a launch ran, one after the other.
class Program {
 public:
  Program(const timing::Timing& timing, const boards::Board& board) : timing_(&timing), target_(&board) {}
  // Where the instruction stands in `steps`; its function is described at the first call.
  std::uint32_t find(const Instruction& instruction);
  const std::vector<Step>& steps() const { return steps_; }
  const timing::Timing& timing() const { return *timing_; }
  const boards::Board& target() const { return *target_; }

 private:
  const timing::Timing* timing_;
  const boards::Board* target_;
  std::vector<Step> steps_;
  std::unordered_map<const Function*, std::uint32_t> first_;
  const Function* last_ = nullptr;
  std::uint32_t last_first_ = 0;
};

}  // namespace wavejit::simgpu::clock
