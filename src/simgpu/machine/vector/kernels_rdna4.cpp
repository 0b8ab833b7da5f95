// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What RDNA4's vector ALU has of its own: minimum and maximum by IEEE 754-2019 (there is no IEEE mode), 16-bit logic on
// halves of registers, conversions that choose a byte, dot products. Semantics: AMD's RDNA4 ISA document; LLVM 22's
// AMDGPU backend; dot products of 16-bit floats as captured (numerics/rdna4_dot.h).
#include "simgpu/machine/numerics/float_functions.h"
#include "simgpu/machine/numerics/rdna4_dot.h"
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

constexpr unsigned own = flag_rdna4_only;
constexpr unsigned moves = own | flag_moves_bits;

// A number wins over NaN; of two NaN the first, quieted.
template <typename Float>
WAVEJIT_LANE_FUNCTION Float least(Float a, Float b) {
  return is_nan(a) && is_nan(b) ? quiet(a) : minimum_of(false, a, b);
}
template <typename Float>
WAVEJIT_LANE_FUNCTION Float most(Float a, Float b) {
  return is_nan(a) && is_nan(b) ? quiet(a) : maximum_of(false, a, b);
}
template <typename Float>
WAVEJIT_LANE_FUNCTION Float middle(Float a, Float b, Float c) {
  if (is_nan(a) || is_nan(b) || is_nan(c)) return least(least(a, b), c);
  return most(least(a, b), least(most(a, b), c));
}
WAVEJIT_LANE_FUNCTION u32 half_of(float value) { return f32_to_f16(value); }
WAVEJIT_LANE_FUNCTION u32 exact_i16(float a) {
  const float bounded = a < -32768.0f ? -32768.0f : (a > 32767.0f ? 32767.0f : a);
  return static_cast<u32>(is_nan(a) ? 0 : static_cast<i32>(bounded)) & 0xffffu;
}
WAVEJIT_LANE_FUNCTION u32 exact_u16(float a) {
  const float bounded = a < 0.0f ? 0.0f : (a > 65535.0f ? 65535.0f : a);
  return static_cast<u32>(is_nan(a) ? 0 : static_cast<i32>(bounded));
}
WAVEJIT_LANE_FUNCTION float fused_half(float a, float b, float c) {
  const double sum = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
  return with_nan_of(narrowed_to_odd(sum), a, b, c);
}
template <typename T>
WAVEJIT_LANE_FUNCTION T lower(T a, T b) {
  return a < b ? a : b;
}
template <typename T>
WAVEJIT_LANE_FUNCTION T higher(T a, T b) {
  return a > b ? a : b;
}

// The byte that byte_sel names.
WAVEJIT_LANE_FUNCTION u32 chosen_byte(const Call& call, u32 word) { return (word >> (8 * call.byte_select)) & 0xffu; }
WAVEJIT_LANE_FUNCTION u32 chosen_half(const Call& call, u32 word) {
  return (word >> ((call.op_sel & 1) != 0 ? 16 : 0)) & 0xffffu;
}
template <typename Narrow>
void narrow_randomly(Call& call) {
  const bool saturate = call.saturates_overflow();
  for (unsigned lane = 0; lane < lane_places; ++lane) {
    const u32 noise = call.source[1][lane];
    const u32 byte = f32_to_small<Narrow>(static_cast<double>(float_of(call.source[0][lane])), saturate, &noise);
    const unsigned shift = 8u * call.byte_select;
    call.result[lane] = (call.source[2][lane] & ~(0xffu << shift)) | (byte << shift);
  }
}

