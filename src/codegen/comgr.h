// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The second lowering: the installed ROCm's own compiler, comgr, on the same IR.
//
// Loaded by dlopen, and only inside wavejit-compile: comgr swaps signal handlers around each action, holds one mutex
// per process and keeps a compile cache of its own, none of which belongs into a host.
#pragma once

#include <expected>
#include <span>
#include <string>

#include "codegen/compiled.h"

namespace llvm {
class Module;
template <typename T>
class SmallVectorImpl;
}  // namespace llvm

namespace wavejit::codegen::comgr {

// "comgr=3.0 llvm=…": what stands in the key. Status::unavailable when there is no comgr, or one that cannot be used.
std::expected<std::string, Failure> identity();

// IR to a relocatable object, and that to a code object. No middle-end and no machine sinking, as in lowering.h.
std::expected<void, Failure> lower(llvm::Module& module, const targets::Target& target,
                                   llvm::SmallVectorImpl<char>& object);
std::expected<Bytes, Failure> link(std::span<const char> object, const targets::Target& target);

}  // namespace wavejit::codegen::comgr
