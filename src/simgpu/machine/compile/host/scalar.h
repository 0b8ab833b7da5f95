// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar instructions as host code.
#pragma once

#include "simgpu/machine/compile/host/emitter.h"

namespace wavejit::simgpu::compile {

// Whether emit_scalar knows it. None of these ends a block, faults, or touches EXEC.
bool is_scalar_translated(const Instruction& instruction);
void emit_scalar(Emitter& emitter, const Instruction& instruction);

}  // namespace wavejit::simgpu::compile
