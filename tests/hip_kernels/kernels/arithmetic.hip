// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Scalar arithmetic of every kind, a thread an element.
#include "device.h"

extern "C" DEVICE float __ocml_sin_f32(float);
extern "C" DEVICE float __ocml_cos_f32(float);
extern "C" DEVICE float __ocml_exp_f32(float);
extern "C" DEVICE float __ocml_log_f32(float);
extern "C" DEVICE float __ocml_pow_f32(float, float);
extern "C" DEVICE float __ocml_atan2_f32(float, float);
extern "C" DEVICE double __ocml_sin_f64(double);
extern "C" DEVICE double __ocml_exp_f64(double);
extern "C" DEVICE double __ocml_log_f64(double);

typedef half half2 __attribute__((ext_vector_type(2)));
typedef float float2v __attribute__((ext_vector_type(2)));

KERNEL void divide_i32(const int* a, const int* b, int* quotient, int* remainder, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  quotient[i] = a[i] / b[i];
  remainder[i] = a[i] % b[i];
}

KERNEL void divide_u32(const uint32_t* a, const uint32_t* b, uint32_t* quotient, uint32_t* by_constant, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  quotient[i] = a[i] / b[i] + a[i] % b[i];
  by_constant[i] = a[i] / 7 + a[i] % 1000003 * (a[i] / 641);
}

KERNEL void divide_i64(const int64_t* a, const int64_t* b, int64_t* quotient, uint64_t* remainder, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  quotient[i] = a[i] / b[i];
  remainder[i] = static_cast<uint64_t>(a[i]) % static_cast<uint64_t>(b[i]);
}

// IEEE division and square root, correctly rounded, denormals included.
KERNEL void divide_f32(const float* a, const float* b, float* quotient, float* root, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  quotient[i] = a[i] / b[i];
  root[i] = __builtin_sqrtf(__builtin_fabsf(a[i]));
}

KERNEL void double_arithmetic(const double* a, const double* b, double* out, uint32_t n) {
#pragma clang fp contract(off)
  const uint32_t i = global_x();
  if (i >= n) return;
  const double x = a[i];
  const double y = b[i];
  out[8 * i] = x + y;
  out[8 * i + 1] = x * y - x;
  out[8 * i + 2] = x / y;
  out[8 * i + 3] = __builtin_sqrt(__builtin_fabs(x));
  out[8 * i + 4] = __builtin_fma(x, y, -x * y);
  out[8 * i + 5] = x < y ? __builtin_floor(x) : __builtin_trunc(y);
  out[8 * i + 6] = static_cast<double>(static_cast<float>(x)) + static_cast<double>(static_cast<int>(y));
  out[8 * i + 7] =
      __builtin_fmin(x, y) + __builtin_rint(x) + static_cast<double>(static_cast<uint32_t>(i * 2654435761U));
}

KERNEL void bit_tricks(const uint32_t* in, uint32_t* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  const uint32_t x = in[i];
  const uint64_t wide = (static_cast<uint64_t>(x) << 32 | ~x) * 0x9e3779b97f4a7c15ULL;
  uint32_t* o = out + 12 * i;
  o[0] = static_cast<uint32_t>(__builtin_popcount(x));
  o[1] = x == 0 ? 32 : static_cast<uint32_t>(__builtin_clz(x));
  o[2] = x == 0 ? 32 : static_cast<uint32_t>(__builtin_ctz(x));
  o[3] = __builtin_bitreverse32(x);
  o[4] = __builtin_bswap32(x);
  o[5] = __builtin_rotateleft32(x, i % 32);
  o[6] = (x >> (i % 27) & 0x1f) + (static_cast<uint32_t>(static_cast<int>(x) << 7 >> 20) & 0xffff);
  o[7] = static_cast<uint32_t>(__builtin_popcountll(wide)) + static_cast<uint32_t>(__builtin_clzll(wide | 1));
  o[8] = static_cast<uint32_t>(wide >> (i % 64));
  o[9] = static_cast<uint32_t>((static_cast<uint64_t>(x) * (x ^ 0x5bd1e995U)) >> 32);
  o[10] = (x & 0xff00ff00U) >> 8 | (x & 0x00ff00ffU) << 8;
  o[11] = static_cast<uint32_t>(static_cast<int64_t>(wide) >> (i % 63)) ^ static_cast<uint32_t>(wide << (i % 13) >> 17);
}

// Sub-word arithmetic: bytes and shorts, signed and not, saturating and averaging.
KERNEL void small_integers(const uint8_t* a, const int8_t* b, uint8_t* bytes, int16_t* shorts, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  const int sum = a[i] + b[i];
  bytes[i] = static_cast<uint8_t>(sum < 0 ? 0 : sum > 255 ? 255 : sum);
  const auto product = static_cast<int16_t>(a[i] * b[i]);
  shorts[i] = static_cast<int16_t>(product + static_cast<int16_t>(b[i] << 3) - (a[i] + 1) / 2);
}

KERNEL void half_arithmetic(const half* a, const half* b, half* out, uint32_t n) {
#pragma clang fp contract(off)
  const uint32_t i = global_x();
  if (2 * i >= n) return;
  const half2 x = reinterpret_cast<const half2*>(a)[i];
  const half2 y = reinterpret_cast<const half2*>(b)[i];
  half2 value = x * y + x;
  value = __builtin_elementwise_max(value, half2{-3, -3});
  value = __builtin_elementwise_min(value, half2{40, 40});
  value.x = value.x / (y.x * y.x + static_cast<half>(1));
  reinterpret_cast<half2*>(out)[i] = value;
}

