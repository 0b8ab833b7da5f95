// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What SOP1, SOP2, SOPC and the arithmetic part of SOPK compute. Semantics: CDNA3 ISA, chapter 12.1 to 12.4
// (instruction pseudo-code).
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "simgpu/machine/wave/wave.h"

namespace wavejit::simgpu::scalar {

using u32 = std::uint32_t;
using i32 = std::int32_t;
using u64 = std::uint64_t;
using i64 = std::int64_t;

template <typename T>
T read(const Wave& wave, const Operand& operand) {
  if constexpr (sizeof(T) == 8) {
    if (operand.kind == OperandKind::literal) return static_cast<T>(operand.constant_b64(std::is_signed_v<T>));
    return static_cast<T>(wave.scalar64(operand));
  } else {
    return static_cast<T>(wave.scalar(operand));
  }
}

template <typename T>
void write(Wave& wave, const Instruction& instruction, T value) {
  if constexpr (sizeof(T) == 8) {
    wave.set_scalar64(instruction.destination[0], static_cast<u64>(value));
  } else {
    wave.set_scalar(instruction.destination[0], static_cast<u32>(value));
  }
}

enum class Scc : std::uint8_t { keep, non_zero };

// D = f(S0, S1); SCC as `scc` says.
template <typename Result, typename First, typename Second, Scc scc, Result (*function)(First, Second)>
void binary(Wave& wave, const Instruction& instruction) {
  const Result result = function(read<First>(wave, instruction.source[0]), read<Second>(wave, instruction.source[1]));
  write<Result>(wave, instruction, result);
  if constexpr (scc == Scc::non_zero) wave.scc = result != 0 ? 1 : 0;
}

// D = f(S0)
template <typename Result, typename First, Scc scc, Result (*function)(First)>
void unary(Wave& wave, const Instruction& instruction) {
  const Result result = function(read<First>(wave, instruction.source[0]));
  write<Result>(wave, instruction, result);
  if constexpr (scc == Scc::non_zero) wave.scc = result != 0 ? 1 : 0;
}

// SCC = f(S0, S1)
template <typename First, typename Second, bool (*function)(First, Second)>
void compare(Wave& wave, const Instruction& instruction) {
  wave.scc = function(read<First>(wave, instruction.source[0]), read<Second>(wave, instruction.source[1])) ? 1 : 0;
}

template <typename T>
T bitwise_and(T a, T b) {
  return a & b;
}
template <typename T>
T bitwise_or(T a, T b) {
  return a | b;
}
template <typename T>
T bitwise_xor(T a, T b) {
  return a ^ b;
}
template <typename T>
T bitwise_andn2(T a, T b) {
  return a & ~b;
}
template <typename T>
T bitwise_orn2(T a, T b) {
  return a | ~b;
}
template <typename T>
T bitwise_andn1(T a, T b) {
  return ~a & b;
}
template <typename T>
T bitwise_orn1(T a, T b) {
  return ~a | b;
}
template <typename T>
T bitwise_nand(T a, T b) {
  return ~(a & b);
}
template <typename T>
T bitwise_nor(T a, T b) {
  return ~(a | b);
}
template <typename T>
T bitwise_xnor(T a, T b) {
  return ~(a ^ b);
}

template <typename T>
T shift_left(T a, u32 b) {
  return a << (b & (8 * sizeof(T) - 1));
}
template <typename T>
T shift_right(T a, u32 b) {
  return a >> (b & (8 * sizeof(T) - 1));
}

template <typename T>
T field_mask(u32 size, u32 offset) {
  constexpr u32 top = 8 * sizeof(T) - 1;
  return static_cast<T>(((T{1} << (size & top)) - 1) << (offset & top));
}

// S1 holds the offset in its low bits and the size in bits 22:16.
template <typename T>
T extract_field(T value, u32 control) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr u32 bits = 8 * sizeof(T);
  const u32 offset = control & (bits - 1);
  u32 size = (control >> 16) & 0x7f;
  if (size == 0) return 0;
  if (size > bits - offset) size = bits - offset;
  const auto moved = static_cast<Unsigned>(static_cast<Unsigned>(value) << (bits - offset - size));
  return static_cast<T>(static_cast<T>(moved) >> (bits - size));
}

