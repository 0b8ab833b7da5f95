// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/lds.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>
#include <llvm/IR/MDBuilder.h>

namespace wavejit::language {
namespace {
constexpr unsigned device_space = 1;
constexpr unsigned local_space = 3;
constexpr int widest_bytes = 16;  // of a lane, in one access
}  // namespace

Lds::Lds(Kernel& kernel, int bytes, int regions) : kernel_(kernel) {
  llvm::Type* type = llvm::ArrayType::get(kernel.ir().getInt8Ty(), static_cast<std::uint64_t>(bytes));
  object_ = new llvm::GlobalVariable(kernel.module(), type, false, llvm::GlobalValue::InternalLinkage,
                                     llvm::PoisonValue::get(type), "lds", nullptr, llvm::GlobalValue::NotThreadLocal,
                                     local_space);
  object_->setAlignment(llvm::Align(widest_bytes));

  llvm::MDBuilder metadata(kernel.context());
  llvm::MDNode* domain = metadata.createAnonymousAliasScopeDomain("lds");
  std::vector<llvm::Metadata*> scopes;
  scopes.reserve(static_cast<std::size_t>(regions));
  for (int region = 0; region < regions; ++region)
    scopes.push_back(metadata.createAnonymousAliasScope(domain, "region" + std::to_string(region)));
  for (std::size_t region = 0; region < scopes.size(); ++region) {
    std::vector<llvm::Metadata*> rest;
    for (std::size_t other = 0; other < scopes.size(); ++other)
      if (other != region) rest.push_back(scopes[other]);
    own_.push_back(llvm::MDNode::get(kernel.context(), {scopes[region]}));
    others_.push_back(llvm::MDNode::get(kernel.context(), rest));
  }
}

Value* Lds::address(Value* offset, int constant_offset) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  llvm::Type* byte = ir.getInt8Ty();
  Value* base = ir.CreateInBoundsGEP(byte, object_, offset);
  return constant_offset == 0 ? base : ir.CreateInBoundsGEP(byte, base, kernel_.constant(constant_offset));
}

void Lds::mark(llvm::Instruction* access, int region) const {
  if (region == any_region) return;
  const auto index = static_cast<std::size_t>(region);
  access->setMetadata(llvm::LLVMContext::MD_alias_scope, own_[index]);
  access->setMetadata(llvm::LLVMContext::MD_noalias, others_[index]);
}

Value* Lds::read(int region, int bytes, Value* offset, int constant_offset) const {
  llvm::Type* type = bytes == 4 ? kernel_.i32() : kernel_.vector(kernel_.i32(), bytes / 4);
  llvm::LoadInst* load = kernel_.ir().CreateAlignedLoad(type, address(offset, constant_offset),
                                                        llvm::Align(static_cast<std::uint64_t>(bytes)));
  mark(load, region);
  return load;
}

void Lds::write(int region, Value* dwords, Value* offset, int constant_offset) const {
  const std::uint64_t bytes = dwords->getType()->getPrimitiveSizeInBits() / 8;
  mark(kernel_.ir().CreateAlignedStore(dwords, address(offset, constant_offset), llvm::Align(bytes)), region);
}

Value* Lds::read_transposed(int region, Value* offset, int constant_offset) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  llvm::Type* dwords = kernel_.vector(kernel_.i32(), 2);
  if (!kernel_.target().transpose_read) {
    kernel_.refuse("transposed LDS reads need ds_read_b64_tr_b16, which " + std::string(kernel_.target().id) +
                   " does not have");
    return llvm::PoisonValue::get(dwords);
  }
  llvm::CallInst* read = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_read_tr16_b64,
                                            {kernel_.vector(kernel_.i16(), 4)}, {address(offset, constant_offset)});
  mark(read, region);
  return ir.CreateBitCast(read, dwords);
}

Value* Lds::read_transposed_bytes(int region, Value* offset, int constant_offset) const {
  llvm::Type* dwords = kernel_.vector(kernel_.i32(), 2);
  if (!kernel_.target().byte_matrix) {
    kernel_.refuse("transposed LDS reads of bytes need ds_read_b64_tr_b8, which " + std::string(kernel_.target().id) +
                   " does not have");
    return llvm::PoisonValue::get(dwords);
  }
  llvm::CallInst* read = kernel_.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_read_tr8_b64, {dwords},
                                                      {address(offset, constant_offset)});
  mark(read, region);
  return read;
}

// The backend cannot select a width that the target lacks and aborts; 8 bytes exist nowhere.
bool Lds::has_dma_of(int bytes) const {
  if (bytes <= kernel_.target().lds_dma_bytes && (bytes == 4 || bytes == 12 || bytes == widest_bytes)) return true;
  kernel_.refuse("LDS DMA of " + std::to_string(bytes) + " bytes a lane: " + std::string(kernel_.target().id) +
                 " has " + std::to_string(kernel_.target().lds_dma_bytes) + " at most");
  return false;
}

void Lds::fill(int region, const Buffer& from, int bytes, Value* lane_offset, Value* uniform_offset, Value* offset,
               int constant_offset) const {
  if (!has_dma_of(bytes)) return;
  Value* zero = kernel_.constant(0);
  mark(kernel_.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_raw_ptr_buffer_load_lds, {},
                                    {from.descriptor(), address(offset, constant_offset), kernel_.constant(bytes),
                                     lane_offset, uniform_offset, zero, zero}),
       region);
}

// The instruction's offset moves both addresses.
void Lds::gather(int region, Value* lane_address, int bytes, Value* offset, int constant_offset,
                 int address_offset) const {
  if (!has_dma_of(bytes)) return;
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* zero = kernel_.constant(0);
  Value* pointer = ir.CreateIntToPtr(lane_address, ir.getPtrTy(device_space));
  mark(ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_global_load_lds, {},
                          {pointer, address(offset, constant_offset - address_offset), kernel_.constant(bytes),
                           kernel_.constant(address_offset), zero}),
       region);
}

}  // namespace wavejit::language
