// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A block as one host function: runs of vector instructions, scalar instructions, and calls of the interpreter's
// handlers for everything else, in order.
#pragma once

#include <deque>
#include <string>

#include "simgpu/machine/compile/host/emitter.h"
#include "simgpu/machine/compile/translator.h"

namespace wavejit::simgpu::compile {

// Adds `void <name>(Wave*)` to `module`. The runs that its code points to are added to `runs`, which never moves them.
void emit_block(llvm::Module& module, const std::string& name, const Block& block, const Host& host,
                const Helpers& helpers, std::deque<Run>& runs);

}  // namespace wavejit::simgpu::compile