WAVEJIT_LANE_FUNCTION u32 dot_f16(Pair16 a, Pair16 b, u32 c) {
  const Factor x[2] = {factor_of_f16(a.lo), factor_of_f16(a.hi)};
  const Factor y[2] = {factor_of_f16(b.lo), factor_of_f16(b.hi)};
  return dot_step<10>(x, y, c);
}
WAVEJIT_LANE_FUNCTION u32 dot_bf16(Pair16 a, Pair16 b, u32 c) {
  const Factor x[2] = {factor_of_bf16(a.lo), factor_of_bf16(a.hi)};
  const Factor y[2] = {factor_of_bf16(b.lo), factor_of_bf16(b.hi)};
  return dot_step<7>(x, y, c);
}
// Four products of bytes: of this no capture is public.
template <bool ByteA, bool ByteB>
WAVEJIT_LANE_FUNCTION u32 dot_bytes(u32 a, u32 b, u32 c) {
  Factor x[4];
  Factor y[4];
  for (unsigned i = 0; i < 4; ++i) {
    x[i] = ByteA ? factor_of_bf8(a >> (8 * i)) : factor_of_fp8(a >> (8 * i));
    y[i] = ByteB ? factor_of_bf8(b >> (8 * i)) : factor_of_fp8(b >> (8 * i));
    // Both formats with three fraction bits.
    if (ByteA) x[i].significand *= 2;
    if (ByteB) y[i].significand *= 2;
  }
  return dot_step<3>(x, y, c);
}
template <unsigned Width>
WAVEJIT_LANE_FUNCTION i64 signed_dot(const Call& call, u32 a, u32 b) {
  // neg_lo says which of the two is signed.
  i64 sum = 0;
  constexpr u32 mask = (1u << Width) - 1;
  constexpr u32 sign = 1u << (Width - 1);
  for (unsigned i = 0; i < 32 / Width; ++i) {
    const u32 x = (a >> (i * Width)) & mask;
    const u32 y = (b >> (i * Width)) & mask;
    const i64 p = (call.negations & 1) != 0 ? static_cast<i64>(static_cast<i32>((x ^ sign) - sign)) : x;
    const i64 q = (call.negations & 2) != 0 ? static_cast<i64>(static_cast<i32>((y ^ sign) - sign)) : y;
    sum += p * q;
  }
  return sum;
}
WAVEJIT_LANE_FUNCTION u32 saturated(i64 sum) {
  return static_cast<u32>(
      static_cast<i32>(sum > 0x7fffffff ? 0x7fffffff : (sum < -0x80000000LL ? -0x80000000LL : sum)));
}

using F32Bits = Word<Kind::b32, u32>;

