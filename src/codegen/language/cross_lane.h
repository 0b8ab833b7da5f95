// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Values that cross lanes.
#pragma once

#include <utility>

#include "codegen/language/kernel.h"

namespace wavejit::language {

// The same register of the lane half a wave away (lane xor wave size / 2), for a combination that is the same in both
// halves. One instruction pair where the target swaps lane halves, one LDS permute elsewhere.
//
// The two values come in the same order in both halves where `combine` must be exact about order: for a symmetric
// operation (max, one addition) both halves get the same bits whichever way.
std::pair<Value*, Value*> both_halves(Kernel& kernel, Value* value);

// v_permlane32_swap: lanes 32–63 of `first` change places with lanes 0–31 of `second`.
std::pair<Value*, Value*> swap_halves(Kernel& kernel, Value* first, Value* second);

}  // namespace wavejit::language
