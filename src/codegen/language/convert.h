// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f32 → 16-bit, round to nearest even, packed two to a dword; and bf16 → f32, which is exact.
#pragma once

#include <span>

#include "codegen/language/fragment.h"

namespace wavejit::language {

// What a conversion must do with NaN (quiet ones: results of arithmetic). Where the target converts bf16 in one
// instruction the two are the same code; the arithmetic substitute turns a few NaN patterns into zero unless it tests.
enum class NanInput : std::uint8_t { kept, irrelevant };

// <2 x float> → dword with element 0 in the low half.
Value* convert_pair(Kernel& kernel, Value* pair, Element element, NanInput nan);

// registers [first, first + count) of a float vector → count / 2 dwords.
std::vector<Value*> convert_packed(Kernel& kernel, Value* registers, int first, int count, Element element,
                                   NanInput nan);

// The bf16 in the low (0) or high (1) half of a dword.
Value* float_of_bf16(Kernel& kernel, Value* dword, int half);

// Dwords → <n x i32>.
Value* gather_dwords(Kernel& kernel, std::span<Value* const> dwords);

}  // namespace wavejit::language
