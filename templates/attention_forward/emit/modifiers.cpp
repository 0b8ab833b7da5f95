// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "templates/attention_forward/emit/modifiers.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include <numbers>

#include "templates/attention_forward/emit/mask.h"
#include "templates/attention_forward/kernel/arguments.h"
#include "templates/attention_forward/kernel/parameters.h"

namespace wavejit::attention_forward {
namespace {

using language::Accumulator;
using language::AccumulatorLayout;
using language::Kernel;
using language::Value;
using language::Values;

constexpr int element_bytes = 2;
constexpr float log2e = std::numbers::log2e_v<float>;

Value* fused(Kernel& kernel, Value* a, Value* b, Value* c) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::fma, {kernel.f32()}, {a, b, c});
}

Value* wide(Kernel& kernel, Value* value) { return kernel.ir().CreateZExt(value, kernel.i64()); }

// Low half: heads of a group stand within 2 GiB (problem.cpp).
Value* bias_head_stride(Kernel& kernel) { return kernel.argument_i32(offsetof(Arguments, bias_head_stride)); }

// The rows of this sequence for its batch and head. A row is as long as the longest sequence's, rounded up to what one
// load takes; what a tile reads beyond it belongs to hidden keys.
language::Buffer bias_buffer(Kernel& kernel, const Workgroup& workgroup, Value* row_stride) {
  constexpr int granule = 8;  // elements: rows are padded to it
  llvm::IRBuilder<>& ir = kernel.ir();
  const auto step = [&](Value* index, Value* stride) { return ir.CreateMul(wide(kernel, index), stride); };
  Value* base = kernel.argument_i64(offsetof(Arguments, bias));
  base = ir.CreateAdd(base, step(workgroup.batch, kernel.argument_i64(offsetof(Arguments, bias_batch_stride))));
  base = ir.CreateAdd(base, step(workgroup.query_head, kernel.argument_i64(offsetof(Arguments, bias_head_stride))));
  base = ir.CreateAdd(base, step(workgroup.query_start, wide(kernel, row_stride)));
  Value* keys = kernel.argument_i32(offsetof(Arguments, key_length));
  Value* row_bytes =
      ir.CreateMul(ir.CreateAnd(ir.CreateAdd(keys, kernel.constant(granule - 1)), kernel.constant(-granule)),
                   kernel.constant(element_bytes));
  Value* other_rows = ir.CreateSub(workgroup.query_length, kernel.constant(1));
  Value* bytes = ir.CreateAdd(ir.CreateMul(other_rows, row_stride), row_bytes);
  return {kernel, base, span_of_heads(kernel, workgroup, bytes, bias_head_stride(kernel))};
}

}  // namespace

Value* number_of_head(Kernel& kernel, const Workgroup& workgroup, Value* numbers) {
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* head = ir.CreateAdd(numbers, ir.CreateShl(wide(kernel, workgroup.query_head), 2));
  if (workgroup.group == nullptr) return kernel.load_scalar(head, kernel.f32());
  const language::Buffer group(kernel, head, ir.CreateShl(workgroup.group, 2));
  Value* number = group.load(4, ir.CreateShl(workgroup.head_in_group, 2), kernel.constant(0));
  return ir.CreateBitCast(number, kernel.f32());
}

ScoreModifiers::ScoreModifiers(Kernel& kernel, const KernelSpec& spec, const Workgroup& workgroup)
    : kernel_(kernel), spec_(spec), workgroup_(workgroup) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (spec.has(Modifier::softcap)) {
    // The magnitude of the rate, whatever its sign: scores carry the sign of the scale (query_sign). Finite, so that a
    // score of 0 gives 0.
    Value* rate = ir.CreateAnd(kernel.argument_i32(offsetof(Arguments, softcap_rate)), ir.getInt32(0x7FFFFFFF));
    rate = ir.CreateBinaryIntrinsic(llvm::Intrinsic::umin, rate, ir.getInt32(0x7F7FFFFF));
    cap_rate_ = ir.CreateBitCast(rate, kernel.f32());
    cap_ = kernel.argument_f32(offsetof(Arguments, softcap_log2e));
    minus_two_cap_ = ir.CreateFMul(cap_, kernel.constant(-2.0F));
  }
  if (spec.has(Modifier::alibi)) {
    Value* slope = kernel.argument_i64(offsetof(Arguments, alibi));
    slope = ir.CreateAdd(slope, ir.CreateMul(wide(kernel, workgroup.batch),
                                             kernel.argument_i64(offsetof(Arguments, alibi_batch_stride))));
    minus_slope_ = ir.CreateFMul(number_of_head(kernel, workgroup, slope), kernel.constant(-log2e));
    if (!spec.packed_heads) minus_slope_ = kernel.uniform(minus_slope_);
  }
  if (spec.has(Modifier::bias)) {
    bias_row_stride_ = kernel.argument_i32(offsetof(Arguments, bias_row_stride));
    bias_ = std::make_unique<language::Buffer>(bias_buffer(kernel, workgroup, bias_row_stride_));
    if (!registers_are_short(spec)) bias_offset_ = bias_offset();
  }
}

