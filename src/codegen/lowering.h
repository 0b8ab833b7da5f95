// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// IR to a relocatable AMDGPU object, in memory, with the schedule of the IR kept.
//
// No middle-end: the emitter writes IR that needs none. Machine sinking is off because it moves LDS reads past barriers
// (a race), both machine schedulers are off because the emitter's order is the schedule. Everything is set through the
// target machine, its pass configuration and function attributes, never through LLVM's command-line options, which are
// process-wide and which the linker resets.
#pragma once

#include <expected>

#include "codegen/compiled.h"

namespace llvm {
class Module;
class TargetMachine;
template <typename T>
class SmallVectorImpl;
}  // namespace llvm

namespace wavejit::codegen {

// The defaults are what kernels are built with; tests switch the passes back on to show what they break.
struct LoweringOptions {
  bool machine_sinking = false;
  bool schedulers = false;
};

// Registers the AMDGPU backend with LLVM; the first call does it, from any thread.
void initialise_backend();

// Triple, data layout and code object version, as this target's backend wants them; the same for every lowering.
std::expected<void, Failure> prepare(llvm::Module& module, const targets::Target& target);

// Appends the object's bytes to `object`. The module is changed by the code generator and of no further use.
// Diagnostics of the backend (LDS that does not fit, an unsupported call) come back as Status::rejected.
std::expected<void, Failure> lower(llvm::Module& module, const targets::Target& target, const LoweringOptions& options,
                                   llvm::SmallVectorImpl<char>& object);

}  // namespace wavejit::codegen
