// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The steps of one compile, in order. The service hangs them into ORC's layers; each can be tested alone.
#pragma once

#include <llvm/ADT/SmallVector.h>

#include <expected>
#include <memory>
#include <span>

#include "codegen/barrier_order.h"
#include "codegen/compiled.h"
#include "codegen/lowering.h"
#include "targets/targets.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace wavejit::codegen {

using ObjectBytes = llvm::SmallVector<char, 0>;

// What a request means, checked before any IR exists.
struct Plan {
  Request::Source source = Request::Source::spec;
  families::KernelSpec spec;
  std::string ir;
  const targets::Target* target = nullptr;
  Lowering lowering = Lowering::llvm;
  LoweringOptions lowering_options;
};

std::expected<Plan, Failure> plan(const Request& request);
std::expected<std::unique_ptr<llvm::Module>, Failure> emit_module(const Plan& plan, llvm::LLVMContext& context);
std::expected<ObjectBytes, Failure> lower_module(const Plan& plan, llvm::Module& module);
std::expected<Bytes, Failure> link_object(const Plan& plan, std::span<const char> object);

}  // namespace wavejit::codegen