constexpr Operation operations[] = {
    op<F32(F32, F32)>("v_min_num_f32", [](float a, float b) { return least(a, b); }, own),
    op<F32(F32, F32)>("v_max_num_f32", [](float a, float b) { return most(a, b); }, own),
    op<F32(F32, F32, F32)>("v_min3_num_f32", [](float a, float b, float c) { return least(least(a, b), c); }, own),
    op<F32(F32, F32, F32)>("v_max3_num_f32", [](float a, float b, float c) { return most(most(a, b), c); }, own),
    op<F32(F32, F32, F32)>("v_med3_num_f32", [](float a, float b, float c) { return middle(a, b, c); }, own),
    op<F32(F32, F32, F32)>("v_minmax_num_f32", [](float a, float b, float c) { return most(least(a, b), c); }, own),
    op<F32(F32, F32, F32)>("v_maxmin_num_f32", [](float a, float b, float c) { return least(most(a, b), c); }, own),
    op<F32(F32, F32)>("v_minimum_f32", [](float a, float b) { return ieee_minimum(a, b); }, own),
    op<F32(F32, F32)>("v_maximum_f32", [](float a, float b) { return ieee_maximum(a, b); }, own),
    op<F32(F32, F32, F32)>(
        "v_minimum3_f32", [](float a, float b, float c) { return ieee_minimum(ieee_minimum(a, b), c); }, own),
    op<F32(F32, F32, F32)>(
        "v_maximum3_f32", [](float a, float b, float c) { return ieee_maximum(ieee_maximum(a, b), c); }, own),
    op<F32(F32, F32, F32)>(
        "v_minimummaximum_f32", [](float a, float b, float c) { return ieee_maximum(ieee_minimum(a, b), c); }, own),
    op<F32(F32, F32, F32)>(
        "v_maximumminimum_f32", [](float a, float b, float c) { return ieee_minimum(ieee_maximum(a, b), c); }, own),
    op<F32(F32, F32, F32)>(
        "v_fma_dx9_zero_f32",
        [](float a, float b, float c) {
          return a == 0.0f || b == 0.0f ? c : with_nan_of(fused(a, b, c), a, b, c);
        },
        own),

    op<Half(F16, F16)>("v_min_num_f16", [](float a, float b) { return half_of(least(a, b)); }, own),
    op<Half(F16, F16)>("v_max_num_f16", [](float a, float b) { return half_of(most(a, b)); }, own),
    op<Half(F16, F16, F16)>(
        "v_min3_num_f16", [](float a, float b, float c) { return half_of(least(least(a, b), c)); }, own),
    op<Half(F16, F16, F16)>(
        "v_max3_num_f16", [](float a, float b, float c) { return half_of(most(most(a, b), c)); }, own),
    op<Half(F16, F16, F16)>(
        "v_med3_num_f16", [](float a, float b, float c) { return half_of(middle(a, b, c)); }, own),
    op<Half(F16, F16, F16)>(
        "v_minmax_num_f16", [](float a, float b, float c) { return half_of(most(least(a, b), c)); }, own),
    op<Half(F16, F16, F16)>(
        "v_maxmin_num_f16", [](float a, float b, float c) { return half_of(least(most(a, b), c)); }, own),
    op<Half(F16, F16)>("v_minimum_f16", [](float a, float b) { return half_of(ieee_minimum(a, b)); }, own),
    op<Half(F16, F16)>("v_maximum_f16", [](float a, float b) { return half_of(ieee_maximum(a, b)); }, own),
    op<Half(F16, F16, F16)>(
        "v_minimum3_f16", [](float a, float b, float c) { return half_of(ieee_minimum(ieee_minimum(a, b), c)); }, own),
    op<Half(F16, F16, F16)>(
        "v_maximum3_f16", [](float a, float b, float c) { return half_of(ieee_maximum(ieee_maximum(a, b), c)); }, own),
    op<Half(F16, F16, F16)>(
        "v_minimummaximum_f16", [](float a, float b, float c) { return half_of(ieee_maximum(ieee_minimum(a, b), c)); },
        own),
    op<Half(F16, F16, F16)>(
        "v_maximumminimum_f16", [](float a, float b, float c) { return half_of(ieee_minimum(ieee_maximum(a, b), c)); },
        own),
    op<F16(F16, F16, F16)>(
        "v_fmac_f16", [](float a, float b, float c) { return fused_half(a, b, c); }, own | flag_accumulates),
    op<F16(F16, F16, F16)>("v_fmamk_f16", [](float a, float k, float b) { return fused_half(a, k, b); }, own),
    op<F16(F16, F16, F16)>("v_fmaak_f16", [](float a, float b, float k) { return fused_half(a, b, k); }, own),

    op<F64(F64, F64)>("v_min_num_f64", [](double a, double b) { return least(a, b); }, own),
    op<F64(F64, F64)>("v_max_num_f64", [](double a, double b) { return most(a, b); }, own),
    op<F64(F64, F64)>("v_minimum_f64", [](double a, double b) { return ieee_minimum(a, b); }, own),
    op<F64(F64, F64)>("v_maximum_f64", [](double a, double b) { return ieee_maximum(a, b); }, own),

    op<PairHalf(PairF16, PairF16)>(
        "v_pk_min_num_f16",
        [](Pair32 a, Pair32 b) {
          return Pair16{half_of(least(a.lo, b.lo)), half_of(least(a.hi, b.hi))};
        },
        own),
    op<PairHalf(PairF16, PairF16)>(
        "v_pk_max_num_f16",
        [](Pair32 a, Pair32 b) {
          return Pair16{half_of(most(a.lo, b.lo)), half_of(most(a.hi, b.hi))};
        },
        own),
    op<PairHalf(PairF16, PairF16)>(
        "v_pk_minimum_f16",
        [](Pair32 a, Pair32 b) {
          return Pair16{half_of(ieee_minimum(a.lo, b.lo)), half_of(ieee_minimum(a.hi, b.hi))};
        },
        own),
    op<PairHalf(PairF16, PairF16)>(
        "v_pk_maximum_f16",
        [](Pair32 a, Pair32 b) {
          return Pair16{half_of(ieee_maximum(a.lo, b.lo)), half_of(ieee_maximum(a.hi, b.hi))};
        },
        own),

    op<U16(U16)>("v_mov_b16", [](i32 a) { return a; }, moves | flows(Flow::move)),
    op<U16(U16)>("v_not_b16", [](i32 a) { return ~a; }, own),
    op<U16(U16, U16)>("v_and_b16", [](i32 a, i32 b) { return a & b; }, own),
    op<U16(U16, U16)>("v_or_b16", [](i32 a, i32 b) { return a | b; }, own),
    op<U16(U16, U16)>("v_xor_b16", [](i32 a, i32 b) { return a ^ b; }, own),
    op<U16(U16, U16, Mask)>(
        "v_cndmask_b16", [](i32 a, i32 b, bool choose) { return choose ? b : a; }, moves),
    op<U32(U32, U32, U32)>("v_xor3_b32", [](u32 a, u32 b, u32 c) { return a ^ b ^ c; }, own | flows(Flow::bits_xor)),
    op<I32(I32, I32, I32)>("v_maxmin_i32", [](i32 a, i32 b, i32 c) { return lower(higher(a, b), c); }, own),
    op<I32(I32, I32, I32)>("v_minmax_i32", [](i32 a, i32 b, i32 c) { return higher(lower(a, b), c); }, own),
    op<U32(U32, U32, U32)>("v_maxmin_u32", [](u32 a, u32 b, u32 c) { return lower(higher(a, b), c); }, own),
    op<U32(U32, U32, U32)>("v_minmax_u32", [](u32 a, u32 b, u32 c) { return higher(lower(a, b), c); }, own),

    op<I32(I16)>("v_cvt_i32_i16", [](i32 a) { return a; }, own),
    op<U32(U16)>("v_cvt_u32_u16", [](i32 a) { return static_cast<u32>(a); }, own),
    op<U32(F32, F32)>(
        "v_cvt_pk_i16_f32", [](float a, float b) { return exact_i16(a) | (exact_i16(b) << 16); },
        own | flag_own_rounding | flows(Flow::pack)),
    op<U32(F32, F32)>(
        "v_cvt_pk_u16_f32", [](float a, float b) { return exact_u16(a) | (exact_u16(b) << 16); },
        own | flag_own_rounding | flows(Flow::pack)),
    op<F32(Raw)>(
        "v_cvt_f32_fp8", [](const Call& call, u32 a) { return small_to_f32<Fp8Ocp>(chosen_byte(call, a)); },
        own | flag_own_rounding | flag_kernel_op_sel),
    op<F32(Raw)>(
        "v_cvt_f32_bf8", [](const Call& call, u32 a) { return small_to_f32<Bf8Ocp>(chosen_byte(call, a)); },
        own | flag_own_rounding | flag_kernel_op_sel),
    op<PairF32(Raw)>(
        "v_cvt_pk_f32_fp8",
        [](const Call& call, u32 a) {
          const u32 half = chosen_half(call, a);
          return Pair32{small_to_f32<Fp8Ocp>(half & 0xffu), small_to_f32<Fp8Ocp>(half >> 8)};
        },
        own | flag_own_rounding | flag_kernel_op_sel | flows(Flow::pack)),
    op<PairF32(Raw)>(
        "v_cvt_pk_f32_bf8",
        [](const Call& call, u32 a) {
          const u32 half = chosen_half(call, a);
          return Pair32{small_to_f32<Bf8Ocp>(half & 0xffu), small_to_f32<Bf8Ocp>(half >> 8)};
        },
        own | flag_own_rounding | flag_kernel_op_sel | flows(Flow::pack)),
    whole("v_cvt_sr_fp8_f32", &narrow_randomly<Fp8Ocp>, Kind::b32, Kind::f32, Kind::raw, Kind::raw, 3,
          own | flag_own_rounding | flag_kernel_op_sel | flag_accumulates),
    whole("v_cvt_sr_bf8_f32", &narrow_randomly<Bf8Ocp>, Kind::b32, Kind::f32, Kind::raw, Kind::raw, 3,
          own | flag_own_rounding | flag_kernel_op_sel | flag_accumulates),

    // Their own rounding, and no denormals are flushed.
    op<F32Bits(PairHalf, PairHalf, F32Bits)>(
        "v_dot2_f32_f16", [](Pair16 a, Pair16 b, u32 c) { return dot_f16(a, b, c); }, moves | flag_dot_product),
    op<F32Bits(PairBf16, PairBf16, F32Bits)>(
        "v_dot2_f32_bf16", [](Pair16 a, Pair16 b, u32 c) { return dot_bf16(a, b, c); }, moves | flag_dot_product),
    op<F32Bits(PairHalf, PairHalf, F32Bits)>(
        "v_dot2acc_f32_f16", [](Pair16 a, Pair16 b, u32 c) { return dot_f16(a, b, c); },
        moves | flag_accumulates | flag_dot_product),
    op<F32Bits(PairBf16, PairBf16, F32Bits)>(
        "v_dot2acc_f32_bf16", [](Pair16 a, Pair16 b, u32 c) { return dot_bf16(a, b, c); },
        moves | flag_accumulates | flag_dot_product),
    // With results of 16 bits: C becomes float32 and the sum 16 bits, which nobody has captured.
    op<Half(PairHalf, PairHalf, Half)>(
        "v_dot2_f16_f16",
        [](Pair16 a, Pair16 b, u32 c) { return f32_to_f16(float_of(dot_f16(a, b, bits_of(f16_to_f32(c))))); },
        moves | flag_dot_product),
    op<Half(PairBf16, PairBf16, Half)>(
        "v_dot2_bf16_bf16", [](Pair16 a, Pair16 b, u32 c) { return f32_to_bf16(float_of(dot_bf16(a, b, c << 16))); },
        moves | flag_dot_product),
    op<U32(U32, U32, U32)>(
        "v_dot4_f32_fp8_fp8", [](u32 a, u32 b, u32 c) { return dot_bytes<false, false>(a, b, c); },
        moves | flag_dot_product),
    op<U32(U32, U32, U32)>(
        "v_dot4_f32_fp8_bf8", [](u32 a, u32 b, u32 c) { return dot_bytes<false, true>(a, b, c); },
        moves | flag_dot_product),
    op<U32(U32, U32, U32)>(
        "v_dot4_f32_bf8_fp8", [](u32 a, u32 b, u32 c) { return dot_bytes<true, false>(a, b, c); },
        moves | flag_dot_product),
    op<U32(U32, U32, U32)>(
        "v_dot4_f32_bf8_bf8", [](u32 a, u32 b, u32 c) { return dot_bytes<true, true>(a, b, c); },
        moves | flag_dot_product),
    op<U32(Raw, Raw, Raw)>(
        "v_dot4_i32_iu8",
        [](const Call& call, u32 a, u32 b, u32 c) { return static_cast<u32>(signed_dot<8>(call, a, b)) + c; },
        [](const Call& call, u32 a, u32 b, u32 c) { return saturated(signed_dot<8>(call, a, b) + static_cast<i32>(c)); },
        moves | flag_dot_product | flag_kernel_op_sel),
    op<U32(Raw, Raw, Raw)>(
        "v_dot8_i32_iu4",
        [](const Call& call, u32 a, u32 b, u32 c) { return static_cast<u32>(signed_dot<4>(call, a, b)) + c; },
        [](const Call& call, u32 a, u32 b, u32 c) { return saturated(signed_dot<4>(call, a, b) + static_cast<i32>(c)); },
        moves | flag_dot_product | flag_kernel_op_sel),
    op<U32(U32, U32, U32)>(
        "v_dot4_u32_u8",
        [](u32 a, u32 b, u32 c) {
          u32 sum = c;
          for (unsigned i = 0; i < 4; ++i) sum += ((a >> (8 * i)) & 0xffu) * ((b >> (8 * i)) & 0xffu);
          return sum;
        },
        moves | flag_dot_product),
    op<U32(U32, U32, U32)>(
        "v_dot8_u32_u4",
        [](u32 a, u32 b, u32 c) {
          u32 sum = c;
          for (unsigned i = 0; i < 8; ++i) sum += ((a >> (4 * i)) & 15u) * ((b >> (4 * i)) & 15u);
          return sum;
        },
        moves | flag_dot_product),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList rdna4_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
