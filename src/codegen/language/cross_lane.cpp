// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "codegen/language/cross_lane.h"

#include <llvm/IR/IntrinsicsAMDGPU.h>

#include "codegen/language/lane_place.h"

namespace wavejit::language {
namespace {

// What the lane has whose place is the same in the other row of 16.
Value* of_other_row(Kernel& kernel, Value* value) {
  llvm::IRBuilder<>& ir = kernel.ir();
  // Four bits a lane: from which lane of the other row. Each from its own place.
  constexpr std::uint32_t lower_lanes = 0x76543210;
  constexpr std::uint32_t upper_lanes = 0xFEDCBA98;
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_permlanex16, {value->getType()},
                            {llvm::PoisonValue::get(value->getType()), value, ir.getInt32(lower_lanes),
                             ir.getInt32(upper_lanes), ir.getFalse(), ir.getFalse()});
}

}  // namespace

std::pair<Value*, Value*> swap_halves(Kernel& kernel, Value* first, Value* second) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (!kernel.target().permlane32_swap) {
    kernel.refuse("swapping lane halves needs v_permlane32_swap, which " + std::string(kernel.target().id) +
                  " does not have");
    return {first, second};
  }
  Value* swapped =
      ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_permlane32_swap, {}, {first, second, ir.getFalse(), ir.getFalse()});
  return {ir.CreateExtractValue(swapped, 0), ir.CreateExtractValue(swapped, 1)};
}

std::pair<Value*, Value*> of_both_rows(Kernel& kernel, Value* value) {
  llvm::IRBuilder<>& ir = kernel.ir();
  if (!kernel.target().permlane32_swap) {
    kernel.refuse("swapping rows of lanes needs v_permlane16_swap, which " + std::string(kernel.target().id) +
                  " does not have");
    return {value, value};
  }
  Value* bits = ir.CreateBitCast(value, kernel.i32());
  Value* swapped =
      ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_permlane16_swap, {}, {bits, bits, ir.getFalse(), ir.getFalse()});
  return {ir.CreateBitCast(ir.CreateExtractValue(swapped, 0), value->getType()),
          ir.CreateBitCast(ir.CreateExtractValue(swapped, 1), value->getType())};
}

std::pair<Value*, Value*> both_halves(Kernel& kernel, Value* value) {
  llvm::IRBuilder<>& ir = kernel.ir();
  llvm::Type* type = value->getType();
  Value* bits = ir.CreateBitCast(value, kernel.i32());
  if (kernel.target().permlane32_swap && wave_shape(kernel).groups() == 2) {
    // Swapped with itself, a register holds the low half's value in all lanes of one result and the high half's in all
    // lanes of the other.
    const auto [low, high] = swap_halves(kernel, bits, bits);
    return {ir.CreateBitCast(low, type), ir.CreateBitCast(high, type)};
  }
  const int half = kernel.target().wave_size / 2;
  if (kernel.target().permlanex16 && half == lanes_of_row) return {value, of_other_row(kernel, value)};
  // ds_bpermute addresses lanes in bytes.
  Value* address = ir.CreateShl(ir.CreateXor(kernel.lane(), kernel.constant(half)), kernel.constant(2));
  Value* other = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {address, bits});
  return {value, ir.CreateBitCast(other, type)};
}

namespace {

// What the lanes have from others, all of them active. `control`: DPP's. `otherwise`: who has it from nobody; null:
// there is no such lane.
Value* from_other_lanes(Kernel& kernel, Value* value, int control, Value* otherwise = nullptr) {
  constexpr int all = 0xF;
  llvm::IRBuilder<>& ir = kernel.ir();
  return ir.CreateIntrinsic(
      llvm::Intrinsic::amdgcn_update_dpp, {kernel.f32()},
      {otherwise != nullptr ? otherwise : llvm::PoisonValue::get(kernel.f32()), value, kernel.constant(control),
       kernel.constant(all), kernel.constant(all), ir.getInt1(otherwise == nullptr)});
}

}  // namespace

Value* moved(Kernel& kernel, Value* value) {
  constexpr int quad_perm_of_own = 0xE4;
  return from_other_lanes(kernel, value, quad_perm_of_own);
}

Value* of_lane_in_row(Kernel& kernel, Value* value, int lane) {
  constexpr int of_first = 0x150;  // CDNA's row_newbcast, RDNA's row_share
  return from_other_lanes(kernel, value, of_first + lane);
}

Value* of_lane_across(Kernel& kernel, Value* value, int step) {
  // Lanes of a quad in another order; half a row, and a whole one, back to front.
  constexpr int quad_of_1032 = 0xB1;
  constexpr int quad_of_2301 = 0x4E;
  constexpr int half_row_mirrored = 0x141;
  constexpr int row_mirrored = 0x140;
  if (step < lanes_of_row) {
    const int control = step == 1               ? quad_of_1032
                        : step == 2             ? quad_of_2301
                        : step == lanes_of_quad ? half_row_mirrored
                                                : row_mirrored;
    return from_other_lanes(kernel, value, control);
  }
  if (kernel.target().permlanex16 && step == lanes_of_row) return of_other_row(kernel, value);
  llvm::IRBuilder<>& ir = kernel.ir();
  // ds_bpermute addresses lanes in bytes.
  Value* address = ir.CreateShl(ir.CreateXor(kernel.lane(), kernel.constant(step)), kernel.constant(2));
  Value* other =
      ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_ds_bpermute, {}, {address, ir.CreateBitCast(value, kernel.i32())});
  return ir.CreateBitCast(other, kernel.f32());
}

Value* of_lane_before(Kernel& kernel, Value* value, int distance, Value* first) {
  constexpr int row_shr = 0x110;  // by no lane
  return from_other_lanes(kernel, value, row_shr + distance, first);
}

Value* lanes_where(Kernel& kernel, Value* lane_condition) {
  return kernel.ir().CreateIntrinsic(llvm::Intrinsic::amdgcn_ballot, {kernel.i64()}, {lane_condition});
}

Value* count_of(Kernel& kernel, Value* lanes) {
  return kernel.ir().CreateTrunc(kernel.ir().CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, lanes), kernel.i32());
}

Value* count_below(Kernel& kernel, Value* lanes, Value* more) {
  constexpr int dword_bits = 32;
  llvm::IRBuilder<>& ir = kernel.ir();
  Value* low = ir.CreateTrunc(lanes, kernel.i32());
  Value* high = ir.CreateTrunc(ir.CreateLShr(lanes, dword_bits), kernel.i32());
  Value* of_low = ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_lo, {}, {low, more});
  return ir.CreateIntrinsic(llvm::Intrinsic::amdgcn_mbcnt_hi, {}, {high, of_low});
}

}  // namespace wavejit::language
