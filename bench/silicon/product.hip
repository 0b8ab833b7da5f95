// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A product of squares of floats: 64 lanes take a tile of 32 x 32, four rows of four columns each. The left factor goes
// by a tile in memory which all workgroups share, and so write over; all of them take its first 32 rows, as those did
// that were measured. Rows of the right factor come as ROCm's compiler had them there: two beside the tile's, then one,
// then one, each of which is waited for.
#include "timed.h"

__device__ void add(float4& sum, float factor, float4 row) {
  sum.x += factor * row.x;
  sum.y += factor * row.y;
  sum.z += factor * row.z;
  sum.w += factor * row.w;
}

__global__ void multiply(float4* out, const float4* left, const float4* right, float4* tile, int row) {  // float4 a row
  const int lanes = blockDim.x, x = threadIdx.x, first = 4 * threadIdx.y;
  const int column = blockIdx.x * lanes + x;
  float4 sums[4] = {};
  for (int from = 0; from < row; from += lanes) {
    for (int i = 0; i < 4; ++i) tile[(first + i) * lanes + x] = left[(first + i) * row + from + x];
    __syncthreads();
    for (int step = 0; step < lanes; ++step) {
      const float4* const rows = right + 4 * (from + step) * row + column;
      float4 a[4];
      for (int i = 0; i < 4; ++i) a[i] = tile[(first + i) * lanes + step];
      const float4 b[2] = {rows[0], rows[row]};
      for (int i = 0; i < 4; ++i) {
        add(sums[i], a[i].x, b[0]);
        add(sums[i], a[i].y, b[1]);
      }
      __builtin_amdgcn_sched_barrier(0);
      const float4 c = rows[2 * row];
      for (int i = 0; i < 4; ++i) add(sums[i], a[i].z, c);
      __builtin_amdgcn_sched_barrier(0);
      const float4 d = rows[3 * row];
      for (int i = 0; i < 4; ++i) add(sums[i], a[i].w, d);
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i) out[(4 * (blockIdx.y * blockDim.y) + first + i) * row + column] = sums[i];
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string&, const silicon::Numbers& numbers) {
    const int width = static_cast<int>(numbers[0]);
    silicon::Array<float4> left(width * width / 4), right(width * width / 4), out(width * width / 4), tile(32 * 8);
    return silicon::microseconds(
        [&] { multiply<<<dim3(width / 32, width / 32), dim3(8, 8)>>>(out, left, right, tile, width / 4); });
  });
}
