// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Patches of a picture laid out as columns, and with three rows of weights a product behind it, by tiles of 16 x 16 in
// LDS. The second launch waits for the first.
#include "timed.h"

__global__ void unfold(float* out, const float* in, int width, int mask, int border) {
  const int field = width + 2 * border - mask + 1;
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= field * field) return;
  for (int tap = 0; tap < mask * mask; ++tap) {
    const int x = i % field + tap % mask - border, y = i / field + tap / mask - border;
    const bool is_inside = x >= 0 && y >= 0 && x < width && y < width;
    out[tap * field * field + i] = is_inside ? in[y * width + x] : 0;
  }
}

constexpr int side = 16;

__global__ void multiply(float* out, const float* weights, const float* columns, int rows, int count, int depth) {
  __shared__ float a[side][side];
  __shared__ float b[side][side];
  const int x = threadIdx.x, y = threadIdx.y;
  const int row = blockIdx.y * side + y, column = blockIdx.x * side + x;
  float sum = 0;
  for (int from = 0; from < depth; from += side) {
    a[y][x] = row < rows && from + x < depth ? weights[row * depth + from + x] : 0;
    b[y][x] = column < count && from + y < depth ? columns[(from + y) * count + column] : 0;
    __syncthreads();
    for (int i = 0; i < side; ++i) sum += a[y][i] * b[i][x];
    __syncthreads();
  }
  if (row < rows && column < count) out[row * count + column] = sum;
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string& pattern, const silicon::Numbers& numbers) {
    const int width = static_cast<int>(numbers[2]), mask = static_cast<int>(numbers[4]);
    constexpr int channels = 3;
    const int depth = mask * mask, places = (width - mask + 1) * (width - mask + 1);
    silicon::Array<float> in(width * width), columns(depth * places), weights(channels * depth), out(channels * places);
    return silicon::microseconds([&] {
      unfold<<<silicon::round_up(places, 256), 256>>>(columns, in, width, mask, 0);
      if (pattern == "unfold_multiply")
        multiply<<<silicon::round_up(places, side), dim3(side, side)>>>(out, weights, columns, channels, places, depth);
    });
  });
}
