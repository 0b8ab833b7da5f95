// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// float32 arithmetic, minimum and maximum, rounding to integers, transcendental functions, division helpers.
#include "simgpu/machine/numerics/float_functions.h"
#include "simgpu/machine/numerics/permitted.h"
#include "simgpu/machine/numerics/transcendental.h"
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

constexpr Operation operations[] = {
    op<F32(F32, F32)>("v_add_f32", [](float a, float b) { return with_nan_of(a + b, a, b); }),
    op<F32(F32, F32)>("v_sub_f32", [](float a, float b) { return with_nan_of(a - b, a, b); }),
    op<F32(F32, F32)>("v_subrev_f32", [](float a, float b) { return with_nan_of(b - a, a, b); }),
    op<F32(F32, F32)>("v_mul_f32", [](float a, float b) { return with_nan_of(a * b, a, b); }),
    op<F32(F32, F32)>("v_mul_legacy_f32",
                      [](float a, float b) { return a == 0.0f || b == 0.0f ? 0.0f : with_nan_of(a * b, a, b); }),
    op<F32(F32, F32, F32)>("v_fma_f32", [](float a, float b, float c) { return with_nan_of(fused(a, b, c), a, b, c); }),
    op<F32(F32, F32, F32)>(
        "v_fmac_f32", [](float a, float b, float c) { return with_nan_of(fused(a, b, c), a, b, c); }, flag_accumulates),
    op<F32(F32, F32, F32)>("v_fmamk_f32",
                           [](float a, float k, float b) { return with_nan_of(fused(a, k, b), a, k, b); }),
    op<F32(F32, F32, F32)>("v_fmaak_f32",
                           [](float a, float b, float k) { return with_nan_of(fused(a, b, k), a, b, k); }),
    op<PairF32(PairF32, PairF32, PairF32)>("v_pk_fma_f32",
                                           [](Pair32 a, Pair32 b, Pair32 c) {
                                             return Pair32{with_nan_of(fused(a.lo, b.lo, c.lo), a.lo, b.lo, c.lo),
                                                           with_nan_of(fused(a.hi, b.hi, c.hi), a.hi, b.hi, c.hi)};
                                           }),
    op<PairF32(PairF32, PairF32)>("v_pk_mul_f32",
                                  [](Pair32 a, Pair32 b) {
                                    return Pair32{with_nan_of(a.lo * b.lo, a.lo, b.lo),
                                                  with_nan_of(a.hi * b.hi, a.hi, b.hi)};
                                  }),
    op<PairF32(PairF32, PairF32)>("v_pk_add_f32",
                                  [](Pair32 a, Pair32 b) {
                                    return Pair32{with_nan_of(a.lo + b.lo, a.lo, b.lo),
                                                  with_nan_of(a.hi + b.hi, a.hi, b.hi)};
                                  }),

    op<F32(F32, F32)>("v_min_f32", [](const Call& c, float a, float b) { return minimum_of(c.ieee(), a, b); }),
    op<F32(F32, F32)>("v_max_f32", [](const Call& c, float a, float b) { return maximum_of(c.ieee(), a, b); }),
    op<F32(F32, F32, F32)>("v_min3_f32", [](const Call& c, float x, float y,
                                            float z) { return minimum_of(c.ieee(), minimum_of(c.ieee(), x, y), z); }),
    op<F32(F32, F32, F32)>("v_max3_f32", [](const Call& c, float x, float y,
                                            float z) { return maximum_of(c.ieee(), maximum_of(c.ieee(), x, y), z); }),
    op<F32(F32, F32, F32)>("v_med3_f32",
                           [](const Call& c, float x, float y, float z) { return median_of(c.ieee(), x, y, z); }),
    op<F32(F32, F32, F32)>(
        "v_minimum3_f32", [](float x, float y, float z) { return ieee_minimum(ieee_minimum(x, y), z); }, flag_ocp_only),
    op<F32(F32, F32, F32)>(
        "v_maximum3_f32", [](float x, float y, float z) { return ieee_maximum(ieee_maximum(x, y), z); }, flag_ocp_only),

    op<F32(F32)>("v_trunc_f32", [](float a) { return is_nan(a) ? quiet(a) : __builtin_truncf(a); }),
    op<F32(F32)>("v_ceil_f32", [](float a) { return is_nan(a) ? quiet(a) : __builtin_ceilf(a); }),
    op<F32(F32)>("v_floor_f32", [](float a) { return is_nan(a) ? quiet(a) : __builtin_floorf(a); }),
    op<F32(F32)>(
        "v_rndne_f32", [](float a) { return is_nan(a) ? quiet(a) : __builtin_roundevenf(a); }, flag_own_rounding),
    op<F32(F32)>("v_fract_f32", [](float a) { return fraction_of(a); }),

    transcendental<F32>(
        "v_exp_f32", [](float a) { return exp2_f32(a); },
        [](const Call& c, float a) { return permitted_exp2_f32(c.transcendentals_key, a); }, flag_own_rounding),
    transcendental<F32>(
        "v_exp_legacy_f32", [](float a) { return exp2_f32(a); },
        [](const Call& c, float a) { return permitted_exp2_f32(c.transcendentals_key, a); }, flag_own_rounding),
    transcendental<F32>(
        "v_log_f32", [](float a) { return log2_f32(a); },
        [](const Call& c, float a) { return permitted_log2_f32(c.transcendentals_key, a); }, flag_own_rounding),
    transcendental<F32>(
        "v_log_legacy_f32", [](float a) { return log2_f32(a); },
        [](const Call& c, float a) { return permitted_log2_f32(c.transcendentals_key, a); }, flag_own_rounding),
    transcendental<F32>(
        "v_rcp_f32", [](float a) { return reciprocal_f32(a); },
        [](const Call& c, float a) { return permitted_reciprocal_f32(c.transcendentals_key, a); }, flag_own_rounding),
    transcendental<F32>(
        "v_rcp_iflag_f32", [](float a) { return reciprocal_f32(a); },
        [](const Call& c, float a) { return permitted_reciprocal_f32(c.transcendentals_key, a); }, flag_own_rounding),
    transcendental<F32>(
        "v_rsq_f32", [](float a) { return reciprocal_square_root_f32(a); },
        [](const Call& c, float a) { return permitted_reciprocal_square_root_f32(c.transcendentals_key, a); },
        flag_own_rounding),
    transcendental<F32>(
        "v_sqrt_f32", [](float a) { return square_root_f32(a); },
        [](const Call& c, float a) { return permitted_square_root_f32(c.transcendentals_key, a); }, flag_own_rounding),
    op<F32(F32)>(
        "v_sin_f32", [](float a) { return sine_f32(a); }, flag_own_rounding | flag_transcendental),
    op<F32(F32)>(
        "v_cos_f32", [](float a) { return cosine_f32(a); }, flag_own_rounding | flag_transcendental),

    op<F32(F32)>(
        "v_frexp_mant_f32", [](float a) { return mantissa_of(a); }, flag_own_rounding),
    op<I32(F32)>(
        "v_frexp_exp_i32_f32", [](float a) { return exponent_of(a); }, flag_own_rounding),
    op<F32(F32, I32)>("v_ldexp_f32", [](float a, i32 power) { return scaled_by(a, power); }),
    op<WithCarry<F32>(F32, F32, F32)>(
        "v_div_scale_f32", [](float a, float b, float c) { return division_scale(a, b, c); }, flag_own_rounding),
    op<F32(F32, F32, F32, Mask)>(
        "v_div_fmas_f32", [](float a, float b, float c, bool scale) { return division_fmas(a, b, c, scale); },
        flag_implicit_vcc | flag_divides),
    op<F32(F32, F32, F32)>("v_div_fixup_f32", [](float a, float b, float c) { return division_fixup(a, b, c); }),

    op<F32(F32, F32, F32)>("v_cubeid_f32",
                           [](float x, float y, float z) {
                             const bool by_z = magnitude(z) >= magnitude(x) && magnitude(z) >= magnitude(y);
                             const float other =
                                 magnitude(y) >= magnitude(x) ? (y < 0.0f ? 3.0f : 2.0f) : (x < 0.0f ? 1.0f : 0.0f);
                             return by_z ? (z < 0.0f ? 5.0f : 4.0f) : other;
                           }),
    op<F32(F32, F32, F32)>("v_cubesc_f32",
                           [](float x, float y, float z) {
                             const bool by_z = magnitude(z) >= magnitude(x) && magnitude(z) >= magnitude(y);
                             const float other = magnitude(y) >= magnitude(x) ? x : (x < 0.0f ? z : negated(z));
                             return by_z ? (z < 0.0f ? negated(x) : x) : other;
                           }),
    op<F32(F32, F32, F32)>("v_cubetc_f32",
                           [](float x, float y, float z) {
                             const bool by_z = magnitude(z) >= magnitude(x) && magnitude(z) >= magnitude(y);
                             const bool by_y = !by_z && magnitude(y) >= magnitude(x);
                             return by_y ? (y < 0.0f ? negated(z) : z) : negated(y);
                           }),
    op<F32(F32, F32, F32)>("v_cubema_f32",
                           [](float x, float y, float z) {
                             const bool by_z = magnitude(z) >= magnitude(x) && magnitude(z) >= magnitude(y);
                             return (by_z ? z : (magnitude(y) >= magnitude(x) ? y : x)) * 2.0f;
                           }),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList float32_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
