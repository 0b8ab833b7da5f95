// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// float16 arithmetic. Operands become float32, where sums, products, quotients and roots of float16 values round to
// float16 as if they had been exact (24 >= 2*11 + 2 bits); fused operations go through float64, rounded to odd.
#include "simgpu/machine/numerics/float_functions.h"
#include "simgpu/machine/numerics/permitted.h"
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

WAVEJIT_LANE_FUNCTION float fused_f16(float a, float b, float c) {
  const double sum = static_cast<double>(a) * static_cast<double>(b) + static_cast<double>(c);
  return with_nan_of(narrowed_to_odd(sum), a, b, c);
}
// v_mad and v_mac round the product, too.
WAVEJIT_LANE_FUNCTION float multiply_add_f16(float a, float b, float c) {
  const float product = f16_to_f32(f32_to_f16(a * b));
  return with_nan_of(product + c, a, b, c);
}
// Round to nearest even, saturate, NaN gives 0.
WAVEJIT_LANE_FUNCTION i32 to_integer(float value, float low, float high) {
  const float bounded = value < low ? low : (value > high ? high : value);
  return is_nan(value) ? 0 : static_cast<i32>(bounded);
}
WAVEJIT_LANE_FUNCTION u32 exact_half(float value) { return f32_to_f16(value); }

constexpr unsigned keeps = flag_keeps_high_half;

// What `Nearest` gives as a float32 is rounded to float16 once, or, where the ISA permits it, to the other side.
template <Transcendental Function, typename Nearest>
constexpr Operation float16_function(const char* name, Nearest nearest) {
  return transcendental<F16>(name, nearest, [](const Call& c, float a) {
    constexpr Nearest exact{};
    return permitted_half_near(exact(a), is_picked(c.transcendentals_key, Function, bits_of(a)));
  });
}

