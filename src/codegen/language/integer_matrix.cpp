// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/integer_matrix.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

namespace wavejit::language {

IntegerMatrix::IntegerMatrix(Kernel& kernel) : kernel_(kernel) {
  if (kernel.target().integer_matrix_k == 0)
    kernel.refuse("products of integers of 8 bits need v_mfma_i32_32x32x16_i8, which " +
                  std::string(kernel.target().id) + " does not have");
}

IntegerSums IntegerMatrix::zeros() const {
  const AccumulatorLayout layout = {.rows = rows, .columns = rows, .wave_size = kernel_.target().wave_size};
  return {llvm::Constant::getNullValue(kernel_.vector(kernel_.i32(), layout.registers())), layout};
}

IntegerSums IntegerMatrix::mma(Value* a, Value* b, const IntegerSums& c) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  IntegerSums sums = c;
  Value* zero = kernel_.constant(0);
  if (kernel_.target().integer_matrix_k == k_block) {
    sums.value =
        ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mfma_i32_32x32x32_i8, {}, {a, b, c.value, zero, zero, zero});
    return sums;
  }
  const auto half = [&](Value* operand, int which) {
    return ir.CreateBitCast(ir.CreateShuffleVector(operand, {2 * which, (2 * which) + 1}), kernel_.i64());
  };
  for (const int which : {0, 1})
    sums.value = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mfma_i32_32x32x16_i8, {},
                                    {half(a, which), half(b, which), sums.value, zero, zero, zero});
  return sums;
}

Accumulator IntegerMatrix::floats(const IntegerSums& sums) const {
  return {kernel_.ir().CreateSIToFP(sums.value, kernel_.vector(kernel_.f32(), sums.layout.registers())), sums.layout};
}

}  // namespace wavejit::language
