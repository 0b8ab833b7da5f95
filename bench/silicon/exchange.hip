// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Fourier transforms of 512 points: a wave has 8 points a lane, transforms them, turns them, and exchanges them by LDS,
// twice; real and imaginary parts one after the other.
#include "timed.h"

__device__ float2 times(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// Eight points in place, decimated in time: halves that are 4, 2 and 1 apart.
__device__ void transform(float2* points) {
  constexpr float half = 0.70710678F;
  const float2 roots[4] = {{1, 0}, {half, -half}, {0, -1}, {-half, -half}};
#pragma unroll
  for (int apart = 4; apart > 0; apart /= 2) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if ((i & apart) != 0) continue;
      const float2 a = points[i], b = points[i + apart];
      points[i] = make_float2(a.x + b.x, a.y + b.y);
      points[i + apart] = times(make_float2(a.x - b.x, a.y - b.y), roots[(i % apart) * (4 / apart)]);
    }
  }
}

// Point i of the transform stands at i with its three bits turned round.
__device__ constexpr int place(int i) { return ((i & 1) << 2) | (i & 2) | (i >> 2); }

__device__ void turn(float2* points, int index, float length) {
#pragma unroll
  for (int i = 1; i < 8; ++i) {
    float2 root;
    sincosf(-6.2831853F * static_cast<float>(i) / length * static_cast<float>(index), &root.y, &root.x);
    points[place(i)] = times(points[place(i)], root);
  }
}

__device__ void exchange(float2* points, float* to, int to_step, const float* from, int from_step) {
#pragma unroll
  for (int part = 0; part < 2; ++part) {
#pragma unroll
    for (int i = 0; i < 8; ++i) to[i * to_step] = part == 0 ? points[place(i)].x : points[place(i)].y;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) (part == 0 ? points[i].x : points[i].y) = from[i * from_step];
    __syncthreads();
  }
}

__global__ __launch_bounds__(64) void fourier(float2* data) {
  __shared__ float lds[8 * 72];
  const int lane = threadIdx.x, high = lane / 8, low = lane % 8;
  float2* const mine = data + blockIdx.x * 512 + lane;
  float2 points[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) points[i] = mine[i * 64];
  transform(points);
  turn(points, lane, 512);
  exchange(points, lds + lane, 66, lds + low * 66 + high, 8);
  transform(points);
  turn(points, high, 64);
  exchange(points, lds + lane, 72, lds + high * 72 + low, 8);
  transform(points);
#pragma unroll
  for (int i = 0; i < 8; ++i) mine[i * 64] = points[place(i)];
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string&, const silicon::Numbers& numbers) {
    silicon::Array<float2> data(numbers[0]);
    return silicon::microseconds([&] { fourier<<<numbers[0] / 512, 64>>>(data); });
  });
}
