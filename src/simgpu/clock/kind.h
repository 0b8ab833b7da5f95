// How an instruction uses the machine: what decides its cost and which unit takes it.
#pragma once

#include <cstdint>
#include <string>

#include "simgpu/decode/instruction.h"
#include "timing/timing.h"

namespace wavejit::simgpu::clock {

enum class Kind : std::uint8_t {
  matrix,
  plain,
  three_source,
  packed,
  transcendental,
  lane_swap,
  double_precision,
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

Kind kind_of(const Instruction& instruction);
std::string_view to_text(Kind kind);

// Cycles of the vector issue port; 0 for what does not pass it.
int port_cycles(Kind kind, const Instruction& instruction, const timing::IssueCosts& costs);

// Name of an LDS access in the table of timing; empty for what is none. LDS DMA is told from a load by its operand,
// not by its mnemonic.
std::string lds_access_name(const Instruction& instruction);

}  // namespace wavejit::simgpu::clock
