// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One kernel under construction: module, entry function, attributes, arguments and ids.
//
// The kernel language is a thin layer over LLVM's IRBuilder for one purpose: hand-ordered AMDGPU kernels that need no
// middle-end. What it emits is what the backend gets, in that order; constants fold, nothing else changes.
//
//   Kernel kernel(context, target, {.name = "my_kernel", .threads = 256, .waves_per_simd = 2, .argument_bytes = 24});
//   Value* length = kernel.argument_i32(16);
//   …
//   std::expected<std::unique_ptr<Module>, std::string> module = kernel.finish();
//
// Errors are sticky: a step that cannot be emitted (a layout that does not fit, a capability that is missing) calls
// refuse() and hands back poison; finish() then returns the first reason and no module. Emission code therefore reads
// as straight line, and a kernel with a mistake in it never reaches the backend.
//
// Nothing here assumes 64 lanes or a matrix shape: wave size and capabilities come from the target row.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "targets/targets.h"

namespace wavejit::language {

using llvm::Value;
// Values that travel together: through a branch, or round a loop.
using Values = std::vector<Value*>;

// LLVM's AMDGPU address space of what no kernel writes; kernel arguments lie in it.
inline constexpr unsigned constant_space = 4;

struct KernelOptions {
  std::string name;
  int threads = 0;         // exact workgroup size
  int waves_per_simd = 0;  // how many waves must fit: sets the register budget
  int vgpr_budget = 0;     // registers of a lane that such waves have, for emission that plans with them
  int argument_bytes = 0;  // size of the argument struct, passed by value as the kernel's only argument
  // LLVM's pass of that name looks at pairs of address computations. Kernels that have hundreds of them, and nothing to
  // win, do without: of a decode kernel over pages it was 40 % of the compile time.
  bool strength_reduction = true;
};

// An attribute of a function: the lowering leaves that pass out.
inline constexpr const char* no_strength_reduction_attribute = "wavejit-no-strength-reduction";

class Kernel {
 public:
  Kernel(llvm::LLVMContext& context, const targets::Target& target, const KernelOptions& options);

  const targets::Target& target() const { return target_; }
  int threads() const { return threads_; }
  int vgpr_budget() const { return vgpr_budget_; }
  llvm::IRBuilder<>& ir() { return ir_; }
  llvm::Module& module() { return *module_; }
  llvm::Function& function() { return *function_; }
  llvm::LLVMContext& context() { return ir_.getContext(); }

  // Remembers the first reason; later ones follow from it.
  void refuse(std::string reason);
  bool refused() const { return !error_.empty(); }
  // The verified module, or the reason why there is none. Ends the kernel; call once.
  std::expected<std::unique_ptr<llvm::Module>, std::string> finish();

  // Fields of the argument struct by byte offset: uniform, scalar loads.
  Value* argument_i64(std::size_t offset);
  Value* argument_i32(std::size_t offset);
  Value* argument_f32(std::size_t offset);
  Value* argument_address();  // i64, of the struct itself
  // From here on arguments are read again where they are asked for, also those that were read before: the backend keeps
  // no register for one of them on the way here. For what comes behind a long loop; what is emitted later is behind it.
  void read_arguments_anew();

  // A scalar load: `address` i64, uniform and aligned, of memory that nobody writes while the kernel runs.
  Value* load_scalar(Value* address, llvm::Type* type);

  Value* workgroup_x();
  Value* workgroup_y();
  Value* workgroup_z();
  Value* thread();  // 0 … threads − 1
  Value* lane();    // 0 … wave size − 1
  Value* wave();    // wave of the workgroup, provably uniform

  llvm::Type* i16() { return ir_.getInt16Ty(); }
  llvm::Type* i32() { return ir_.getInt32Ty(); }
  llvm::Type* i64() { return ir_.getInt64Ty(); }
  llvm::Type* f32() { return ir_.getFloatTy(); }
  llvm::Type* vector(llvm::Type* element, int count);
  Value* constant(int value) { return ir_.getInt32(static_cast<std::uint32_t>(value)); }
  Value* constant(float value);

  // `value` as a scalar register holds it: the same in every lane, and known to be.
  Value* uniform(Value* value);

 private:
  Value* argument(std::size_t offset, llvm::Type* type);

  const targets::Target& target_;
  std::unique_ptr<llvm::Module> module_;
  llvm::IRBuilder<> ir_;
  llvm::Function* function_ = nullptr;
  Value* arguments_ = nullptr;  // where they stand
  int argument_bytes_ = 0;
  int threads_ = 0;
  int vgpr_budget_ = 0;
  Value* thread_ = nullptr;
  Value* lane_ = nullptr;
  Value* wave_ = nullptr;
  std::string error_;
};

}  // namespace wavejit::language
