// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// f32 → 16-bit, round to nearest even, packed two to a dword; and what is exact: bf16 → f32, 8 bits → all.
#pragma once

#include <array>
#include <span>

#include "codegen/language/fragment.h"

namespace wavejit::language {

// What a conversion must do with NaN (quiet ones: results of arithmetic). Where the target converts bf16 in one
// instruction all are the same code; the arithmetic substitute turns NaNs with a long payload, one that reaches into
// the lower half of the dword, into zero unless it tests. `kept_short`: there are no long ones, and it does not test.
// Arithmetic hands on an operand's payload: 16-bit operands make no long ones, nor do ∞ − ∞ and 0 · ∞.
enum class NanInput : std::uint8_t { kept, kept_short, irrelevant };

// f32 from elsewhere, for arithmetic whose result is then `kept_short`: any NaN becomes a short one.
Value* with_short_nan(Kernel& kernel, Value* value);

// <2 x float> → dword with element 0 in the low half.
Value* convert_pair(Kernel& kernel, Value* pair, Element element, NanInput nan);

// registers [first, first + count) of a float vector → count / 2 dwords.
std::vector<Value*> convert_packed(Kernel& kernel, Value* registers, int first, int count, Element element,
                                   NanInput nan);

// The bf16 in the low (0) or high (1) half of a dword.
Value* float_of_bf16(Kernel& kernel, Value* dword, int half);

// Elements of 8 bits: floats as the target encodes them (Target::fp8), with an exponent of 4 bits or of 5, or signed
// integers. All of their values are values of bf16 and fp16, infinities and NaN included.
enum class ByteElement : std::uint8_t { e4m3, e5m2, i8 };

// Widens two of the four bytes in a dword, those of its low (0) or high (1) half, to a dword of `element`. `scale`,
// f32: times the power of two that its exponent says, where the target has it in the same instruction
// (Target::byte_convert_16); null: 1.
Value* widen_bytes(Kernel& kernel, Value* dword, int half, ByteElement type, Element element, Value* scale = nullptr);
// The same to f32.
std::array<Value*, 2> floats_of_bytes(Kernel& kernel, Value* dword, int half, ByteElement type);
// Two f32 that are values of `element`, to a dword with the first in its low half.
Value* pack_exact(Kernel& kernel, Value* first, Value* second, Element element);

// Dwords → <n x i32>.
Value* gather_dwords(Kernel& kernel, std::span<Value* const> dwords);

}  // namespace wavejit::language