inline void add_u32(Wave& wave, const Instruction& instruction) {
  const u64 sum = u64{read<u32>(wave, instruction.source[0])} + read<u32>(wave, instruction.source[1]);
  write<u32>(wave, instruction, static_cast<u32>(sum));
  wave.scc = static_cast<u32>(sum >> 32);
}
inline void sub_u32(Wave& wave, const Instruction& instruction) {
  const u32 a = read<u32>(wave, instruction.source[0]);
  const u32 b = read<u32>(wave, instruction.source[1]);
  write<u32>(wave, instruction, a - b);
  wave.scc = b > a ? 1 : 0;
}
inline void addc_u32(Wave& wave, const Instruction& instruction) {
  const u64 sum = u64{read<u32>(wave, instruction.source[0])} + read<u32>(wave, instruction.source[1]) + wave.scc;
  write<u32>(wave, instruction, static_cast<u32>(sum));
  wave.scc = static_cast<u32>(sum >> 32);
}
inline void subb_u32(Wave& wave, const Instruction& instruction) {
  const u64 a = read<u32>(wave, instruction.source[0]);
  const u64 b = u64{read<u32>(wave, instruction.source[1])} + wave.scc;
  write<u32>(wave, instruction, static_cast<u32>(a - b));
  wave.scc = b > a ? 1 : 0;
}
inline void add_i32_values(Wave& wave, const Instruction& instruction, i32 a, i32 b) {
  i32 sum = 0;
  wave.scc = __builtin_add_overflow(a, b, &sum) ? 1 : 0;
  write<i32>(wave, instruction, sum);
}
inline void add_i32(Wave& wave, const Instruction& instruction) {
  add_i32_values(wave, instruction, read<i32>(wave, instruction.source[0]), read<i32>(wave, instruction.source[1]));
}
inline void sub_i32(Wave& wave, const Instruction& instruction) {
  i32 difference = 0;
  wave.scc = __builtin_sub_overflow(read<i32>(wave, instruction.source[0]), read<i32>(wave, instruction.source[1]),
                                    &difference)
                 ? 1
                 : 0;
  write<i32>(wave, instruction, difference);
}
inline void absdiff_i32(Wave& wave, const Instruction& instruction) {
  const u32 difference = read<u32>(wave, instruction.source[0]) - read<u32>(wave, instruction.source[1]);
  const u32 result = static_cast<i32>(difference) < 0 ? 0u - difference : difference;
  write<u32>(wave, instruction, result);
  wave.scc = result != 0 ? 1 : 0;
}

// SCC says whether S0 was chosen.
template <typename T, bool maximum>
void choose(Wave& wave, const Instruction& instruction) {
  const T a = read<T>(wave, instruction.source[0]);
  const T b = read<T>(wave, instruction.source[1]);
  const bool first = maximum ? a > b : a < b;
  write<T>(wave, instruction, first ? a : b);
  wave.scc = first ? 1 : 0;
}

template <typename T>
void cselect(Wave& wave, const Instruction& instruction) {
  write<T>(wave, instruction, read<T>(wave, instruction.source[wave.scc != 0 ? 0 : 1]));
}
template <typename T>
void cmov(Wave& wave, const Instruction& instruction) {
  if (wave.scc != 0) write<T>(wave, instruction, read<T>(wave, instruction.source[0]));
}

template <unsigned shift>
void shift_add(Wave& wave, const Instruction& instruction) {
  const u64 sum = (u64{read<u32>(wave, instruction.source[0])} << shift) + read<u32>(wave, instruction.source[1]);
  write<u32>(wave, instruction, static_cast<u32>(sum));
  wave.scc = sum > 0xffffffffULL ? 1 : 0;
}

template <u64 (*function)(u64, u64)>
void saveexec(Wave& wave, const Instruction& instruction) {
  const u64 source = read<u64>(wave, instruction.source[0]);
  const u64 saved = wave.exec();
  const u64 mask = function(source, saved);
  write<u64>(wave, instruction, saved);
  wave.set_exec(mask);
  wave.scc = mask != 0 ? 1 : 0;
}
template <u64 (*function)(u64, u64)>
void wrexec(Wave& wave, const Instruction& instruction) {
  const u64 mask = function(read<u64>(wave, instruction.source[0]), wave.exec());
  wave.set_exec(mask);
  write<u64>(wave, instruction, mask);
  wave.scc = mask != 0 ? 1 : 0;
}

template <typename T>
T reverse_bits(T value) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); ++i) result |= ((value >> i) & 1) << (8 * sizeof(T) - 1 - i);
  return result;
}
template <typename T>
T whole_quad(T value) {
  T result = 0;
  for (unsigned i = 0; i < 8 * sizeof(T); i += 4) {
    if (((value >> i) & 0xf) != 0) result |= T{0xf} << i;
  }
  return result;
}
template <typename T>
T quad_mask(T value) {
  T result = 0;
  for (unsigned i = 0; i < 2 * sizeof(T); ++i) result |= T{((value >> (4 * i)) & 0xf) != 0} << i;
  return result;
}
template <typename T>
i32 find_first_one(T value) {
  return value == 0 ? -1 : std::countr_zero(value);
}
template <typename T>
i32 find_first_zero(T value) {
  return find_first_one(static_cast<T>(~value));
}
template <typename T>
i32 leading_zeros(T value) {
  return value == 0 ? -1 : std::countl_zero(value);
}
// Bits from the top that equal the sign bit; −1 when all do.
template <typename T>
i32 leading_signs(T value) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto flipped = static_cast<Unsigned>(value < 0 ? ~value : value);
  return flipped == 0 ? -1 : std::countl_zero(flipped);
}
template <typename T>
i32 count_ones(T value) {
  return std::popcount(value);
}
template <typename T>
i32 count_zeros(T value) {
  return std::popcount(static_cast<T>(~value));
}
template <typename T>
T identity(T value) {
  return value;
}
template <typename T>
T complement(T value) {
  return ~value;
}

