// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Packed 16-bit integers and dot products.
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

WAVEJIT_LANE_FUNCTION i32 sign16(u32 a) { return static_cast<std::int16_t>(a); }
WAVEJIT_LANE_FUNCTION u32 clamp_signed(i64 a) {
  return static_cast<u32>(static_cast<i32>(a > 32767 ? 32767 : (a < -32768 ? -32768 : a)));
}
WAVEJIT_LANE_FUNCTION u32 clamp_unsigned(i64 a) { return static_cast<u32>(a > 65535 ? 65535 : (a < 0 ? 0 : a)); }

// Applies a lambda of 16-bit halves to both.
template <typename Lambda>
struct Both {
  constexpr Pair16 operator()(Pair16 a, Pair16 b) const { return {Lambda{}(a.lo, b.lo), Lambda{}(a.hi, b.hi)}; }
};
template <typename Lambda>
struct BothOfThree {
  constexpr Pair16 operator()(Pair16 a, Pair16 b, Pair16 c) const {
    return {Lambda{}(a.lo, b.lo, c.lo), Lambda{}(a.hi, b.hi, c.hi)};
  }
};
template <typename Lambda>
constexpr Both<Lambda> both(Lambda /*body*/) {
  return {};
}
template <typename Lambda>
constexpr BothOfThree<Lambda> both3(Lambda /*body*/) {
  return {};
}

template <unsigned Width, bool Signed>
WAVEJIT_LANE_FUNCTION i64 field_of(u32 word, unsigned index) {
  const u32 field = (word >> (index * Width)) & ((1u << Width) - 1);
  if constexpr (!Signed) return field;
  constexpr u32 sign = 1u << (Width - 1);
  return static_cast<i64>(static_cast<i32>((field ^ sign) - sign));
}
template <unsigned Width, bool Signed>
WAVEJIT_LANE_FUNCTION i64 dot_of(u32 a, u32 b) {
  i64 sum = 0;
  for (unsigned i = 0; i < 32 / Width; ++i) sum += field_of<Width, Signed>(a, i) * field_of<Width, Signed>(b, i);
  return sum;
}
template <unsigned Width, bool Signed>
struct Dot {
  constexpr u32 operator()(u32 a, u32 b, u32 c) const { return static_cast<u32>(dot_of<Width, Signed>(a, b)) + c; }
};
template <unsigned Width, bool Signed>
struct DotClamped {
  constexpr u32 operator()(u32 a, u32 b, u32 c) const {
    if constexpr (Signed) {
      const i64 sum = dot_of<Width, true>(a, b) + static_cast<i32>(c);
      return static_cast<u32>(
          static_cast<i32>(sum > 0x7fffffff ? 0x7fffffff : (sum < -0x80000000LL ? -0x80000000LL : sum)));
    } else {
      const i64 sum = dot_of<Width, false>(a, b) + c;
      return sum > 0xffffffffLL ? 0xffffffffu : static_cast<u32>(sum);
    }
  }
};

