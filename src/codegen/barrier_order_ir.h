// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The IR's side of the barrier check (barrier_order.h).
#pragma once

#include <expected>
#include <string>

#include "codegen/barrier_order.h"

namespace llvm {
class Module;
}

namespace wavejit::codegen {

// The graph of the module's one kernel, to be asked for before the code generator changes the module. The error names
// what the check cannot follow (calls, inline assembly that touches LDS).
std::expected<LdsFlowGraph, std::string> lds_flow_of_ir(const llvm::Module& module);

}  // namespace wavejit::codegen
