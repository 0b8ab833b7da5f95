// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The loop in which a kernel spends its time, and what one turn of it costs.
//
// How the loop is found. The innermost natural loops of the flow graph are looked at. Through the body of such a loop
// there are several paths: tiles at the edge are masked, and a row maximum that grows makes the accumulators rescale.
// Both are branches around work that most turns do not do. The likely path is taken to be
//
//   the one with the most matrix instructions (an unrolled loop runs all of its tiles),
//   of those the one with the fewest accesses to private memory (a chunk of keys that ends puts its part there),
//   of those the one that moves the most data (LDS accesses and loads: a tile is fetched for every tile that is used),
//   of those the one with the fewest port cycles (neither mask nor rescale).
//
// Of several loops (one for whole tiles and one for tiles at the edge, say) the one with the fewest port cycles for
// each cycle of the matrix pipe is the steady state. That waves really take this path turn after turn is not assumed: a
// test lets them run on the simulated GPU and compares instruction by instruction
// (tests/kernels/statics_test.cpp).
#pragma once

#include <cstddef>
#include <expected>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/kernel_code.h"
#include "simgpu/checkers/facts/kind.h"
#include "timing/timing.h"

namespace wavejit::analysis {

using Kind = simgpu::clock::Kind;  // how an instruction uses the machine
using simgpu::clock::kind_of;
using simgpu::clock::lds_access_name;

struct Counts {
  std::map<Kind, int> of;
  std::map<std::string_view, int> of_mnemonic;  // vector instructions only
  int matrix_cycles = 0;
  int port_cycles = 0;

  int count(Kind kind) const {
    const auto found = of.find(kind);
    return found == of.end() ? 0 : found->second;
  }
  double port_to_matrix() const { return static_cast<double>(port_cycles) / matrix_cycles; }
};

struct SteadyState {
  std::vector<const simgpu::Instruction*> path;  // one turn, from the head to the jump back
  Counts counts;
  int branches_passed = 0;  // conditional branches on the path that lead to work that is left out, or out of the loop
};

std::expected<SteadyState, std::string> find_steady_state(const KernelCode& code, const timing::Timing& timing);

}  // namespace wavejit::analysis
