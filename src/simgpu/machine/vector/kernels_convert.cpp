// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Conversions between integers, float32, float64 and float16. Out-of-range values saturate and NaN gives 0 (CDNA3 ISA).
#include "simgpu/machine/vector/kernel.h"
#include "simgpu/machine/vector/kernel_lists.h"

namespace wavejit::simgpu::vector {
namespace {

WAVEJIT_LANE_FUNCTION i32 to_i32(double a) {
  const double bounded = a < -2147483648.0 ? -2147483648.0 : (a > 2147483647.0 ? 2147483647.0 : a);
  return static_cast<i32>(is_nan(a) ? 0.0 : bounded);
}
WAVEJIT_LANE_FUNCTION u32 to_u32(double a) {
  const double bounded = a > 4294967295.0 ? 4294967295.0 : a;
  // Through the signed conversion, which every host has.
  const double positive = is_nan(a) || a < 0.0 ? 0.0 : bounded;
  const bool upper = positive >= 2147483648.0;
  const auto low = static_cast<u32>(static_cast<i32>(upper ? positive - 2147483648.0 : positive));
  return upper ? low | 0x80000000u : low;
}
WAVEJIT_LANE_FUNCTION u32 to_snorm(float a) {
  const float scaled = __builtin_roundevenf(a * 32767.0f);
  const float bounded = scaled < -32767.0f ? -32767.0f : (scaled > 32767.0f ? 32767.0f : scaled);
  return static_cast<u32>(is_nan(a) ? 0 : static_cast<i32>(bounded)) & 0xffffu;
}
WAVEJIT_LANE_FUNCTION u32 to_unorm(float a) {
  const float scaled = __builtin_roundevenf(a * 65535.0f);
  const float bounded = scaled < 0.0f ? 0.0f : (scaled > 65535.0f ? 65535.0f : scaled);
  return static_cast<u32>(is_nan(a) ? 0 : static_cast<i32>(bounded));
}
WAVEJIT_LANE_FUNCTION u32 to_u8(float a) {
  const float bounded = a < 0.0f ? 0.0f : (a > 255.0f ? 255.0f : a);
  return static_cast<u32>(is_nan(a) ? 0 : static_cast<i32>(bounded));
}
WAVEJIT_LANE_FUNCTION u32 with_byte(u32 word, u32 index, u32 byte) {
  const u32 shift = (index & 3) * 8;
  return (word & ~(0xffu << shift)) | (byte << shift);
}
WAVEJIT_LANE_FUNCTION u32 saturated_u8(i32 a) { return static_cast<u32>(a < 0 ? 0 : (a > 255 ? 255 : a)); }
WAVEJIT_LANE_FUNCTION u32 saturated_i16(i32 a) {
  return static_cast<u32>(a < -32768 ? -32768 : (a > 32767 ? 32767 : a)) & 0xffffu;
}

constexpr unsigned exactly = flag_own_rounding;

constexpr Operation operations[] = {
    op<I32(F32)>(
        "v_cvt_i32_f32", [](float a) { return to_i32(static_cast<double>(a)); }, exactly),
    op<U32(F32)>(
        "v_cvt_u32_f32", [](float a) { return to_u32(static_cast<double>(a)); }, exactly),
    op<I32(F64)>(
        "v_cvt_i32_f64", [](double a) { return to_i32(a); }, exactly),
    op<U32(F64)>(
        "v_cvt_u32_f64", [](double a) { return to_u32(a); }, exactly),
    op<F32(I32)>("v_cvt_f32_i32", [](i32 a) { return static_cast<float>(static_cast<double>(a)); }),
    op<F32(U32)>("v_cvt_f32_u32",
                 [](u32 a) {
                   const auto upper = static_cast<double>(static_cast<i32>(a >> 16));
                   const auto lower = static_cast<double>(static_cast<i32>(a & 0xffffu));
                   return static_cast<float>(upper * 65536.0 + lower);
                 }),
    op<F64(I32)>(
        "v_cvt_f64_i32", [](i32 a) { return static_cast<double>(a); }, exactly),
    op<F64(U32)>(
        "v_cvt_f64_u32",
        [](u32 a) {
          const auto upper = static_cast<double>(static_cast<i32>(a >> 16));
          const auto lower = static_cast<double>(static_cast<i32>(a & 0xffffu));
          return upper * 65536.0 + lower;
        },
        exactly),
    op<F32(F64)>("v_cvt_f32_f64",
                 [](double a) {
                   const auto payload = static_cast<u32>(bits_of(a) >> 29) & 0x3fffffu;
                   const auto sign = static_cast<u32>(bits_of(a) >> 63) << 31;
                   return is_nan(a) ? float_of(sign | 0x7fc00000u | payload) : static_cast<float>(a);
                 }),
    op<F64(F32)>(
        "v_cvt_f64_f32",
        [](float a) {
          const u64 payload = static_cast<u64>(bits_of(a) & 0x3fffffu) << 29;
          const u64 sign = static_cast<u64>(bits_of(a) >> 31) << 63;
          return is_nan(a) ? double_of(sign | 0x7ff8000000000000u | payload) : static_cast<double>(a);
        },
        exactly),
    op<F16(F32)>("v_cvt_f16_f32", [](float a) { return a; }),
    op<F32(F16)>("v_cvt_f32_f16", [](float a) { return is_nan(a) ? quiet(a) : a; }),
    op<F32(Bf16)>(
        "v_cvt_f32_bf16", [](float a) { return is_nan(a) ? quiet(a) : a; }, flag_ocp_only),
    op<I32(F32)>(
        "v_cvt_rpi_i32_f32", [](float a) { return to_i32(static_cast<double>(__builtin_floorf(a + 0.5f))); }, exactly),
    op<I32(F32)>(
        "v_cvt_flr_i32_f32", [](float a) { return to_i32(static_cast<double>(__builtin_floorf(a))); }, exactly),
    op<F32(U32)>("v_cvt_off_f32_i4",
                 [](u32 a) {
                   const auto value = static_cast<i32>(a << 28) >> 28;
                   return static_cast<float>(value) * 0.0625f;
                 }),
    op<F32(U32)>("v_cvt_f32_ubyte0", [](u32 a) { return static_cast<float>(static_cast<i32>(a & 0xffu)); }),
    op<F32(U32)>("v_cvt_f32_ubyte1", [](u32 a) { return static_cast<float>(static_cast<i32>((a >> 8) & 0xffu)); }),
    op<F32(U32)>("v_cvt_f32_ubyte2", [](u32 a) { return static_cast<float>(static_cast<i32>((a >> 16) & 0xffu)); }),
    op<F32(U32)>("v_cvt_f32_ubyte3", [](u32 a) { return static_cast<float>(static_cast<i32>(a >> 24)); }),
    op<U32(F32, U32, U32)>(
        "v_cvt_pk_u8_f32", [](float a, u32 index, u32 word) { return with_byte(word, index, to_u8(a)); },
        exactly | flows(Flow::pack)),
    op<U32(F32, U32, U32)>(
        "v_cvt_pkaccum_u8_f32", [](float a, u32 index, u32 word) { return with_byte(word, index, to_u8(a)); },
        exactly | flag_accumulates),
    op<U32(F32, F32)>(
        "v_cvt_pkrtz_f16_f32",
        [](float a, float b) {
          return f32_to_f16(a, Rounding::toward_zero) | (f32_to_f16(b, Rounding::toward_zero) << 16);
        },
        exactly | flows(Flow::pack)),
    op<PairHalf(F32, F32)>(
        "v_cvt_pk_f16_f32", [](float a, float b) { return Pair16{f32_to_f16(a), f32_to_f16(b)}; },
        exactly | flag_ocp_only | flows(Flow::pack)),
    op<PairBf16(F32, F32)>(
        "v_cvt_pk_bf16_f32", [](float a, float b) { return Pair16{f32_to_bf16(a), f32_to_bf16(b)}; },
        exactly | flag_ocp_only | flows(Flow::pack)),
    op<U32(F32, F32)>(
        "v_cvt_pknorm_i16_f32", [](float a, float b) { return to_snorm(a) | (to_snorm(b) << 16); },
        exactly | flows(Flow::pack)),
    op<U32(F32, F32)>(
        "v_cvt_pknorm_u16_f32", [](float a, float b) { return to_unorm(a) | (to_unorm(b) << 16); },
        exactly | flows(Flow::pack)),
    op<U32(F16, F16)>(
        "v_cvt_pknorm_i16_f16", [](float a, float b) { return to_snorm(a) | (to_snorm(b) << 16); },
        exactly | flows(Flow::pack)),
    op<U32(F16, F16)>(
        "v_cvt_pknorm_u16_f16", [](float a, float b) { return to_unorm(a) | (to_unorm(b) << 16); },
        exactly | flows(Flow::pack)),
    op<U32(U32, U32)>(
        "v_cvt_pk_u16_u32",
        [](u32 a, u32 b) { return (a > 0xffffu ? 0xffffu : a) | ((b > 0xffffu ? 0xffffu : b) << 16); },
        flows(Flow::pack)),
    op<U32(I32, I32)>(
        "v_cvt_pk_i16_i32", [](i32 a, i32 b) { return saturated_i16(a) | (saturated_i16(b) << 16); },
        flows(Flow::pack)),
    op<U16(U32)>("v_sat_pk_u8_i16",
                 [](u32 a) {
                   const u32 low = saturated_u8(static_cast<std::int16_t>(a));
                   const u32 high = saturated_u8(static_cast<std::int16_t>(a >> 16));
                   return static_cast<i32>(low | (high << 8));
                 }),
    op<Half(F32, U32, U32)>(
        "v_cvt_sr_f16_f32",
        [](float a, u32 noise, u32 /*old*/) {
          // Noise below the last kept bit, then truncation.
          const u32 rest = bits_of(a) & 0x7fffffffu;
          if (rest >= 0x7f800000u) return f32_to_f16(a);
          const float noisy = float_of(bits_of(a) + (noise >> 19));
          return f32_to_f16(noisy, Rounding::toward_zero);
        },
        exactly | flag_ocp_only | flag_keeps_high_half | flag_accumulates),
    op<Half(F32, U32, U32)>(
        "v_cvt_sr_bf16_f32",
        [](float a, u32 noise, u32 /*old*/) {
          return is_nan(a) || magnitude(a) > 3.40282346638528859812e38f ? f32_to_bf16(a)
                                                                        : (bits_of(a) + (noise >> 16)) >> 16;
        },
        exactly | flag_ocp_only | flag_keeps_high_half | flag_accumulates),
};

}  // namespace

namespace WAVEJIT_HOST_SET {
OperationList convert_operations() { return list_of(operations); }
}  // namespace WAVEJIT_HOST_SET

}  // namespace wavejit::simgpu::vector
