// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A square of floats, transposed: 256 lanes take a tile of 64 rows by LDS, four rows of four floats each.
#include "timed.h"

__global__ void transpose(float4* out, const float4* in, unsigned row) {  // float4 a row
  __shared__ float4 tile[64][16];
  // Tiles along diagonals: workgroups that run together write to rows of their own.
  const unsigned down = blockIdx.x;
  const unsigned across = (blockIdx.x + blockIdx.y) % gridDim.x;
  const unsigned x = threadIdx.x, y = threadIdx.y;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned line = y + 16 * i;
    tile[line][x] = in[(64 * down + line) * row + 16 * across + x];
  }
  __syncthreads();
  float4 read[4];
  for (unsigned i = 0; i < 4; ++i) read[i] = tile[4 * x + i][y];
  float4* const to = out + (64 * across + 4 * y) * row + 16 * down + x;
  to[0] = make_float4(read[0].x, read[1].x, read[2].x, read[3].x);
  to[row] = make_float4(read[0].y, read[1].y, read[2].y, read[3].y);
  to[2 * row] = make_float4(read[0].z, read[1].z, read[2].z, read[3].z);
  to[3 * row] = make_float4(read[0].w, read[1].w, read[2].w, read[3].w);
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string&, const silicon::Numbers& numbers) {
    const unsigned width = numbers[0];
    silicon::Array<float4> in(width * width / 4), out(width * width / 4);
    return silicon::microseconds(
        [&] { transpose<<<dim3(width / 64, width / 64), dim3(16, 16)>>>(out, in, width / 4); });
  });
}