Value* ScoreModifiers::softmax_scale() const {
  return spec_.modified() ? kernel_.constant(1.0F) : workgroup_.scale_log2e;
}

Value* ScoreModifiers::bias_offset() const {
  constexpr int group_keys = 4;
  llvm::IRBuilder<>& ir = kernel_.ir();
  const LanePlace place = lane_place(kernel_, spec_, workgroup_);
  Value* row = ir.CreateMul(place.row, bias_row_stride_);
  if (workgroup_.group != nullptr) {
    row = ir.CreateAdd(row, ir.CreateMul(workgroup_.head_in_group, bias_head_stride(kernel_)));
    row = ir.CreateSelect(workgroup_.has_row, row, ir.getInt32(0x80000000));
  }
  return ir.CreateAdd(row, ir.CreateMul(place.lane_group, kernel_.constant(group_keys * element_bytes)));
}

Values ScoreModifiers::fetch(Value* tile) const {
  if (!bias_) return {};
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* offset = bias_offset_ ? bias_offset_ : bias_offset();
  Value* tile_offset = ir.CreateMul(tile, kernel_.constant(spec_.tile_keys * element_bytes));
  // Four consecutive keys stand in four consecutive registers; the next four are the other lane group's.
  constexpr int keys_per_load = 4;
  Values loaded;
  for (int key = 0; key < spec_.tile_keys; key += 2 * keys_per_load) {
    loaded.push_back(bias_->load(keys_per_load * element_bytes,
                                 ir.CreateAdd(offset, kernel_.constant(key * element_bytes)), tile_offset));
  }
  return loaded;
}

Value* ScoreModifiers::bias_of(const Values& fetched, std::size_t part, int r) const {
  llvm::IRBuilder<>& ir = kernel_.ir();
  Value* four = fetched[part * 4 + static_cast<std::size_t>(r / 4)];
  if (spec_.dtype == DataType::fp16) {
    llvm::Type* half = llvm::Type::getHalfTy(kernel_.context());
    Value* elements = ir.CreateBitCast(four, kernel_.vector(half, 4));
    return ir.CreateFPExt(ir.CreateExtractElement(elements, static_cast<std::uint64_t>(r % 4)), kernel_.f32());
  }
  Value* dword = ir.CreateExtractElement(four, static_cast<std::uint64_t>(r % 4 / 2));
  Value* bits = r % 2 == 0 ? ir.CreateShl(dword, 16) : ir.CreateAnd(dword, ir.getInt32(0xFFFF0000));
  return ir.CreateBitCast(bits, kernel_.f32());
}

void ScoreModifiers::apply(Value* tile, const Values& fetched, std::span<Accumulator> scores) const {
  if (!spec_.modified()) {
    apply_mask(kernel_, spec_, workgroup_, tile, scores);
    return;
  }
  llvm::IRBuilder<>& ir = kernel_.ir();
  const AccumulatorLayout& layout = scores.front().layout;
  // How far the first key of the lane's group stands from the diagonal; exact as a float below 2²⁴.
  Value* distance = nullptr;
  if (spec_.has(Modifier::alibi)) {
    const LanePlace place = lane_place(kernel_, spec_, workgroup_);
    Value* key = ir.CreateAdd(ir.CreateMul(tile, kernel_.constant(spec_.tile_keys)),
                              ir.CreateMul(place.lane_group, kernel_.constant(layout.row_block)));
    distance = ir.CreateSIToFP(ir.CreateSub(ir.CreateSub(key, workgroup_.diagonal_offset), place.row), kernel_.f32());
  }
  for (std::size_t part = 0; part < scores.size(); ++part) {
    Value* modified = scores[part].value;
    for (int r = 0; r < layout.registers(); ++r) {
      Value* x = ir.CreateExtractElement(scores[part].value, r);
      if (spec_.has(Modifier::softcap)) {
        Value* power = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_exp2, {kernel_.f32()}, {ir.CreateFMul(x, cap_rate_)});
        Value* reciprocal = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_rcp, {kernel_.f32()},
                                               {ir.CreateFAdd(power, kernel_.constant(1.0F))});
        x = fused(kernel_, reciprocal, minus_two_cap_, cap_);
      } else {
        x = ir.CreateFMul(x, workgroup_.scale_log2e);
      }
      if (spec_.has(Modifier::bias)) x = fused(kernel_, bias_of(fetched, part, r), kernel_.constant(log2e), x);
      if (spec_.has(Modifier::alibi)) {
        const int key = static_cast<int>(part) * layout.rows + layout.row_of_register(r);
        Value* keys = key == 0 ? distance : ir.CreateFAdd(distance, kernel_.constant(static_cast<float>(key)));
        x = fused(kernel_, ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, keys), minus_slope_, x);
      }
      modified = ir.CreateInsertElement(modified, x, r);
    }
    scores[part].value = modified;
  }
  apply_mask(kernel_, spec_, workgroup_, tile, scores);
}

}  // namespace wavejit::attention_forward
