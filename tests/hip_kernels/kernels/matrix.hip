// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Matrix products and what stands around them in a neural network.
#include "device.h"

extern "C" DEVICE float __ocml_exp_f32(float);
extern "C" DEVICE float __ocml_tanh_f32(float);

typedef half half4 __attribute__((ext_vector_type(4)));
typedef half half8 __attribute__((ext_vector_type(8)));
typedef short short4v __attribute__((ext_vector_type(4)));
typedef bf16 bf16x8 __attribute__((ext_vector_type(8)));
typedef float float4v __attribute__((ext_vector_type(4)));
typedef float float8v __attribute__((ext_vector_type(8)));
typedef short short8v __attribute__((ext_vector_type(8)));
typedef int int2v __attribute__((ext_vector_type(2)));
typedef int int8v __attribute__((ext_vector_type(8)));
typedef float float16v __attribute__((ext_vector_type(16)));

// C[m×n] = A[m×k]·B[k×n], a thread an element.
KERNEL void matmul_plain(const float* a, const float* b, float* c, uint32_t m, uint32_t n, uint32_t k) {
#pragma clang fp contract(off)
  const uint32_t row = block_y() * block_size(1) + thread_y();
  const uint32_t column = block_x() * block_size(0) + thread_x();
  if (row >= m || column >= n) return;
  float sum = 0;
  for (uint32_t i = 0; i < k; ++i) sum += a[row * k + i] * b[i * n + column];
  c[row * n + column] = sum;
}

// The same through 16×16 tiles in LDS, sizes multiples of 16.
KERNEL void matmul_tiled(const float* a, const float* b, float* c, uint32_t n, uint32_t k) {
  SHARED static float tile_a[16][16];
  SHARED static float tile_b[16][17];
  const uint32_t row = block_y() * 16 + thread_y();
  const uint32_t column = block_x() * 16 + thread_x();
  float sum = 0;
  for (uint32_t start = 0; start < k; start += 16) {
    tile_a[thread_y()][thread_x()] = a[row * k + start + thread_x()];
    tile_b[thread_y()][thread_x()] = b[(start + thread_y()) * n + column];
    barrier();
#pragma unroll
    for (uint32_t i = 0; i < 16; ++i) sum += tile_a[thread_y()][i] * tile_b[i][thread_x()];
    barrier();
  }
  c[row * n + column] = sum;
}

#if defined(__GFX12__)

// A lane's part of a 16×16 operand and of the result, and the row of its first result.
#if defined(WAVEFRONT_SIZE_64)
typedef half4 halves_of_lane;
typedef short4v shorts_of_lane;
typedef int bytes_of_lane;
typedef float4v floats_of_lane;
typedef int int4v __attribute__((ext_vector_type(4)));
typedef int4v ints_of_lane;
#define WMMA(types) __builtin_amdgcn_wmma_##types##_w64_gfx12
inline DEVICE uint32_t first_result_row() { return lane() / 16 % 2 * 8 + lane() / 32 * 4; }
#else
typedef half8 halves_of_lane;
typedef short8v shorts_of_lane;
typedef int2v bytes_of_lane;
typedef float8v floats_of_lane;
typedef int8v ints_of_lane;
#define WMMA(types) __builtin_amdgcn_wmma_##types##_w32_gfx12
inline DEVICE uint32_t first_result_row() { return lane() / 16 * 8; }
#endif
constexpr uint32_t lane_part = 16 * 16 / wave_size;

// One wave, one 16×16 tile, 16x16x16: A is [16×k], B is kept transposed as [16×k].
KERNEL void matmul_wmma_f16(const half* a, const half* bt, float* c, uint32_t k) {
  floats_of_lane sum = {};
  const uint32_t row = lane() % 16;
  const uint32_t group = lane() / 16;
  for (uint32_t start = 0; start < k; start += 16) {
    const auto left = *reinterpret_cast<const halves_of_lane*>(a + row * k + start + lane_part * group);
    const auto right = *reinterpret_cast<const halves_of_lane*>(bt + row * k + start + lane_part * group);
    sum = WMMA(f32_16x16x16_f16)(left, right, sum);
  }
  for (uint32_t r = 0; r < lane_part; ++r) c[(first_result_row() + r) * 16 + row] = sum[r];
}

