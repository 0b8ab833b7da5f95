// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A run of vector instructions as a loop over groups of lanes: registers of the wave are read once, kept in registers
// of the host, and written once at the end of a group. Scalar instructions in between are done before the loop, matrix
// instructions in between after it, where neither makes a difference.
#pragma once

#include "simgpu/machine/compile/host/emitter.h"
#include "simgpu/machine/compile/translator.h"

namespace wavejit::simgpu::compile {

// Whether emit_run knows it: lane by lane, no modifier that needs more than a sign or a half.
bool is_vector_translated(const Instruction& instruction);

// How many of the `count` instructions from `first` on can run together. The first is a vector instruction that is
// translated; what is counted ends with one.
std::uint32_t run_length(const Instruction* first, std::uint32_t count, const Host& host);

// Fills `run`'s masks; its address becomes part of the code.
void emit_run(Emitter& emitter, Run& run, const Helpers& helpers);

}  // namespace wavejit::simgpu::compile