template <typename T, bool set>
void bitset(Wave& wave, const Instruction& instruction) {
  const T bit = T{1} << (wave.scalar(instruction.source[0]) & (8 * sizeof(T) - 1));
  const T old = read<T>(wave, instruction.destination[0]);
  write<T>(wave, instruction, set ? old | bit : old & ~bit);
}
inline void bitreplicate(Wave& wave, const Instruction& instruction) {
  const u32 value = wave.scalar(instruction.source[0]);
  u64 result = 0;
  for (unsigned i = 0; i < 32; ++i) result |= u64{((value >> i) & 1) * 3} << (2 * i);
  write<u64>(wave, instruction, result);
}
// S_MOVREL: the register number is relative to M0.
template <typename T, bool source_is_relative>
void movrel(Wave& wave, const Instruction& instruction) {
  Instruction moved = instruction;
  Operand& operand = source_is_relative ? moved.source[0] : moved.destination[0];
  const u32 index = operand.index + wave.m0();
  if (index + sizeof(T) / 4 > sgpr_flat_scratch) return fault(wave, instruction, "M0 moves the register beyond s101");
  operand.index = static_cast<std::uint16_t>(index);
  write<T>(wave, moved, read<T>(wave, moved.source[0]));
}

inline i32 immediate_signed(const Instruction& instruction) { return static_cast<std::int16_t>(instruction.immediate); }
inline void movk(Wave& wave, const Instruction& instruction) {
  write<i32>(wave, instruction, immediate_signed(instruction));
}
inline void cmovk(Wave& wave, const Instruction& instruction) {
  if (wave.scc != 0) movk(wave, instruction);
}
inline void addk(Wave& wave, const Instruction& instruction) {
  add_i32_values(wave, instruction, read<i32>(wave, instruction.destination[0]), immediate_signed(instruction));
}
inline void mulk(Wave& wave, const Instruction& instruction) {
  write<u32>(wave, instruction,
             read<u32>(wave, instruction.destination[0]) * static_cast<u32>(immediate_signed(instruction)));
}
template <typename T, bool (*function)(T, T)>
void comparek(Wave& wave, const Instruction& instruction) {
  const T immediate = std::is_signed_v<T> ? static_cast<T>(immediate_signed(instruction))
                                          : static_cast<T>(instruction.immediate & 0xffff);
  wave.scc = function(read<T>(wave, instruction.source[0]), immediate) ? 1 : 0;
}

template <typename T>
bool equal(T a, T b) {
  return a == b;
}
template <typename T>
bool different(T a, T b) {
  return a != b;
}
template <typename T>
bool greater(T a, T b) {
  return a > b;
}
template <typename T>
bool greater_equal(T a, T b) {
  return a >= b;
}
template <typename T>
bool less(T a, T b) {
  return a < b;
}
template <typename T>
bool less_equal(T a, T b) {
  return a <= b;
}
template <typename T>
bool bit_is_clear(T a, u32 b) {
  return ((a >> (b & (8 * sizeof(T) - 1))) & 1) == 0;
}
template <typename T>
bool bit_is_set(T a, u32 b) {
  return !bit_is_clear(a, b);
}

inline u32 multiply(u32 a, u32 b) { return a * b; }
inline u32 multiply_high_u32(u32 a, u32 b) { return static_cast<u32>((u64{a} * b) >> 32); }
inline u32 multiply_high_i32(i32 a, i32 b) { return static_cast<u32>((i64{a} * b) >> 32); }
inline u32 pack_ll(u32 a, u32 b) { return (a & 0xffff) | (b << 16); }
inline u32 pack_lh(u32 a, u32 b) { return (a & 0xffff) | (b & 0xffff0000); }
inline u32 pack_hh(u32 a, u32 b) { return (a >> 16) | (b & 0xffff0000); }
inline i32 sign_extend_8(u32 value) { return static_cast<std::int8_t>(value); }
inline i32 sign_extend_16(u32 value) { return static_cast<std::int16_t>(value); }
inline u32 absolute(i32 value) { return value < 0 ? 0u - static_cast<u32>(value) : static_cast<u32>(value); }

}  // namespace wavejit::simgpu::scalar
