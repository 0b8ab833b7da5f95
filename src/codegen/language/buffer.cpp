// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/buffer.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

namespace wavejit::language {
namespace {
constexpr unsigned global_space = 1;
constexpr unsigned buffer_space = 8;

// SC1, among an instruction's cache bits.
constexpr int scope_bit = 1 << 4;
int cache_bits(Reach reach) { return reach == Reach::agent ? scope_bit : 0; }
}  // namespace

Buffer::Buffer(Kernel& kernel, Value* base, Value* bytes) : kernel_(&kernel), base_(base), bytes_(bytes) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* pointer = ir.CreateIntToPtr(base, ir.getPtrTy(global_space));
  Value* size = ir.CreateZExt(bytes, kernel.i64());
  descriptor_ = ir.CreateIntrinsic(
      llvm::Intrinsic::amdgcn_make_buffer_rsrc, {ir.getPtrTy(buffer_space), ir.getPtrTy(global_space)},
      {pointer, ir.getInt16(0), size, ir.getInt32(kernel.target().buffer_descriptor_word3)});
}

Value* Buffer::load(int bytes, Value* lane_offset, Value* uniform_offset, Reach reach) const {
  llvm::Type* type = bytes == 4 ? kernel_->i32() : kernel_->vector(kernel_->i32(), bytes / 4);
  return kernel_->ir().CreateIntrinsic(
      llvm::Intrinsic::amdgcn_raw_ptr_buffer_load, {type},
      {descriptor_, lane_offset, uniform_offset, kernel_->constant(cache_bits(reach))});
}

void Buffer::store(Value* dwords, Value* lane_offset, Value* uniform_offset, Reach reach) const {
  constexpr unsigned narrow_bits = 64;
  const bool is_wide = dwords->getType()->getPrimitiveSizeInBits() > narrow_bits;
  if (is_wide && !llvm::isa<llvm::Constant>(uniform_offset))
    kernel_->refuse(
        "a store of more than 8 bytes has a uniform offset that is no constant: LLVM 22 lets the next "
        "instruction overwrite its data (llvm/llvm-project#197267); add it to the lane's");
  kernel_->ir().CreateIntrinsic(
      llvm::Intrinsic::amdgcn_raw_ptr_buffer_store, {dwords->getType()},
      {dwords, descriptor_, lane_offset, uniform_offset, kernel_->constant(cache_bits(reach))});
}

Value* Buffer::load_element(int bytes, Value* lane_offset, Value* uniform_offset) const {
  constexpr unsigned bits_of_byte = 8;
  llvm::IRBuilder<>& ir = kernel_->ir();
  Value* element = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_raw_ptr_buffer_load,
                                      {ir.getIntNTy(bits_of_byte * static_cast<unsigned>(bytes))},
                                      {descriptor_, lane_offset, uniform_offset, kernel_->constant(0)});
  return ir.CreateZExt(element, kernel_->i32());
}

void Buffer::store_element(int bytes, Value* element, Value* lane_offset, Value* uniform_offset) const {
  constexpr unsigned bits_of_byte = 8;
  llvm::IRBuilder<>& ir = kernel_->ir();
  store(ir.CreateTrunc(element, ir.getIntNTy(bits_of_byte * static_cast<unsigned>(bytes))), lane_offset,
        uniform_offset);
}

Value* load_lanes(Kernel& kernel, Value* lane_address, int bytes) {
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateAlignedLoad(bytes == 4 ? kernel.i32() : kernel.vector(kernel.i32(), bytes / 4),
                              ir.CreateIntToPtr(lane_address, ir.getPtrTy(global_space)),
                              llvm::Align(static_cast<std::uint64_t>(bytes)));
}

Value* load_transposed(Kernel& kernel, Value* base, Value* lane_offset, int constant_offset) {
  constexpr int elements = 8;
  llvm::IRBuilder<>& ir = kernel.ir();
  if (!kernel.target().transposing_load) {
    kernel.refuse("a transposing load needs global_load_tr_b128, which " + std::string(kernel.target().id) +
                  " does not have");
    return llvm::PoisonValue::get(kernel.vector(kernel.i32(), 4));
  }
  Value* row = ir.CreateGEP(ir.getInt8Ty(), ir.CreateIntToPtr(base, ir.getPtrTy(global_space)),
                            {ir.CreateZExt(lane_offset, kernel.i64())});
  Value* place = ir.CreateConstGEP1_32(ir.getInt8Ty(), row, static_cast<unsigned>(constant_offset));
  Value* loaded =
      ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_global_load_tr_b128, {kernel.vector(kernel.i16(), elements)}, {place});
  return ir.CreateBitCast(loaded, kernel.vector(kernel.i32(), 4));
}

Value* slice_bytes(Kernel& kernel, Value* rows, Value* row_stride, int row_bytes) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // rows · stride + (row_bytes − stride), the second term only if there is a row. No compare of `rows` with 0: beside a
  // subtraction of 1 the backend would turn it into a subtraction with borrow, on the vector unit.
  Value* any = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, rows, kernel.constant(1));
  Value* last = ir.CreateMul(any, ir.CreateSub(kernel.constant(row_bytes), row_stride));
  return ir.CreateAdd(ir.CreateMul(rows, row_stride), last);
}

Value* Buffer::dwords() const {
  constexpr unsigned bits = 128;
  constexpr int dwords = 4;
  llvm::IRBuilder<>& ir = kernel_->ir();
  Value* number = ir.CreatePtrToInt(descriptor_, ir.getIntNTy(bits));
  return ir.CreateBitCast(number, kernel_->vector(kernel_->i32(), dwords));
}

}  // namespace wavejit::language
