// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What RDNA4's scalar ALU has of its own: floats, 64-bit sums, masks of 32 lanes. Semantics: AMD's RDNA4 ISA document.
#include <xmmintrin.h>

#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "simgpu/machine/decode/registry.h"
#include "simgpu/machine/numerics/float_functions.h"
#include "simgpu/machine/numerics/small_floats.h"
#include "simgpu/machine/scalar/operations.h"

namespace wavejit::simgpu {
namespace scalar::rdna4 {
namespace {

using namespace numerics;

constexpr Record leaves_scc{.instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar};
constexpr Record sets_scc{.instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .writes_scc = true};
constexpr Record accumulates{
    .instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .keeps_destination = true};
constexpr Record masks_exec{
    .instruction_class = InstructionClass::scalar, .kind = IssueKind::scalar, .changes_exec = true, .writes_scc = true};

// MODE counts nearest, up, down, zero; MXCSR nearest, down, up, zero.
class HostRounding {
 public:
  explicit HostRounding(unsigned mode) : saved_(_mm_getcsr()) {
    constexpr unsigned host_modes[4] = {_MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO};
    if (mode != 0) _mm_setcsr((saved_ & ~_MM_ROUND_MASK) | host_modes[mode]);
  }
  ~HostRounding() { _mm_setcsr(saved_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  unsigned saved_;
};

float read_f32(const Wave& wave, const Operand& operand) {
  const float value = float_of(wave.scalar(operand));
  return (wave.denormal_f32() & 1) != 0 ? value : flushed(value);
}
float read_f16(const Wave& wave, const Operand& operand) {
  const u32 half = operand.is_constant() ? operand.constant16() : wave.scalar(operand) & 0xffffu;
  return f16_to_f32((wave.denormal_f16_f64() & 1) != 0 ? half : flushed_f16(half));
}
void write_f32(Wave& wave, const Instruction& instruction, float value) {
  if ((wave.denormal_f32() & 2) == 0) value = flushed(value);
  wave.set_scalar(instruction.destination[0], bits_of(value));
}
void write_f16(Wave& wave, const Instruction& instruction, float value) {
  const unsigned mode = wave.round_f16_f64();
  const u32 half = mode == 0 ? f32_to_f16(value) : f32_to_f16(value, static_cast<Rounding>(mode));
  wave.set_scalar(instruction.destination[0], (wave.denormal_f16_f64() & 2) != 0 ? half : flushed_f16(half));
}

template <float (*function)(float, float)>
void binary_f32(Wave& wave, const Instruction& instruction) {
  const HostRounding rounding(wave.round_f32());
  write_f32(wave, instruction, function(read_f32(wave, instruction.source[0]), read_f32(wave, instruction.source[1])));
}
template <float (*function)(float, float)>
void binary_f16(Wave& wave, const Instruction& instruction) {
  write_f16(wave, instruction, function(read_f16(wave, instruction.source[0]), read_f16(wave, instruction.source[1])));
}
template <float (*function)(float)>
void unary_f32(Wave& wave, const Instruction& instruction) {
  write_f32(wave, instruction, function(read_f32(wave, instruction.source[0])));
}
template <float (*function)(float)>
void unary_f16(Wave& wave, const Instruction& instruction) {
  write_f16(wave, instruction, function(read_f16(wave, instruction.source[0])));
}
template <bool (*function)(float, float)>
void compare_f32(Wave& wave, const Instruction& instruction) {
  wave.scc = function(read_f32(wave, instruction.source[0]), read_f32(wave, instruction.source[1])) ? 1 : 0;
}
template <bool (*function)(float, float)>
void compare_f16(Wave& wave, const Instruction& instruction) {
  wave.scc = function(read_f16(wave, instruction.source[0]), read_f16(wave, instruction.source[1])) ? 1 : 0;
}

float add(float a, float b) { return with_nan_of(a + b, a, b); }
float subtract(float a, float b) { return with_nan_of(a - b, a, b); }
float times(float a, float b) { return with_nan_of(a * b, a, b); }
float least(float a, float b) { return is_nan(a) && is_nan(b) ? quiet(a) : minimum_of(false, a, b); }
float most(float a, float b) { return is_nan(a) && is_nan(b) ? quiet(a) : maximum_of(false, a, b); }
float minimum(float a, float b) { return ieee_minimum(a, b); }
float maximum(float a, float b) { return ieee_maximum(a, b); }
float ceiling(float a) { return is_nan(a) ? quiet(a) : __builtin_ceilf(a); }
float floored(float a) { return is_nan(a) ? quiet(a) : __builtin_floorf(a); }
float truncated(float a) { return is_nan(a) ? quiet(a) : __builtin_truncf(a); }
float nearest(float a) { return is_nan(a) ? quiet(a) : __builtin_roundevenf(a); }

float multiply_add(const Wave& wave, float a, float b, float c) {
  const HostRounding rounding(wave.round_f32());
  return with_nan_of(fused(a, b, c), a, b, c);
}
void fmac_f32(Wave& wave, const Instruction& instruction) {
  write_f32(wave, instruction,
            multiply_add(wave, read_f32(wave, instruction.source[0]), read_f32(wave, instruction.source[1]),
                         read_f32(wave, instruction.destination[0])));
}
// Both orders print the constant where it is multiplied or added.
void fma_constant_f32(Wave& wave, const Instruction& instruction) {
  const float a = read_f32(wave, instruction.source[0]);
  const float b = read_f32(wave, instruction.source[1]);
  const float c = read_f32(wave, instruction.source[2]);
  write_f32(wave, instruction, multiply_add(wave, a, b, c));
}
void fmac_f16(Wave& wave, const Instruction& instruction) {
  const float a = read_f16(wave, instruction.source[0]);
  const float b = read_f16(wave, instruction.source[1]);
  const float c = read_f16(wave, instruction.destination[0]);
  const double sum = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
  write_f16(wave, instruction, with_nan_of(narrowed_to_odd(sum), a, b, c));
}

void cvt_f32_i32(Wave& wave, const Instruction& instruction) {
  const HostRounding rounding(wave.round_f32());
  const volatile auto value = static_cast<i32>(wave.scalar(instruction.source[0]));
  write_f32(wave, instruction, static_cast<float>(value));
}
void cvt_f32_u32(Wave& wave, const Instruction& instruction) {
  const HostRounding rounding(wave.round_f32());
  const volatile u32 value = wave.scalar(instruction.source[0]);
  write_f32(wave, instruction, static_cast<float>(value));
}
void cvt_i32_f32(Wave& wave, const Instruction& instruction) {
  const float a = read_f32(wave, instruction.source[0]);
  const double bounded = std::fmin(std::fmax(static_cast<double>(a), -2147483648.0), 2147483647.0);
  wave.set_scalar(instruction.destination[0], is_nan(a) ? 0u : static_cast<u32>(static_cast<i32>(bounded)));
}
void cvt_u32_f32(Wave& wave, const Instruction& instruction) {
  const float a = read_f32(wave, instruction.source[0]);
  const double bounded = std::fmin(std::fmax(static_cast<double>(a), 0.0), 4294967295.0);
  wave.set_scalar(instruction.destination[0], is_nan(a) ? 0u : static_cast<u32>(static_cast<u64>(bounded)));
}
void cvt_f16_f32(Wave& wave, const Instruction& instruction) {
  write_f16(wave, instruction, read_f32(wave, instruction.source[0]));
}
void cvt_f32_f16(Wave& wave, const Instruction& instruction) {
  const float value = read_f16(wave, instruction.source[0]);
  write_f32(wave, instruction, is_nan(value) ? quiet(value) : value);
}
void cvt_hi_f32_f16(Wave& wave, const Instruction& instruction) {
  const float value = f16_to_f32(wave.scalar(instruction.source[0]) >> 16);
  write_f32(wave, instruction, is_nan(value) ? quiet(value) : value);
}
void cvt_pk_rtz_f16_f32(Wave& wave, const Instruction& instruction) {
  const u32 low = f32_to_f16(read_f32(wave, instruction.source[0]), Rounding::toward_zero);
  const u32 high = f32_to_f16(read_f32(wave, instruction.source[1]), Rounding::toward_zero);
  wave.set_scalar(instruction.destination[0], low | (high << 16));
}

u64 add_u64(u64 a, u64 b) { return a + b; }
u64 subtract_u64(u64 a, u64 b) { return a - b; }
u64 multiply_u64(u64 a, u64 b) { return a * b; }
u32 pack_hl(u32 a, u32 b) { return (a >> 16) | (b << 16); }

// Masks of 32 lanes; EXEC_HI is nobody's.
template <u64 (*function)(u64, u64)>
void saveexec_32(Wave& wave, const Instruction& instruction) {
  const auto saved = static_cast<u32>(wave.exec());
  const auto mask = static_cast<u32>(function(read<u32>(wave, instruction.source[0]), saved));
  write<u32>(wave, instruction, saved);
  wave.set_exec(mask);
  wave.scc = mask != 0 ? 1 : 0;
}
template <u64 (*function)(u64, u64)>
void wrexec_32(Wave& wave, const Instruction& instruction) {
  const auto mask = static_cast<u32>(function(read<u32>(wave, instruction.source[0]), wave.exec()));
  wave.set_exec(mask);
  write<u32>(wave, instruction, mask);
  wave.scc = mask != 0 ? 1 : 0;
}

struct FloatCompare {
  std::string_view name;
  Handler f32;
  Handler f16;
};
template <bool (*function)(float, float)>
constexpr FloatCompare row(std::string_view name) {
  return {name, compare_f32<function>, compare_f16<function>};
}
bool lt(float a, float b) { return a < b; }
bool eq(float a, float b) { return a == b; }
bool le(float a, float b) { return a <= b; }
bool gt(float a, float b) { return a > b; }
bool lg(float a, float b) { return a < b || a > b; }
bool ge(float a, float b) { return a >= b; }
bool ordered(float a, float b) { return !is_nan(a) && !is_nan(b); }
template <bool (*function)(float, float)>
bool negation(float a, float b) {
  return !function(a, b);
}

constexpr std::array<FloatCompare, 14> float_compares = {
    row<lt>("lt"),
    row<eq>("eq"),
    row<le>("le"),
    row<gt>("gt"),
    row<lg>("lg"),
    row<ge>("ge"),
    row<ordered>("o"),
    row<negation<ordered>>("u"),
    row<negation<ge>>("nge"),
    row<negation<lg>>("nlg"),
    row<negation<gt>>("ngt"),
    row<negation<le>>("nle"),
    row<negation<eq>>("neq"),
    row<negation<lt>>("nlt"),
};

void register_floats(Registry& registry) {
  const auto both = [&](const std::string& name, Handler f32, Handler f16) {
    registry.add_own(name + "_f32", f32, leaves_scc);
    registry.add_own(name + "_f16", f16, leaves_scc);
  };
  both("s_add", binary_f32<rdna4::add>, binary_f16<rdna4::add>);
  both("s_sub", binary_f32<subtract>, binary_f16<subtract>);
  both("s_mul", binary_f32<times>, binary_f16<times>);
  both("s_min_num", binary_f32<least>, binary_f16<least>);
  both("s_max_num", binary_f32<most>, binary_f16<most>);
  both("s_minimum", binary_f32<minimum>, binary_f16<minimum>);
  both("s_maximum", binary_f32<maximum>, binary_f16<maximum>);
  both("s_ceil", unary_f32<ceiling>, unary_f16<ceiling>);
  both("s_floor", unary_f32<floored>, unary_f16<floored>);
  both("s_trunc", unary_f32<truncated>, unary_f16<truncated>);
  both("s_rndne", unary_f32<nearest>, unary_f16<nearest>);
  registry.add_own("s_fmac_f32", fmac_f32, accumulates);
  registry.add_own("s_fmac_f16", fmac_f16, accumulates);
  registry.add_own("s_fmaak_f32", fma_constant_f32, leaves_scc);
  registry.add_own("s_fmamk_f32", fma_constant_f32, leaves_scc);
  registry.add_own("s_cvt_f32_i32", cvt_f32_i32, leaves_scc);
  registry.add_own("s_cvt_f32_u32", cvt_f32_u32, leaves_scc);
  registry.add_own("s_cvt_i32_f32", cvt_i32_f32, leaves_scc);
  registry.add_own("s_cvt_u32_f32", cvt_u32_f32, leaves_scc);
  registry.add_own("s_cvt_f16_f32", cvt_f16_f32, leaves_scc);
  registry.add_own("s_cvt_f32_f16", cvt_f32_f16, leaves_scc);
  registry.add_own("s_cvt_hi_f32_f16", cvt_hi_f32_f16, leaves_scc);
  registry.add_own("s_cvt_pk_rtz_f16_f32", cvt_pk_rtz_f16_f32, leaves_scc);
  for (const FloatCompare& compare : float_compares) {
    registry.add_own("s_cmp_" + std::string(compare.name) + "_f32", compare.f32, sets_scc);
    registry.add_own("s_cmp_" + std::string(compare.name) + "_f16", compare.f16, sets_scc);
  }
}

constexpr Record with(Record record, Flow flow) {
  record.flow = flow;
  return record;
}

}  // namespace
}  // namespace scalar::rdna4

void register_rdna4_scalar(Registry& registry) {
  using namespace scalar;
  rdna4::register_floats(registry);
  registry.add_own("s_add_nc_u64", binary<u64, u64, u64, Scc::keep, rdna4::add_u64>, rdna4::leaves_scc);
  registry.add_own("s_sub_nc_u64", binary<u64, u64, u64, Scc::keep, rdna4::subtract_u64>, rdna4::leaves_scc);
  registry.add_own("s_mul_u64", binary<u64, u64, u64, Scc::keep, rdna4::multiply_u64>, rdna4::leaves_scc);
  registry.add_own("s_pack_hl_b32_b16", binary<u32, u32, u32, Scc::keep, rdna4::pack_hl>, rdna4::leaves_scc);
  registry.add_own("s_and_saveexec_b32", rdna4::saveexec_32<bitwise_and<u64>>,
                   rdna4::with(rdna4::masks_exec, Flow::bits_and));
  registry.add_own("s_or_saveexec_b32", rdna4::saveexec_32<bitwise_or<u64>>,
                   rdna4::with(rdna4::masks_exec, Flow::bits_or));
  registry.add_own("s_xor_saveexec_b32", rdna4::saveexec_32<bitwise_xor<u64>>, rdna4::masks_exec);
  registry.add_own("s_and_not1_saveexec_b32", rdna4::saveexec_32<bitwise_andn2<u64>>,
                   rdna4::with(rdna4::masks_exec, Flow::bits_and_not));
  registry.add_own("s_or_not1_saveexec_b32", rdna4::saveexec_32<bitwise_orn2<u64>>, rdna4::masks_exec);
  registry.add_own("s_nand_saveexec_b32", rdna4::saveexec_32<bitwise_nand<u64>>, rdna4::masks_exec);
  registry.add_own("s_nor_saveexec_b32", rdna4::saveexec_32<bitwise_nor<u64>>, rdna4::masks_exec);
  registry.add_own("s_xnor_saveexec_b32", rdna4::saveexec_32<bitwise_xnor<u64>>, rdna4::masks_exec);
  registry.add_own("s_and_not0_saveexec_b32", rdna4::saveexec_32<bitwise_andn1<u64>>, rdna4::masks_exec);
  registry.add_own("s_or_not0_saveexec_b32", rdna4::saveexec_32<bitwise_orn1<u64>>, rdna4::masks_exec);
  registry.add_own("s_and_not0_wrexec_b32", rdna4::wrexec_32<bitwise_andn1<u64>>, rdna4::masks_exec);
  registry.add_own("s_and_not1_wrexec_b32", rdna4::wrexec_32<bitwise_andn2<u64>>, rdna4::masks_exec);
}

}  // namespace wavejit::simgpu
