// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/private_memory.h"

#include <llvm/IR/InlineAsm.h>

namespace wavejit::language {
namespace {

constexpr unsigned private_space = 5;
constexpr int alignment_bytes = 16;

llvm::Align align_of(int dwords) {
  return llvm::Align(static_cast<std::uint64_t>(dwords > 2 ? alignment_bytes : 4 * dwords));
}

}  // namespace

PrivateMemory::PrivateMemory(Kernel& kernel, int bytes) : kernel_(kernel) {
  llvm::IRBuilder<>& ir = kernel.ir();
  llvm::BasicBlock& entry = kernel.function().getEntryBlock();
  const llvm::IRBuilderBase::InsertPointGuard guard(ir);
  ir.SetInsertPoint(&entry, entry.begin());
  object_ = ir.CreateAlloca(llvm::ArrayType::get(ir.getInt8Ty(), static_cast<std::uint64_t>(bytes)), private_space,
                            nullptr, "private");
  object_->setAlignment(llvm::Align(alignment_bytes));
  kernel.function().addFnAttr(private_bytes_attribute, std::to_string(bytes));
}

Value* PrivateMemory::place() const {
  // An empty instruction whose result is its operand, in a scalar register.
  llvm::Type* pointer = object_->getType();
  llvm::FunctionType* type = llvm::FunctionType::get(pointer, {pointer}, false);
  llvm::CallInst* call = kernel_.ir().CreateCall(llvm::InlineAsm::get(type, "", "=s,0", true), {object_});
  call->setMemoryEffects(llvm::MemoryEffects::none());
  return call;
}

Value* PrivateMemory::load(Value* place, int offset, int dwords) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  llvm::Type* type = dwords == 1 ? kernel_.i32() : kernel_.vector(kernel_.i32(), dwords);
  Value* address = ir.CreateInBoundsGEP(ir.getInt8Ty(), place, kernel_.constant(offset));
  return ir.CreateAlignedLoad(type, address, align_of(dwords));
}

void PrivateMemory::store(Value* place, int offset, Value* dwords) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const int count =
      static_cast<int>(dwords->getType()->getPrimitiveSizeInBits() / kernel_.i32()->getPrimitiveSizeInBits());
  Value* address = ir.CreateInBoundsGEP(ir.getInt8Ty(), place, kernel_.constant(offset));
  ir.CreateAlignedStore(dwords, address, align_of(count));
}

}  // namespace wavejit::language
