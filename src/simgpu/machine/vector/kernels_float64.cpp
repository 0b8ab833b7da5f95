// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// float64 arithmetic and the range-reduction helper of sine and cosine.
#include "simgpu/machine/numerics/float_functions.h"
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

// The first 1216 fractional bits of 2/pi, most significant first.
constexpr u64 two_over_pi[19] = {0xa2f9836e4e441529u, 0xfc2757d1f534ddc0u, 0xdb6295993c439041u, 0xfe5163abdebbc561u,
                                 0xb7246e3a424dd2e0u, 0x06492eea09d1921cu, 0xfe1deb1cb129a73eu, 0xe88235f52ebb4484u,
                                 0xe99c7026b45f7e41u, 0x3991d639835339f4u, 0x9c845f8bbdf9283bu, 0x1ff897ffde05980fu,
                                 0xef2f118b5a0a6d1fu, 0x6d367ecf27cb09b7u, 0x4f463f669e5fea2du, 0x7527bac7ebe5f17bu,
                                 0x3d0739f78a5292eau, 0x6bfb5fb11f8d5d08u, 0x56033046fc7b6babu};

// 53 bits of 2/pi from bit `shift` on, as an integer.
u64 two_over_pi_bits(unsigned shift) {
  const unsigned word = shift / 64;
  const unsigned bit = shift % 64;
  if (word >= 18) return 0;
  const u64 high = two_over_pi[word] << bit;
  const u64 low = bit == 0 ? 0 : two_over_pi[word + 1] >> (64 - bit);
  return (high | low) >> 11;
}

double trig_preop(double a, u32 segment) {
  int shift = static_cast<int>(segment & 31) * 53;
  const int exponent = exponent_field(a);
  if (exponent > 1077) shift += exponent - 1077;
  int scale = -53 - shift;
  if (exponent >= 1968) scale += 128;
  return scaled_by(static_cast<double>(two_over_pi_bits(static_cast<unsigned>(shift))), scale);
}

constexpr Operation operations[] = {
    op<F64(F64, F64)>("v_add_f64", [](double a, double b) { return with_nan_of(a + b, a, b); }),
    op<F64(F64, F64)>("v_mul_f64", [](double a, double b) { return with_nan_of(a * b, a, b); }),
    op<F64(F64, F64, F64)>("v_fma_f64",
                           [](double a, double b, double c) { return with_nan_of(fused(a, b, c), a, b, c); }),
    op<F64(F64, F64, F64)>(
        "v_fmac_f64", [](double a, double b, double c) { return with_nan_of(fused(a, b, c), a, b, c); },
        flag_accumulates),
    op<F64(F64, F64)>("v_min_f64", [](const Call& c, double a, double b) { return minimum_of(c.ieee(), a, b); }),
    op<F64(F64, F64)>("v_max_f64", [](const Call& c, double a, double b) { return maximum_of(c.ieee(), a, b); }),
    op<F64(F64)>("v_trunc_f64", [](double a) { return is_nan(a) ? quiet(a) : __builtin_trunc(a); }),
    op<F64(F64)>("v_ceil_f64", [](double a) { return is_nan(a) ? quiet(a) : __builtin_ceil(a); }),
    op<F64(F64)>("v_floor_f64", [](double a) { return is_nan(a) ? quiet(a) : __builtin_floor(a); }),
    op<F64(F64)>(
        "v_rndne_f64", [](double a) { return is_nan(a) ? quiet(a) : __builtin_roundeven(a); }, flag_own_rounding),
    op<F64(F64)>("v_fract_f64", [](double a) { return fraction_of(a); }),
    // The hardware gives about 28 good bits here and compiled code refines them; the exact quotient is within that.
    op<F64(F64)>(
        "v_rcp_f64", [](double a) { return with_nan_of(1.0 / a, a, a); }, flag_own_rounding | flag_transcendental),
    op<F64(F64)>(
        "v_rsq_f64", [](double a) { return with_nan_of(1.0 / __builtin_sqrt(a < 0.0 ? default_nan(a) : a), a, a); },
        flag_own_rounding | flag_transcendental),
    op<F64(F64)>(
        "v_sqrt_f64", [](double a) { return with_nan_of(__builtin_sqrt(a < 0.0 ? default_nan(a) : a), a, a); },
        flag_own_rounding | flag_transcendental),
    op<F64(F64)>(
        "v_frexp_mant_f64", [](double a) { return mantissa_of(a); }, flag_own_rounding),
    op<I32(F64)>(
        "v_frexp_exp_i32_f64", [](double a) { return exponent_of(a); }, flag_own_rounding),
    op<F64(F64, I32)>("v_ldexp_f64", [](double a, i32 power) { return scaled_by(a, power); }),
    op<WithCarry<F64>(F64, F64, F64)>(
        "v_div_scale_f64", [](double a, double b, double c) { return division_scale(a, b, c); }, flag_own_rounding),
    op<F64(F64, F64, F64, Mask)>(
        "v_div_fmas_f64", [](double a, double b, double c, bool scale) { return division_fmas(a, b, c, scale); },
        flag_implicit_vcc | flag_divides),
    op<F64(F64, F64, F64)>("v_div_fixup_f64", [](double a, double b, double c) { return division_fixup(a, b, c); }),
    op<F64(F64, U32)>(
        "v_trig_preop_f64", [](double a, u32 segment) { return trig_preop(a, segment); }, flag_own_rounding),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList float64_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
