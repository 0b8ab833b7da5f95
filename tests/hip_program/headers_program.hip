// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's program that leans on HIP's own headers: half, bfloat16 and fp8 types, warp functions, cooperative groups,
// votes over a block, math. Every result is compared with the host's.
#include <hip/hip_bf16.h>
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_fp16.h>
#include <hip/hip_fp8.h>
#include <hip/hip_runtime.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace cg = cooperative_groups;

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    const hipError_t status = (call);                                                                \
    if (status != hipSuccess) {                                                                      \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, hipGetErrorString(status)); \
      std::exit(1);                                                                                  \
    }                                                                                                \
  } while (false)

#define EXPECT(condition)                                                                             \
  do {                                                                                                \
    if (!(condition)) {                                                                               \
      std::fprintf(stderr, "%s:%d: not true at element %d: %s\n", __FILE__, __LINE__, i, #condition); \
      std::exit(1);                                                                                   \
    }                                                                                                 \
  } while (false)

constexpr int n = 256;

template <typename T>
T* managed(int count) {
  T* pointer;
  CHECK(hipMallocManaged(&pointer, count * sizeof(T)));
  return pointer;
}

__global__ void halves(const float* in, float* out) {
  const int i = threadIdx.x;
  const __half2 pair = __floats2half2_rn(in[i], in[(i + 1) % n]);
  const __half2 sum = __hfma2(pair, __float2half2_rn(0.5f), __half2half2(__float2half(1.0f)));
  out[2 * i] = __low2float(sum);
  out[2 * i + 1] = __half2float(hsqrt(__habs(__high2half(pair)))) + (__hgt(pair.x, pair.y) ? 100.0f : 0.0f);
}

__global__ void bfloats(const float* in, float* out) {
  const int i = threadIdx.x;
  const __hip_bfloat16 a = __float2bfloat16(in[i]);
  const __hip_bfloat16 b = __float2bfloat16(3.0f);
  out[2 * i] = __bfloat162float(__hmul(a, b));
  out[2 * i + 1] = __bfloat162float(__hadd(a, b));
}

// The types of the target's own encoding: fnuz on gfx942, OCP on gfx950.
#if defined(__gfx942__)
using fp8 = __hip_fp8_e4m3_fnuz;
#else
using fp8 = __hip_fp8_e4m3;
#endif
__global__ void small_floats(const float* in, float* out) {
  out[threadIdx.x] = static_cast<float>(fp8(in[threadIdx.x]));
}

__global__ void warps(const int* in, int* out, unsigned long long* votes) {
  const int i = threadIdx.x;
  int sum = in[i];
  for (int offset = warpSize / 2; offset > 0; offset /= 2) sum += __shfl_down(sum, offset);
  out[4 * i] = __shfl(sum, 0);
  out[4 * i + 1] = __shfl_xor(in[i], 3, 16);
  out[4 * i + 2] = __shfl_up(in[i], 2, 32);
  out[4 * i + 3] = __any(in[i] == 7) + 2 * __all(in[i] >= 0);
  votes[i] = __ballot(in[i] % 3 == 0);
}

__global__ void blocks(const int* in, int* out) {
  out[0 * n + threadIdx.x] = __syncthreads_count(in[threadIdx.x] % 2);
  out[1 * n + threadIdx.x] = __syncthreads_and(in[threadIdx.x] < 1000);
  out[2 * n + threadIdx.x] = __syncthreads_or(in[threadIdx.x] == 12345);
}

__global__ void groups(const int* in, int* out) {
  const auto block = cg::this_thread_block();
  const auto tile = cg::tiled_partition<16>(block);
  int sum = in[block.thread_rank()];
  for (unsigned step = tile.size() / 2; step > 0; step /= 2) sum += tile.shfl_xor(sum, step);
  out[block.thread_rank()] = sum + static_cast<int>(tile.thread_rank());
  block.sync();
}

__global__ void integers(const int* in, int* out) {
  const int i = threadIdx.x;
  out[4 * i] = __popc(in[i]) + __clz(in[i]) + __ffs(in[i]);
  out[4 * i + 1] = __mulhi(in[i], 123456789) + static_cast<int>(__umulhi(in[i], 0xdeadbeefu));
  out[4 * i + 2] = static_cast<int>(__byte_perm(in[i], ~in[i], 0x5140)) ^ static_cast<int>(__brev(in[i]));
  out[4 * i + 3] = __sad(in[i], 1000, 5) + __mul24(in[i] & 0xffff, 77);
}

__global__ void math(const float* in, float* out) {
  const int i = threadIdx.x;
  const float x = in[i];
  out[8 * i] = erff(x);
  out[8 * i + 1] = log1pf(fabsf(x));
  out[8 * i + 2] = cbrtf(x);
  out[8 * i + 3] = tgammaf(1.5f + fabsf(x) / 8);
  out[8 * i + 4] = hypotf(x, 2.0f);
  out[8 * i + 5] = rsqrtf(1 + x * x);
  out[8 * i + 6] = static_cast<float>(tanh(static_cast<double>(x)));
  out[8 * i + 7] = sinhf(x);
}

float rounded_half(float x) { return static_cast<float>(static_cast<_Float16>(x)); }
float rounded_bfloat(float x) { return static_cast<float>(static_cast<__bf16>(x)); }

bool near(double got, double expected, double relative) {
  return std::fabs(got - expected) <= relative * std::fabs(expected) + 1e-38;
}

int main() {
  auto* floats = managed<float>(n);
  auto* ints = managed<int>(n);
  auto* float_results = managed<float>(8 * n);
  auto* int_results = managed<int>(4 * n);
  auto* votes = managed<unsigned long long>(n);
  for (int i = 0; i < n; ++i) {
    floats[i] = static_cast<float>((i * 37) % 101 - 50) * 0.0625f;
    ints[i] = (i * 7919) % 257;
  }

  halves<<<1, n>>>(floats, float_results);
  CHECK(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) {
    const float next = floats[(i + 1) % n];
    EXPECT(float_results[2 * i] == rounded_half(floats[i] * 0.5f + 1.0f));
    EXPECT(near(float_results[2 * i + 1], rounded_half(std::sqrt(std::fabs(next))) + (floats[i] > next ? 100.0f : 0.0f),
                1e-3));
  }
  bfloats<<<1, n>>>(floats, float_results);
  CHECK(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) {
    EXPECT(float_results[2 * i] == rounded_bfloat(rounded_bfloat(floats[i]) * 3.0f));
    EXPECT(float_results[2 * i + 1] == rounded_bfloat(rounded_bfloat(floats[i]) + 3.0f));
  }
  small_floats<<<1, n>>>(floats, float_results);
  CHECK(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) EXPECT(near(float_results[i], floats[i], 0x1p-4));  // three bits of mantissa

  warps<<<1, n>>>(ints, int_results, votes);
  CHECK(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) {
    const int wave = i / 64 * 64;
    int sum = 0, any = 0, all = 1;
    unsigned long long vote = 0;
    for (int lane = 0; lane < 64; ++lane) {
      sum += ints[wave + lane];
      any |= ints[wave + lane] == 7;
      all &= ints[wave + lane] >= 0;
      vote |= static_cast<unsigned long long>(ints[wave + lane] % 3 == 0) << lane;
    }
    EXPECT(int_results[4 * i] == sum);
    EXPECT(int_results[4 * i + 1] == ints[i ^ 3]);
    EXPECT(int_results[4 * i + 2] == ints[i % 32 < 2 ? i : i - 2]);
    EXPECT(int_results[4 * i + 3] == any + 2 * all);
    EXPECT(votes[i] == vote);
  }

  blocks<<<1, n>>>(ints, int_results);
  CHECK(hipDeviceSynchronize());
  int odd = 0;
  for (int i = 0; i < n; ++i) odd += ints[i] % 2;
  for (int i = 0; i < n; ++i) {
    EXPECT(int_results[i] == odd);
    EXPECT(int_results[n + i] != 0);
    EXPECT(int_results[2 * n + i] == 0);
  }

  groups<<<1, n>>>(ints, int_results);
  CHECK(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) {
    int sum = i % 16;
    for (int j = 0; j < 16; ++j) sum += ints[i / 16 * 16 + j];
    EXPECT(int_results[i] == sum);
  }

  integers<<<1, n>>>(ints, int_results);
  CHECK(hipDeviceSynchronize());
  for (int i = 0; i < n; ++i) {
    const auto x = static_cast<unsigned>(ints[i]);
    EXPECT(int_results[4 * i] == __builtin_popcount(x) + (x == 0 ? 32 : __builtin_clz(x)) + __builtin_ffs(ints[i]));
    EXPECT(int_results[4 * i + 1] == static_cast<int>((static_cast<long long>(ints[i]) * 123456789) >> 32) +
                                         static_cast<int>((static_cast<unsigned long long>(x) * 0xdeadbeefu) >> 32));
    // Bytes 0, 4, 1, 5 of the eight in (~x, x), lowest first.
    const unsigned permuted = (x & 0xff) | (~x & 0xff) << 8 | (x >> 8 & 0xff) << 16 | (~x >> 8 & 0xff) << 24;
    unsigned reversed = 0;
    for (int bit = 0; bit < 32; ++bit) reversed |= (x >> bit & 1) << (31 - bit);
    EXPECT(static_cast<unsigned>(int_results[4 * i + 2]) == (permuted ^ reversed));
    EXPECT(int_results[4 * i + 3] == std::abs(ints[i] - 1000) + 5 + (ints[i] & 0xffff) * 77);
  }

  math<<<1, n>>>(floats, float_results);
  CHECK(hipDeviceSynchronize());
  constexpr double ulp = 0x1p-23;
  for (int i = 0; i < n; ++i) {
    const double x = floats[i];
    const float* r = float_results + 8 * i;
    // Twice what OpenCL allows each: the host's f64 stands for the exact value.
    EXPECT(near(r[0], std::erf(x), 32 * ulp));
    EXPECT(near(r[1], std::log1p(std::fabs(x)), 4 * ulp));
    EXPECT(near(r[2], std::cbrt(x), 4 * ulp));
    EXPECT(near(r[3], std::tgamma(1.5 + std::fabs(x) / 8), 32 * ulp));
    EXPECT(near(r[4], std::hypot(x, 2.0), 8 * ulp));
    EXPECT(near(r[5], 1 / std::sqrt(1 + x * x), 8 * ulp));
    EXPECT(near(r[6], std::tanh(x), 4 * ulp));
    EXPECT(near(r[7], std::sinh(x), 8 * ulp));
  }
  std::printf("passed\n");
  return 0;
}