KERNEL void matmul_wmma_bf16(const uint16_t* a, const uint16_t* bt, float* c, uint32_t k) {
  floats_of_lane sum = {};
  const uint32_t row = lane() % 16;
  const uint32_t group = lane() / 16;
  for (uint32_t start = 0; start < k; start += 16) {
    const auto left = *reinterpret_cast<const shorts_of_lane*>(a + row * k + start + lane_part * group);
    const auto right = *reinterpret_cast<const shorts_of_lane*>(bt + row * k + start + lane_part * group);
    sum = WMMA(f32_16x16x16_bf16)(left, right, sum);
  }
  for (uint32_t r = 0; r < lane_part; ++r) c[(first_result_row() + r) * 16 + row] = sum[r];
}

#if !defined(WAVEFRONT_SIZE_64)
// B as rows of 16, transposed on the way in: lane L points at row L % 8 of its group of eight.
KERNEL void matmul_wmma_transposed(const half* a, const half* b, float* c, uint32_t k) {
  float8v sum = {};
  const uint32_t row = lane() % 16;
  const uint32_t group = lane() / 16;
  for (uint32_t start = 0; start < k; start += 16) {
    const half8 left = *reinterpret_cast<const half8*>(a + row * k + start + 8 * group);
    const half* from = b + (start + 8 * group + lane() % 8) * 16 + 8 * (lane() / 8 % 2);
    const half8 right = __builtin_bit_cast(
        half8, __builtin_amdgcn_global_load_tr_b128_v8i16((GLOBAL_MEMORY short8v*)const_cast<half*>(from)));
    sum = __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(left, right, sum);
  }
  for (uint32_t r = 0; r < 8; ++r) c[(8 * group + r) * 16 + row] = sum[r];
}
#endif

// Signed times unsigned bytes: exact.
KERNEL void matmul_wmma_iu8(const int8_t* a, const uint8_t* bt, int* c, uint32_t k) {
  ints_of_lane sum = {};
  const uint32_t row = lane() % 16;
  const uint32_t group = lane() / 16;
  for (uint32_t start = 0; start < k; start += 16) {
    const auto left = *reinterpret_cast<const bytes_of_lane*>(a + row * k + start + lane_part * group);
    const auto right = *reinterpret_cast<const bytes_of_lane*>(bt + row * k + start + lane_part * group);
    sum = WMMA(i32_16x16x16_iu8)(true, left, false, right, sum, false);
  }
  for (uint32_t r = 0; r < lane_part; ++r) c[(first_result_row() + r) * 16 + row] = sum[r];
}

#else

// One wave, one 32×32 tile, 32x32x8 f16: A is [32×k], B is [k×32] kept transposed as [32×k].
KERNEL void matmul_mfma_f16_32(const half* a, const half* bt, float* c, uint32_t k) {
  float16v sum = {};
  const uint32_t row = lane() % 32;
  const uint32_t group = lane() / 32;
  for (uint32_t start = 0; start < k; start += 8) {
    const half4 left = *reinterpret_cast<const half4*>(a + row * k + start + 4 * group);
    const half4 right = *reinterpret_cast<const half4*>(bt + row * k + start + 4 * group);
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left, right, sum, 0, 0, 0);
  }
  for (uint32_t r = 0; r < 16; ++r) c[(8 * (r / 4) + 4 * group + r % 4) * 32 + row] = sum[r];
}

// 16x16x16 f16, a block of four waves makes a 32×32 tile.
KERNEL void matmul_mfma_f16_16(const half* a, const half* bt, float* c, uint32_t k) {
  float4v sum = {};
  const uint32_t wave = thread_x() / wave_size;
  const uint32_t row = lane() % 16;
  const uint32_t group = lane() / 16;
  const half* rows_a = a + (wave / 2 * 16 + row) * k;
  const half* rows_b = bt + (wave % 2 * 16 + row) * k;
  for (uint32_t start = 0; start < k; start += 16) {
    const half4 left = *reinterpret_cast<const half4*>(rows_a + start + 4 * group);
    const half4 right = *reinterpret_cast<const half4*>(rows_b + start + 4 * group);
    sum = __builtin_amdgcn_mfma_f32_16x16x16f16(left, right, sum, 0, 0, 0);
  }
  for (uint32_t r = 0; r < 4; ++r) {
    c[(wave / 2 * 16 + 4 * group + r) * 32 + wave % 2 * 16 + row] = sum[r];
  }
}

// bf16 as 16-bit patterns: 32x32x8 with four k a lane.
KERNEL void matmul_mfma_bf16_32(const uint16_t* a, const uint16_t* bt, float* c, uint32_t k) {
  float16v sum = {};
  const uint32_t row = lane() % 32;
  const uint32_t group = lane() / 32;
  for (uint32_t start = 0; start < k; start += 8) {
    const short4v left = *reinterpret_cast<const short4v*>(a + row * k + start + 4 * group);
    const short4v right = *reinterpret_cast<const short4v*>(bt + row * k + start + 4 * group);
    sum = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(left, right, sum, 0, 0, 0);
  }
  for (uint32_t r = 0; r < 16; ++r) c[(8 * (r / 4) + 4 * group + r % 4) * 32 + row] = sum[r];
}