constexpr Operation operations[] = {
    op<F16(F16, F16)>("v_add_f16", [](float a, float b) { return with_nan_of(a + b, a, b); }),
    op<F16(F16, F16)>("v_sub_f16", [](float a, float b) { return with_nan_of(a - b, a, b); }),
    op<F16(F16, F16)>("v_subrev_f16", [](float a, float b) { return with_nan_of(b - a, a, b); }),
    op<F16(F16, F16)>("v_mul_f16", [](float a, float b) { return with_nan_of(a * b, a, b); }),
    op<F16(F16, F16, F16)>(
        "v_mac_f16", [](float a, float b, float c) { return multiply_add_f16(a, b, c); }, flag_accumulates),
    op<F16(F16, F16, F16)>("v_madmk_f16", [](float a, float k, float b) { return multiply_add_f16(a, k, b); }),
    op<F16(F16, F16, F16)>("v_madak_f16", [](float a, float b, float k) { return multiply_add_f16(a, b, k); }),
    op<F16(F16, F16, F16)>("v_mad_f16", [](float a, float b, float c) { return multiply_add_f16(a, b, c); }, keeps),
    op<F16(F16, F16, F16)>("v_mad_legacy_f16", [](float a, float b, float c) { return multiply_add_f16(a, b, c); }),
    op<F16(F16, F16, F16)>("v_fma_f16", [](float a, float b, float c) { return fused_f16(a, b, c); }, keeps),
    op<F16(F16, F16, F16)>("v_fma_legacy_f16", [](float a, float b, float c) { return fused_f16(a, b, c); }),
    op<Half(F16, F16)>("v_min_f16",
                       [](const Call& c, float a, float b) { return exact_half(minimum_of(c.ieee(), a, b)); }),
    op<Half(F16, F16)>("v_max_f16",
                       [](const Call& c, float a, float b) { return exact_half(maximum_of(c.ieee(), a, b)); }),
    op<Half(F16, F16, F16)>(
        "v_min3_f16",
        [](const Call& c, float x, float y, float z) {
          return exact_half(minimum_of(c.ieee(), minimum_of(c.ieee(), x, y), z));
        },
        keeps),
    op<Half(F16, F16, F16)>(
        "v_max3_f16",
        [](const Call& c, float x, float y, float z) {
          return exact_half(maximum_of(c.ieee(), maximum_of(c.ieee(), x, y), z));
        },
        keeps),
    op<Half(F16, F16, F16)>(
        "v_med3_f16",
        [](const Call& c, float x, float y, float z) { return exact_half(median_of(c.ieee(), x, y, z)); }, keeps),
    op<F16(F16)>("v_trunc_f16", [](float a) { return is_nan(a) ? quiet(a) : __builtin_truncf(a); }),
    op<F16(F16)>("v_ceil_f16", [](float a) { return is_nan(a) ? quiet(a) : __builtin_ceilf(a); }),
    op<F16(F16)>("v_floor_f16", [](float a) { return is_nan(a) ? quiet(a) : __builtin_floorf(a); }),
    op<Half(F16)>(
        "v_rndne_f16", [](float a) { return exact_half(is_nan(a) ? quiet(a) : __builtin_roundevenf(a)); },
        flag_own_rounding),
    op<Half(F16)>("v_fract_f16",
                  [](float a) {
                    // Below one in float16, as v_fract_f32.
                    const float r = fraction_of(a);
                    return exact_half(r > 0x1.ffcp-1f ? 0x1.ffcp-1f : r);
                  }),
    float16_function<Transcendental::rcp_f16>("v_rcp_f16", [](float a) { return with_nan_of(1.0f / a, a, a); }),
    float16_function<Transcendental::sqrt_f16>(
        "v_sqrt_f16", [](float a) { return with_nan_of(__builtin_sqrtf(a < 0.0f ? default_nan(a) : a), a, a); }),
    float16_function<Transcendental::rsq_f16>("v_rsq_f16",
                                              [](float a) {
                                                const double root =
                                                    __builtin_sqrt(a < 0.0f ? 1.0 : static_cast<double>(a));
                                                const auto r = narrowed_to_odd(1.0 / root);
                                                return with_nan_of(a < 0.0f ? default_nan(a) : r, a, a);
                                              }),
    float16_function<Transcendental::log_f16>("v_log_f16", [](float a) { return log2_f32(a); }),
    float16_function<Transcendental::exp_f16>("v_exp_f16", [](float a) { return exp2_f32(a); }),
    op<F16(F16)>("v_sin_f16", [](float a) { return sine_f32(a); }, flag_transcendental),
    op<F16(F16)>("v_cos_f16", [](float a) { return cosine_f32(a); }, flag_transcendental),
    op<Half(F16)>("v_frexp_mant_f16", [](float a) { return exact_half(mantissa_of(a)); }),
    op<I16(F16)>("v_frexp_exp_i16_f16", [](float a) { return exponent_of(a); }),
    op<F16(F16, I16)>("v_ldexp_f16", [](float a, i32 power) { return scaled_by(a, power); }),
    op<F16(F16, F16, F16)>(
        "v_div_fixup_f16", [](float a, float b, float c) { return division_fixup(a, b, c); }, keeps),
    op<F16(F16, F16, F16)>("v_div_fixup_legacy_f16",
                           [](float a, float b, float c) { return division_fixup(a, b, c); }),
    op<F16(U16)>("v_cvt_f16_u16", [](i32 a) { return static_cast<float>(a); }),
    op<F16(I16)>("v_cvt_f16_i16", [](i32 a) { return static_cast<float>(a); }),
    op<U16(F16)>("v_cvt_u16_f16", [](float a) { return to_integer(a, 0.0f, 65535.0f); }),
    op<I16(F16)>("v_cvt_i16_f16", [](float a) { return to_integer(a, -32768.0f, 32767.0f); }),
    op<I16(F16)>("v_cvt_norm_i16_f16",
                 [](float a) { return to_integer(__builtin_roundevenf(a * 32767.0f), -32767.0f, 32767.0f); }),
    op<U16(F16)>("v_cvt_norm_u16_f16",
                 [](float a) { return to_integer(__builtin_roundevenf(a * 65535.0f), 0.0f, 65535.0f); }),
    op<U32(Half, Half)>(
        "v_pack_b32_f16", [](u32 a, u32 b) { return a | (b << 16); }, flag_moves_bits | flows(Flow::move)),

    op<F32(Mixed, Mixed, Mixed)>("v_fma_mix_f32",
                                 [](float a, float b, float c) { return with_nan_of(fused(a, b, c), a, b, c); }),
    op<F16(Mixed, Mixed, Mixed)>(
        "v_fma_mixlo_f16", [](float a, float b, float c) { return with_nan_of(fused(a, b, c), a, b, c); }, keeps),
    op<F16(Mixed, Mixed, Mixed)>(
        "v_fma_mixhi_f16", [](float a, float b, float c) { return with_nan_of(fused(a, b, c), a, b, c); },
        keeps | flag_high_half),

    op<PairF16(PairF16, PairF16, PairF16)>("v_pk_fma_f16",
                                           [](Pair32 a, Pair32 b, Pair32 c) {
                                             return Pair32{fused_f16(a.lo, b.lo, c.lo), fused_f16(a.hi, b.hi, c.hi)};
                                           }),
    op<PairF16(PairF16, PairF16, PairF16)>(
        "v_pk_fmac_f16",
        [](Pair32 a, Pair32 b, Pair32 c) {
          return Pair32{fused_f16(a.lo, b.lo, c.lo), fused_f16(a.hi, b.hi, c.hi)};
        },
        flag_accumulates),
    op<PairF16(PairF16, PairF16)>("v_pk_add_f16",
                                  [](Pair32 a, Pair32 b) {
                                    return Pair32{with_nan_of(a.lo + b.lo, a.lo, b.lo),
                                                  with_nan_of(a.hi + b.hi, a.hi, b.hi)};
                                  }),
    op<PairF16(PairF16, PairF16)>("v_pk_mul_f16",
                                  [](Pair32 a, Pair32 b) {
                                    return Pair32{with_nan_of(a.lo * b.lo, a.lo, b.lo),
                                                  with_nan_of(a.hi * b.hi, a.hi, b.hi)};
                                  }),
    op<PairHalf(PairF16, PairF16)>("v_pk_min_f16",
                                   [](const Call& c, Pair32 a, Pair32 b) {
                                     return Pair16{exact_half(minimum_of(c.ieee(), a.lo, b.lo)),
                                                   exact_half(minimum_of(c.ieee(), a.hi, b.hi))};
                                   }),
    op<PairHalf(PairF16, PairF16)>("v_pk_max_f16",
                                   [](const Call& c, Pair32 a, Pair32 b) {
                                     return Pair16{exact_half(maximum_of(c.ieee(), a.lo, b.lo)),
                                                   exact_half(maximum_of(c.ieee(), a.hi, b.hi))};
                                   }),
    op<PairHalf(PairF16, PairF16, PairF16)>(
        "v_pk_minimum3_f16",
        [](Pair32 x, Pair32 y, Pair32 z) {
          return Pair16{exact_half(ieee_minimum(ieee_minimum(x.lo, y.lo), z.lo)),
                        exact_half(ieee_minimum(ieee_minimum(x.hi, y.hi), z.hi))};
        },
        flag_ocp_only),
    op<PairHalf(PairF16, PairF16, PairF16)>(
        "v_pk_maximum3_f16",
        [](Pair32 x, Pair32 y, Pair32 z) {
          return Pair16{exact_half(ieee_maximum(ieee_maximum(x.lo, y.lo), z.lo)),
                        exact_half(ieee_maximum(ieee_maximum(x.hi, y.hi), z.hi))};
        },
        flag_ocp_only),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList float16_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
