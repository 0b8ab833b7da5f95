// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/pipeline.h"

#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include <format>

#include "codegen/comgr.h"
#include "codegen/link.h"
#include "families/emit/emit.h"

namespace wavejit::codegen {
namespace {

std::expected<std::unique_ptr<llvm::Module>, Failure> parse_ir(const std::string& text, llvm::LLVMContext& context) {
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> module = llvm::parseAssemblyString(text, diagnostic, context);
  if (!module) {
    return fail(Status::invalid, std::format("IR line {}: {}", diagnostic.getLineNo(), diagnostic.getMessage().str()));
  }
  std::string message;
  llvm::raw_string_ostream stream(message);
  if (llvm::verifyModule(*module, &stream)) {
    return fail(Status::invalid, "IR does not verify: " + message.substr(0, message.find('\n')));
  }
  return module;
}

}  // namespace

std::expected<Plan, Failure> plan(const Request& request) {
  Plan plan;
  plan.source = request.source;
  if (request.source == Request::Source::ir) {
    plan.ir = request.text;
    plan.lowering = request.lowering;
    plan.target = targets::find_target(request.target);
    if (!plan.target) {
      return fail(Status::unsupported,
                  std::format("target '{}' is not known; accepted: {}", request.target, targets::known_targets()));
    }
    return plan;
  }
  auto spec = families::parse_spec(request.text);
  if (!spec) return fail(Status::invalid, spec.error());
  plan.spec = std::move(*spec);
  plan.lowering = plan.spec.lowering();
  plan.target = targets::find_target(plan.spec.target());
  if (!plan.target) {
    return fail(Status::unsupported,
                std::format("target '{}' is not known; accepted: {}", plan.spec.target(), targets::known_targets()));
  }
  if (auto reason = plan.spec.refusal()) return fail(Status::unsupported, *std::move(reason));
  return plan;
}

std::expected<std::unique_ptr<llvm::Module>, Failure> emit_module(const Plan& plan, llvm::LLVMContext& context) {
  if (plan.source == Request::Source::ir) return parse_ir(plan.ir, context);
  auto module = families::emit(plan.spec, *plan.target, context);
  if (!module) return fail(Status::unsupported, module.error());
  return std::move(*module);
}

std::expected<ObjectBytes, Failure> lower_module(const Plan& plan, llvm::Module& module) {
  ObjectBytes object;
  const auto lowered = plan.lowering == Lowering::comgr ? comgr::lower(module, *plan.target, object)
                                                        : lower(module, *plan.target, plan.lowering_options, object);
  if (!lowered) return std::unexpected(lowered.error());
  return object;
}

std::expected<Bytes, Failure> link_object(const Plan& plan, std::span<const char> object) {
  return plan.lowering == Lowering::comgr ? comgr::link(object, *plan.target) : link_code_object(object);
}

}  // namespace wavejit::codegen