// The widest k that the target has: 32x32x16 on gfx950, two steps of 32x32x8 elsewhere.
KERNEL void matmul_mfma_wide(const half* a, const half* bt, float* c, uint32_t k) {
  float16v sum = {};
  const uint32_t row = lane() % 32;
  const uint32_t group = lane() / 32;
  for (uint32_t start = 0; start < k; start += 16) {
    const half8 left = *reinterpret_cast<const half8*>(a + row * k + start + 8 * group);
    const half8 right = *reinterpret_cast<const half8*>(bt + row * k + start + 8 * group);
#if defined(__gfx950__)
    sum = __builtin_amdgcn_mfma_f32_32x32x16_f16(left, right, sum, 0, 0, 0);
#else
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left.lo, right.lo, sum, 0, 0, 0);
    sum = __builtin_amdgcn_mfma_f32_32x32x8f16(left.hi, right.hi, sum, 0, 0, 0);
#endif
  }
  for (uint32_t r = 0; r < 16; ++r) c[(8 * (r / 4) + 4 * group + r % 4) * 32 + row] = sum[r];
}

#endif

// Row softmax, one block a row.
KERNEL void softmax(const float* in, float* out, uint32_t columns) {
  SHARED static float partial[256];
  const float* row = in + block_x() * columns;
  float most = -__builtin_inff();
  for (uint32_t i = thread_x(); i < columns; i += block_size(0)) most = __builtin_fmaxf(most, row[i]);
  partial[thread_x()] = most;
  barrier();
  for (uint32_t step = block_size(0) / 2; step > 0; step /= 2) {
    if (thread_x() < step) partial[thread_x()] = __builtin_fmaxf(partial[thread_x()], partial[thread_x() + step]);
    barrier();
  }
  most = partial[0];
  barrier();
  float sum = 0;
  for (uint32_t i = thread_x(); i < columns; i += block_size(0)) sum += __ocml_exp_f32(row[i] - most);
  partial[thread_x()] = sum;
  barrier();
  for (uint32_t step = block_size(0) / 2; step > 0; step /= 2) {
    if (thread_x() < step) partial[thread_x()] += partial[thread_x() + step];
    barrier();
  }
  const float scale = 1.0F / partial[0];
  for (uint32_t i = thread_x(); i < columns; i += block_size(0)) {
    out[block_x() * columns + i] = __ocml_exp_f32(row[i] - most) * scale;
  }
}

// Layer norm of half rows, one wave a row, Welford's update merged across lanes.
KERNEL void layer_norm(const half* in, const float* gain, const float* bias, half* out, uint32_t columns) {
  const half* row = in + block_x() * columns;
  float mean = 0;
  float squares = 0;
  float count = 0;
  for (uint32_t i = thread_x(); i < columns; i += wave_size) {
    const float value = static_cast<float>(row[i]);
    count += 1;
    const float before = value - mean;
    mean += before / count;
    squares += before * (value - mean);
  }
  for (uint32_t mask = 1; mask < wave_size; mask *= 2) {
    const float other_count = shuffle_xor(count, mask);
    const float other_mean = shuffle_xor(mean, mask);
    const float other_squares = shuffle_xor(squares, mask);
    const float total = count + other_count;
    if (total > 0) {
      const float delta = other_mean - mean;
      squares += other_squares + delta * delta * count * other_count / total;
      mean = (mean * count + other_mean * other_count) / total;
    }
    count = total;
  }
  const float scale = 1.0F / __builtin_sqrtf(squares / count + 1e-5F);
  for (uint32_t i = thread_x(); i < columns; i += wave_size) {
    out[block_x() * columns + i] = static_cast<half>((static_cast<float>(row[i]) - mean) * scale * gain[i] + bias[i]);
  }
}

// The tanh form of gelu over bf16.
KERNEL void gelu_bf16(const bf16* in, bf16* out, uint32_t n) {
  if (global_x() >= n) return;
  const float x = static_cast<float>(in[global_x()]);
  const float inner = 0.79788456F * (x + 0.044715F * x * x * x);
  out[global_x()] = static_cast<bf16>(0.5F * x * (1 + __ocml_tanh_f32(inner)));
}
