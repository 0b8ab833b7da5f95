// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values that cross lanes.
#pragma once

#include <utility>

#include "codegen/language/kernel.h"

namespace wavejit::language {

// A register's value of this lane and of the lane half a wave away (lane xor wave size / 2). One instruction pair where
// the target swaps lane halves, one instruction where it reads the other row of 16, one LDS permute elsewhere.
//
// The order of the two may differ between the halves of a wave. So combine them with a symmetric operation only (a
// maximum, one addition): then both halves get the same bits.
std::pair<Value*, Value*> both_halves(Kernel& kernel, Value* value);

// v_permlane32_swap: lanes 32–63 of `first` change places with lanes 0–31 of `second`.
std::pair<Value*, Value*> swap_halves(Kernel& kernel, Value* first, Value* second);

// v_permlane16_swap: of the rows of 16 lanes, in both of a pair what the first of them has, and what the second has.
std::pair<Value*, Value*> of_both_rows(Kernel& kernel, Value* value);

// Lanes whose registers one vector instruction can read in place of its own.
inline constexpr int lanes_of_quad = 4;
inline constexpr int lanes_of_row = lanes_of_quad * lanes_of_quad;
// f32: the same in a register of its own, which nothing merges with that of `value`.
Value* moved(Kernel& kernel, Value* value);
// f32: in all lanes of such a row what lane `lane` of it has. Folded into the arithmetic that reads it, where that is
// one instruction of two operands. All lanes are active.
Value* of_lane_in_row(Kernel& kernel, Value* value, int lane);
// f32: what the lane has whose number differs in the bit `step`, a power of two below the wave's size. Below a row the
// value is to be the same in all lanes of each `step` of them, as it is on the way of a symmetric operation over steps
// 1, 2, 4 …: what comes is of one of those. All lanes are active.
Value* of_lane_across(Kernel& kernel, Value* value, int step);

// f32: what the lane `distance` before it has, 1 to 15; of the first lanes of such a row `first`. All lanes are active.
Value* of_lane_before(Kernel& kernel, Value* value, int distance, Value* first);

// Sets of lanes, a bit each: i64, uniform.
Value* lanes_where(Kernel& kernel, Value* lane_condition);
// How many are in it; i32.
Value* count_of(Kernel& kernel, Value* lanes);
// How many of them are below the own lane, and `more` besides.
Value* count_below(Kernel& kernel, Value* lanes, Value* more);

}  // namespace wavejit::language
