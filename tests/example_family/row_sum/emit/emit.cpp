// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// RowSumKernel → IR: a thread adds one row, four elements a load, in order.
#include "families/emit/emit.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <array>
#include <span>

#include "codegen/language/buffer.h"
#include "codegen/language/control.h"
#include "tests/example_family/row_sum/kernel/spec.h"

namespace wavejit::row_sum {
namespace {

using language::Buffer;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int waves_per_simd = 8;

void add_rows(Kernel& kernel, DataType dtype) {
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel.i64()); };
  const int bytes = element_bytes(dtype);
  Value* first_row = ir.CreateMul(kernel.workgroup_x(), kernel.constant(threads));
  Value* rows = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin,
                                         ir.CreateSub(kernel.argument_i32(offsetof(Arguments, rows)), first_row),
                                         kernel.constant(threads));
  Value* row_bytes = ir.CreateMul(kernel.argument_i32(offsetof(Arguments, columns)), kernel.constant(bytes));
  // Slices of exactly this workgroup's rows: threads without a row read zeros, and their stores are dropped.
  const Buffer input(
      kernel,
      ir.CreateAdd(kernel.argument_i64(offsetof(Arguments, input)), ir.CreateMul(wide(first_row), wide(row_bytes))),
      ir.CreateMul(rows, row_bytes));
  const Buffer output(kernel,
                      ir.CreateAdd(kernel.argument_i64(offsetof(Arguments, output)), ir.CreateShl(wide(first_row), 2)),
                      ir.CreateShl(rows, 2));
  Value* lane_offset = ir.CreateMul(kernel.thread(), row_bytes);
  llvm::Type* element = dtype == DataType::fp32 ? kernel.f32() : llvm::Type::getHalfTy(kernel.context());
  const Values end = language::loop_in_phases(
      kernel, 1, {kernel.constant(0), kernel.constant(0.0F)},
      [&](int, const Values& at) {
        Value* offset = kernel.uniform(at[0]);
        Value* loaded = ir.CreateBitCast(input.load(elements_per_load * bytes, lane_offset, offset),
                                         kernel.vector(element, elements_per_load));
        Value* sum = at[1];
        for (std::uint64_t i = 0; i < elements_per_load; ++i) {
          Value* one = ir.CreateExtractElement(loaded, i);
          sum = ir.CreateFAdd(sum, dtype == DataType::fp32 ? one : ir.CreateFPExt(one, kernel.f32()));
        }
        return Values{ir.CreateAdd(offset, kernel.constant(elements_per_load * bytes)), sum};
      },
      [&](const Values& at) { return ir.CreateICmpULT(at[0], row_bytes); });
  output.store(ir.CreateBitCast(end[1], kernel.i32()), ir.CreateShl(kernel.thread(), 2), kernel.constant(0));
}

}  // namespace

families::EmittedModule emit(const RowSumKernel& spec, const targets::Target& target, llvm::LLVMContext& context) {
  Kernel kernel(context, target,
                {.name = "row_sum_" + std::string(families::name_in(data_types, spec.dtype)) + "_" + spec.target,
                 .threads = threads,
                 .waves_per_simd = waves_per_simd,
                 .argument_bytes = sizeof(Arguments)});
  (void)kernel.thread();  // ids are made where they are first asked for: here, where every block can see them
  add_rows(kernel, spec.dtype);
  return kernel.finish();
}

std::span<const families::KernelEmitter> emitters() {
  static constexpr std::array all = {families::emitter_of<RowSumKernel>};
  return all;
}

}  // namespace wavejit::row_sum
