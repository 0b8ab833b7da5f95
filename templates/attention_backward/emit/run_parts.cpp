// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_backward/emit/run_parts.h"

#include "codegen/language/lane_place.h"
#include "codegen/language/synchronize.h"
#include "templates/attention_backward/kernel/arguments.h"

namespace wavejit::attention_backward {

using language::Accumulator;
using language::Buffer;
using language::Value;

namespace {
constexpr int part_bytes = 16;
}

// The parts of this workgroup; nothing, which reads as zeros, unless there `are` any.
Buffer RunParts::parts(Value* are) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const auto wide = [&](Value* value) { return ir.CreateZExt(value, kernel_.i64()); };
  // Read where it is needed: scalar registers are short, and loads would be moved out of the loop over runs.
  Value* arguments = language::opaque(kernel_, kernel_.argument_address());
  const auto field = [&](std::size_t at) {
    return kernel_.load_scalar(ir.CreateAdd(arguments, ir.getInt64(offsetof(Arguments, parts) + at)), kernel_.i64());
  };
  const int bytes = tile_keys_of(spec_) * (spec_.head_dim_qk + spec_.head_dim_v) * static_cast<int>(sizeof(float));
  Value* base = field(offsetof(RowNumbersArgument, pointer));
  base = ir.CreateAdd(base, ir.CreateMul(wide(place_.batch), field(offsetof(RowNumbersArgument, batch_stride))));
  base = ir.CreateAdd(base, ir.CreateMul(wide(place_.kv_head), field(offsetof(RowNumbersArgument, head_stride))));
  base = ir.CreateAdd(base, ir.CreateMul(wide(kernel_.workgroup_y()), ir.getInt64(static_cast<std::uint64_t>(bytes))));
  return {kernel_, base, ir.CreateSelect(are, kernel_.constant(bytes), kernel_.constant(0))};
}

Value* RunParts::own_place() const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* thread = ir.CreateAdd(ir.CreateMul(kernel_.wave(), kernel_.constant(kernel_.target().wave_size)),
                               attention::lane_made_anew(kernel_));
  return ir.CreateMul(thread, kernel_.constant(part_bytes));
}

// The place of four registers of a sum. The lane's offset has all of it: constants in scalar registers would be kept
// there through the run.
Value* RunParts::place_of(Value* own, std::size_t sum, int r) const {
  const int registers = language::wave_shape(kernel_).registers();
  const int part = ((static_cast<int>(sum) * registers) + r) / 4;
  return kernel_.ir().CreateAdd(own, kernel_.constant(part * threads * part_bytes));
}

Value* RunParts::read(const Buffer& from, Value* own, std::size_t sum, int r) const {
  Value* loaded = from.load(part_bytes, place_of(own, sum, r), kernel_.constant(0));
  return kernel_.ir().CreateBitCast(loaded, kernel_.vector(kernel_.f32(), 4));
}

void RunParts::add(std::span<const Accumulator> run, std::size_t first, Value* are_before) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const Buffer before = parts(are_before);
  const Buffer after = parts(ir.getTrue());
  Value* own = own_place();
  for (std::size_t sum = 0; sum < run.size(); ++sum)
    for (int r = 0; r < run[sum].layout.registers(); r += 4) {
      Value* four = ir.CreateShuffleVector(run[sum].value, {r, r + 1, r + 2, r + 3});
      Value* both = ir.CreateFAdd(read(before, own, first + sum, r), four);
      after.store(ir.CreateBitCast(both, kernel_.vector(kernel_.i32(), 4)), place_of(own, first + sum, r),
                  kernel_.constant(0));
    }
}

void RunParts::put(std::span<const Accumulator> sums, std::size_t first) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const Buffer to = parts(ir.getTrue());
  Value* own = own_place();
  for (std::size_t i = 0; i < sums.size(); ++i)
    for (int r = 0; r < sums[i].layout.registers(); r += 4) {
      Value* four = ir.CreateShuffleVector(sums[i].value, {r, r + 1, r + 2, r + 3});
      to.store(ir.CreateBitCast(four, kernel_.vector(kernel_.i32(), 4)), place_of(own, first + i, r),
               kernel_.constant(0));
    }
}

void RunParts::take(std::span<Accumulator> sums, std::size_t first) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  const Buffer all = parts(ir.getTrue());
  Value* own = own_place();
  for (std::size_t i = 0; i < sums.size(); ++i) {
    Value* whole = llvm::PoisonValue::get(sums[i].value->getType());
    for (int r = 0; r < sums[i].layout.registers(); r += 4) {
      Value* four = read(all, own, first + i, r);
      for (int part = 0; part < 4; ++part)
        whole = ir.CreateInsertElement(whole, ir.CreateExtractElement(four, static_cast<std::uint64_t>(part)),
                                       static_cast<std::uint64_t>(r) + static_cast<std::uint64_t>(part));
    }
    sums[i].value = whole;
  }
}

}  // namespace wavejit::attention_backward
