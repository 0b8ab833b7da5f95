// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/kernel.h"

#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/TargetParser/Triple.h>

#include <bit>
#include <utility>

namespace wavejit::language {
namespace {

// Without these the backend adds 256 bytes of hidden arguments, the dispatch and queue pointers and packed work-item
// ids. The code generator alone infers none of them; in a clang build the middle-end does.
constexpr const char* not_needed[] = {
    "amdgpu-no-implicitarg-ptr",  "amdgpu-no-dispatch-ptr",      "amdgpu-no-queue-ptr",
    "amdgpu-no-dispatch-id",      "amdgpu-no-workitem-id-y",     "amdgpu-no-workitem-id-z",
    "amdgpu-no-hostcall-ptr",     "amdgpu-no-heap-ptr",          "amdgpu-no-lds-kernel-id",
    "amdgpu-no-default-queue",    "amdgpu-no-completion-action", "amdgpu-no-multigrid-sync-arg",
    "amdgpu-no-flat-scratch-init"};

constexpr unsigned code_object_version = 500;

}  // namespace

Kernel::Kernel(llvm::LLVMContext& context, const targets::Target& target, const KernelOptions& options)
    : target_(target),
      module_(std::make_unique<llvm::Module>(options.name, context)),
      ir_(context),
      argument_bytes_(options.argument_bytes),
      threads_(options.threads),
      vgpr_budget_(options.vgpr_budget) {
  module_->setTargetTriple(llvm::Triple("amdgcn-amd-amdhsa"));
  // The data layout is the backend's to say (its TargetMachine sets it); nothing here depends on it.
  module_->addModuleFlag(llvm::Module::Error, "amdhsa_code_object_version", code_object_version);

  // The struct travels by reference in the kernarg segment: one argument, fields read by offset, and launch code may
  // hand over the struct as it is.
  auto* struct_type = llvm::ArrayType::get(ir_.getInt8Ty(), static_cast<std::uint64_t>(options.argument_bytes));
  auto* type = llvm::FunctionType::get(ir_.getVoidTy(), {ir_.getPtrTy(constant_space)}, false);
  function_ = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, options.name, *module_);
  function_->setCallingConv(llvm::CallingConv::AMDGPU_KERNEL);
  function_->setVisibility(llvm::GlobalValue::ProtectedVisibility);
  llvm::AttrBuilder argument_attributes(context);
  argument_attributes.addByRefAttr(struct_type);
  argument_attributes.addAlignmentAttr(8);
  argument_attributes.addAttribute(llvm::Attribute::NoUndef);
  function_->addParamAttrs(0, argument_attributes);
  arguments_ = function_->getArg(0);
  arguments_->setName("arguments");

  function_->addFnAttr(llvm::Attribute::NoUnwind);
  function_->addFnAttr(llvm::Attribute::NoRecurse);
  function_->addFnAttr("target-cpu", target.id);
  const std::string threads = std::to_string(options.threads);
  const std::string waves = std::to_string(options.waves_per_simd);
  // The exact size: a range up to 1024 would leave 128 registers a lane and spill.
  function_->addFnAttr("amdgpu-flat-work-group-size", threads + "," + threads);
  function_->addFnAttr("amdgpu-waves-per-eu", waves + "," + waves);
  // All of the unified register file as VGPRs: split in halves, accumulators would be copied between them every tile.
  function_->addFnAttr("amdgpu-agpr-alloc", "0");
  function_->addFnAttr("uniform-work-group-size", "true");
  for (const char* attribute : not_needed) function_->addFnAttr(attribute);
  if (!options.strength_reduction) function_->addFnAttr(no_strength_reduction_attribute);

  ir_.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", function_));
}

void Kernel::refuse(std::string reason) {
  if (error_.empty()) error_ = std::move(reason);
}

std::expected<std::unique_ptr<llvm::Module>, std::string> Kernel::finish() {
  ir_.CreateRetVoid();
  if (refused()) return std::unexpected(error_);
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(*module_, &stream)) return std::unexpected("the emitted IR does not verify: " + complaint);
  return std::move(module_);
}

Value* Kernel::argument(std::size_t offset, llvm::Type* type) {
  const std::size_t bytes = type->getPrimitiveSizeInBits() / 8;
  if (offset % bytes != 0 || offset + bytes > static_cast<std::size_t>(argument_bytes_)) {
    refuse("argument field of " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) +
           " lies outside the argument struct or is not aligned");
    return llvm::PoisonValue::get(type);
  }
  Value* address = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), arguments_, offset);
  llvm::LoadInst* load = ir_.CreateAlignedLoad(type, address, llvm::Align(bytes));
  load->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context(), {}));
  return load;
}

Value* Kernel::argument_i64(std::size_t offset) { return argument(offset, i64()); }
Value* Kernel::argument_i32(std::size_t offset) { return argument(offset, i32()); }
Value* Kernel::argument_f32(std::size_t offset) { return argument(offset, f32()); }
void Kernel::read_arguments_anew() {
  // An empty instruction whose result is its operand: loads from there are loads of another place.
  llvm::FunctionType* type = llvm::FunctionType::get(i64(), {i64()}, false);
  llvm::CallInst* anew = ir_.CreateCall(llvm::InlineAsm::get(type, "", "=s,0", true), {argument_address()});
  anew->setMemoryEffects(llvm::MemoryEffects::none());
  arguments_ = ir_.CreateIntToPtr(anew, ir_.getPtrTy(constant_space));
}
Value* Kernel::argument_address() { return ir_.CreatePtrToInt(function_->getArg(0), i64()); }

Value* Kernel::load_scalar(Value* address, llvm::Type* type) {
  Value* pointer = ir_.CreateIntToPtr(address, ir_.getPtrTy(constant_space));
  return ir_.CreateAlignedLoad(type, pointer, llvm::Align(type->getPrimitiveSizeInBits() / 8));
}

Value* Kernel::workgroup_x() { return ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_workgroup_id_x, {}); }
Value* Kernel::workgroup_y() { return ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_workgroup_id_y, {}); }
Value* Kernel::workgroup_z() { return ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_workgroup_id_z, {}); }

Value* Kernel::thread() {
  if (!thread_) thread_ = ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_workitem_id_x, {});
  return thread_;
}

Value* Kernel::lane() {
  if (!lane_) lane_ = ir_.CreateAnd(thread(), constant(target_.wave_size - 1));
  return lane_;
}

Value* Kernel::wave() {
  if (threads_ <= target_.wave_size) return constant(0);
  if (!wave_) {
    const int shift = std::countr_zero(static_cast<unsigned>(target_.wave_size));
    wave_ = uniform(ir_.CreateLShr(thread(), constant(shift)));
  }
  return wave_;
}

llvm::Type* Kernel::vector(llvm::Type* element, int count) {
  return llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
}

Value* Kernel::constant(float value) { return llvm::ConstantFP::get(f32(), value); }

Value* Kernel::uniform(Value* value) {
  return ir_.CreateIntrinsic(llvm::Intrinsic::amdgcn_readfirstlane, {value->getType()}, {value});
}

}  // namespace wavejit::language