constexpr Operation operations[] = {
    op<PairU16(PairU16, PairU16)>("v_pk_add_u16", both([](u32 a, u32 b) { return a + b; }),
                                  both([](u32 a, u32 b) { return clamp_unsigned(i64{a} + b); })),
    op<PairU16(PairU16, PairU16)>("v_pk_sub_u16", both([](u32 a, u32 b) { return a - b; }),
                                  both([](u32 a, u32 b) { return clamp_unsigned(i64{a} - b); })),
    op<PairU16(PairU16, PairU16)>(
        "v_pk_add_i16", both([](u32 a, u32 b) { return a + b; }),
        both([](u32 a, u32 b) { return clamp_signed(i64{sign16(a)} + sign16(b)); })),
    op<PairU16(PairU16, PairU16)>(
        "v_pk_sub_i16", both([](u32 a, u32 b) { return a - b; }),
        both([](u32 a, u32 b) { return clamp_signed(i64{sign16(a)} - sign16(b)); })),
    op<PairU16(PairU16, PairU16)>("v_pk_mul_lo_u16", both([](u32 a, u32 b) { return a * b; })),
    op<PairU16(PairU16, PairU16, PairU16)>(
        "v_pk_mad_u16", both3([](u32 a, u32 b, u32 c) { return a * b + c; }),
        both3([](u32 a, u32 b, u32 c) { return clamp_unsigned(i64{a} * b + c); })),
    op<PairU16(PairU16, PairU16, PairU16)>(
        "v_pk_mad_i16", both3([](u32 a, u32 b, u32 c) { return a * b + c; }),
        both3([](u32 a, u32 b, u32 c) {
          return clamp_signed(i64{sign16(a)} * sign16(b) + sign16(c));
        })),
    op<PairU16(PairU16, PairU16)>("v_pk_lshlrev_b16", both([](u32 a, u32 b) { return b << (a & 15); })),
    op<PairU16(PairU16, PairU16)>("v_pk_lshrrev_b16", both([](u32 a, u32 b) { return b >> (a & 15); })),
    op<PairU16(PairU16, PairU16)>(
        "v_pk_ashrrev_i16",
        both([](u32 a, u32 b) { return static_cast<u32>(sign16(b) >> (a & 15)); })),
    op<PairU16(PairU16, PairU16)>("v_pk_max_u16", both([](u32 a, u32 b) { return a > b ? a : b; })),
    op<PairU16(PairU16, PairU16)>("v_pk_min_u16", both([](u32 a, u32 b) { return a < b ? a : b; })),
    op<PairU16(PairU16, PairU16)>("v_pk_max_i16",
                                  both([](u32 a, u32 b) { return sign16(a) > sign16(b) ? a : b; })),
    op<PairU16(PairU16, PairU16)>("v_pk_min_i16",
                                  both([](u32 a, u32 b) { return sign16(a) < sign16(b) ? a : b; })),

    // Products of float16 and bfloat16 values are exact in float32; each is added with one rounding, low half first.
    op<F32(PairF16, PairF16, F32)>("v_dot2_f32_f16",
                                   [](Pair32 a, Pair32 b, float c) {
                                     const float first = with_nan_of(fused(a.lo, b.lo, c), a.lo, b.lo, c);
                                     return with_nan_of(fused(a.hi, b.hi, first), a.hi, b.hi, first);
                                   }, flag_dot_product),
    op<F32(PairF16, PairF16, F32)>(
        "v_dot2c_f32_f16",
        [](Pair32 a, Pair32 b, float c) {
          const float first = with_nan_of(fused(a.lo, b.lo, c), a.lo, b.lo, c);
          return with_nan_of(fused(a.hi, b.hi, first), a.hi, b.hi, first);
        },
        flag_accumulates | flag_dot_product),
    op<F32(PairBf16, PairBf16, F32)>(
        "v_dot2_f32_bf16",
        [](Pair16 a, Pair16 b, float c) {
          const float al = bf16_to_f32(a.lo);
          const float bl = bf16_to_f32(b.lo);
          const float ah = bf16_to_f32(a.hi);
          const float bh = bf16_to_f32(b.hi);
          const float low = with_nan_of(al * bl, al, bl);
          const float both_products = with_nan_of(fused(ah, bh, low), low, ah, bh);
          return with_nan_of(both_products + c, both_products, c);
        },
        flag_ocp_only | flag_dot_product),
    op<F32(PairBf16, PairBf16, F32)>(
        "v_dot2c_f32_bf16",
        [](Pair16 a, Pair16 b, float c) {
          const float al = bf16_to_f32(a.lo);
          const float bl = bf16_to_f32(b.lo);
          const float ah = bf16_to_f32(a.hi);
          const float bh = bf16_to_f32(b.hi);
          const float first = with_nan_of(fused(al, bl, c), al, bl, c);
          return with_nan_of(fused(ah, bh, first), ah, bh, first);
        },
        flag_ocp_only | flag_accumulates | flag_dot_product),
    op<U32(U32, U32, U32)>("v_dot4_i32_i8", Dot<8, true>{}, DotClamped<8, true>{}, flag_dot_product),
    op<U32(U32, U32, U32)>("v_dot4_u32_u8", Dot<8, false>{}, DotClamped<8, false>{}, flag_dot_product),
    op<U32(U32, U32, U32)>("v_dot8_i32_i4", Dot<4, true>{}, DotClamped<4, true>{}, flag_dot_product),
    op<U32(U32, U32, U32)>("v_dot8_u32_u4", Dot<4, false>{}, DotClamped<4, false>{}, flag_dot_product),
    op<U32(PairU16, PairU16, U32)>(
        "v_dot2_i32_i16",
        [](Pair16 a, Pair16 b, u32 c) {
          return static_cast<u32>(i64{sign16(a.lo)} * sign16(b.lo) + i64{sign16(a.hi)} * sign16(b.hi)) + c;
        },
        [](Pair16 a, Pair16 b, u32 c) {
          return DotClamped<16, true>{}(a.lo | (a.hi << 16), b.lo | (b.hi << 16), c);
        }, flag_dot_product),
    op<U32(PairU16, PairU16, U32)>(
        "v_dot2_u32_u16", [](Pair16 a, Pair16 b, u32 c) { return a.lo * b.lo + a.hi * b.hi + c; },
        [](Pair16 a, Pair16 b, u32 c) {
          return DotClamped<16, false>{}(a.lo | (a.hi << 16), b.lo | (b.hi << 16), c);
        }, flag_dot_product),
    op<U32(U32, U32, U32)>("v_dot2c_i32_i16", Dot<16, true>{}, DotClamped<16, true>{},
                           flag_accumulates | flag_dot_product),
    op<U32(U32, U32, U32)>("v_dot4c_i32_i8", Dot<8, true>{}, DotClamped<8, true>{},
                           flag_accumulates | flag_dot_product),
    op<U32(U32, U32, U32)>("v_dot8c_i32_i4", Dot<4, true>{}, DotClamped<4, true>{},
                           flag_accumulates | flag_dot_product),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList packed_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