KERNEL void half_converts(const float* in, half* narrowed, float* widened, int* integers, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  const half h = static_cast<half>(in[i]);
  narrowed[i] = h;
  widened[i] = static_cast<float>(h) * 2.0F;
  integers[i] = static_cast<int>(static_cast<short>(static_cast<half>(in[i] > 100    ? 100.0F
                                                                      : in[i] < -100 ? -100.0F
                                                                                     : in[i])));
}

KERNEL void bf16_converts(const float* in, bf16* narrowed, float* sums, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  const bf16 value = static_cast<bf16>(in[i]);
  narrowed[i] = value;
  sums[i] = static_cast<float>(value) + static_cast<float>(static_cast<bf16>(in[i] * 3.0F));
}

// fp8 and bf8 in the target's own encoding: gfx942 has the FNUZ forms, gfx950 the OCP ones.
KERNEL void fp8_converts(const float* in, uint32_t* packed, float* unpacked, uint32_t n) {
  const uint32_t i = global_x();
  if (2 * i + 1 >= n) return;
  int fp8 = __builtin_amdgcn_cvt_pk_fp8_f32(in[2 * i], in[2 * i + 1], 0, false);
  fp8 = __builtin_amdgcn_cvt_pk_bf8_f32(in[2 * i], in[2 * i + 1], fp8, true);
  packed[i] = static_cast<uint32_t>(fp8);
  unpacked[4 * i] = __builtin_amdgcn_cvt_f32_fp8(fp8, 0);
  unpacked[4 * i + 1] = __builtin_amdgcn_cvt_f32_fp8(fp8, 1);
  const float2v pair = __builtin_amdgcn_cvt_pk_f32_bf8(fp8, true);
  unpacked[4 * i + 2] = pair.x;
  unpacked[4 * i + 3] = pair.y;
}

// Conversions that C leaves undefined and the language extension defines: NaN is 0, what is too large saturates.
KERNEL void saturating_converts(const float* in, int* to_int, uint32_t* to_uint, int64_t* to_long, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  const float x = in[i];
  to_int[i] = __builtin_isnan(x) ? 0 : x >= 0x1p31F ? 0x7fffffff : x < -0x1p31F ? -0x7fffffff - 1 : static_cast<int>(x);
  to_uint[i] = !(x > 0) ? 0 : x >= 0x1p32F ? 0xffffffffU : static_cast<uint32_t>(x);
  to_long[i] = __builtin_isnan(x) ? 0
               : x >= 0x1p62F     ? (1LL << 62)
               : x < -0x1p62F     ? -(1LL << 62)
                                  : static_cast<int64_t>(x);
}

KERNEL void integer_to_float(const int64_t* in, float* from_i64, float* from_u32, double* wide, half* narrow,
                             uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  from_i64[i] = static_cast<float>(in[i]);
  from_u32[i] = static_cast<float>(static_cast<uint32_t>(in[i]));
  wide[i] = static_cast<double>(in[i]) + static_cast<double>(static_cast<uint64_t>(in[i]));
  narrow[i] = static_cast<half>(static_cast<float>(in[i] % 60000));
}

KERNEL void float_modulo(const float* a, const float* b, float* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  out[i] = __builtin_fmodf(a[i], b[i]);
}

KERNEL void math_f32(const float* in, float* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  const float x = in[i];
  float* o = out + 6 * i;
  o[0] = __ocml_sin_f32(x);
  o[1] = __ocml_cos_f32(x);
  o[2] = __ocml_exp_f32(x / 16);
  o[3] = __ocml_log_f32(__builtin_fabsf(x));
  o[4] = __ocml_pow_f32(__builtin_fabsf(x), 0.3F);
  o[5] = __ocml_atan2_f32(x, 3.0F);
}

KERNEL void math_f64(const double* in, double* out, uint32_t n) {
  const uint32_t i = global_x();
  if (i >= n) return;
  out[3 * i] = __ocml_sin_f64(in[i]);
  out[3 * i + 1] = __ocml_exp_f64(in[i] / 8);
  out[3 * i + 2] = __ocml_log_f64(__builtin_fabs(in[i]));
}

// Mandelbrot: complex arithmetic and lanes that leave the loop at different times.
KERNEL void mandelbrot(uint32_t* iterations, uint32_t width, uint32_t height, uint32_t most) {
#pragma clang fp contract(off)
  const uint32_t x = block_x() * block_size(0) + thread_x();
  const uint32_t y = block_y() * block_size(1) + thread_y();
  if (x >= width || y >= height) return;
  const float cr = -2.0F + 3.0F * static_cast<float>(x) / static_cast<float>(width);
  const float ci = -1.0F + 2.0F * static_cast<float>(y) / static_cast<float>(height);
  float re = 0;
  float im = 0;
  uint32_t i = 0;
  while (i < most && re * re + im * im <= 4.0F) {
    const float next = re * re - im * im + cr;
    im = 2.0F * re * im + ci;
    re = next;
    ++i;
  }
  iterations[y * width + x] = i;
}
