// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Nine points of a square: one wave takes 16 rows of 64 columns, and their border, by LDS.
#include "timed.h"

constexpr int rows = 16;
constexpr int columns = 64;

__global__ void stencil(float* out, const float* in, int pitch, float middle, float beside, float corner) {
  __shared__ float tile[rows + 2][columns + 2];
  const int lane = threadIdx.y;
  const int top = blockIdx.x * rows;
  const int left = blockIdx.y * columns;
  // The square has a border of one element, so that no row and no column is outside.
  for (int i = 0; i < rows + 2; ++i) tile[i][lane + 1] = in[(top + i) * pitch + left + lane + 1];
  const bool at_edge = lane == 0 || lane == columns - 1;
  const int edge = lane == 0 ? 0 : columns + 1;
  if (at_edge)
    for (int i = 0; i < rows + 2; ++i) tile[i][edge] = in[(top + i) * pitch + left + edge];
  __syncthreads();
  for (int i = 1; i <= rows; ++i) {
    const float straight = tile[i - 1][lane + 1] + tile[i + 1][lane + 1] + tile[i][lane] + tile[i][lane + 2];
    const float across = tile[i - 1][lane] + tile[i - 1][lane + 2] + tile[i + 1][lane] + tile[i + 1][lane + 2];
    out[(top + i) * pitch + left + lane + 1] = middle * tile[i][lane + 1] + beside * straight + corner * across;
  }
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string&, const silicon::Numbers& numbers) {
    const unsigned width = numbers[0];
    const unsigned pitch = silicon::round_up(width + 2, 16) * 16;
    silicon::Array<float> in((width + 2) * pitch), out((width + 2) * pitch);
    const dim3 grid(width / rows, width / columns);
    return silicon::microseconds(
        [&] { stencil<<<grid, dim3(1, columns)>>>(out, in, static_cast<int>(pitch), 0.5F, 0.1F, 0.025F); });
  });
}
