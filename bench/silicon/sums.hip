// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of a square's rows, a row a lane, then of its columns, which waits for them. Each step's sum is in memory.
// "rows" begins its sums in the kernels; "chained" has them zeroed before, and its columns are weighted by sums of rows.
#include "timed.h"

template <bool begins>
__global__ void row_sums(float* sums, const float* square, const float* vector, int width) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= width) return;
  if (begins) sums[row] = 0;
  for (int i = 0; i < width; ++i) sums[row] += square[row * width + i] * vector[i];
}

template <bool begins>
__global__ void column_sums(float* sums, const float* square, const float* vector, int width) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= width) return;
  if (begins) sums[column] = 0;
  for (int i = 0; i < width; ++i) sums[column] += square[i * width + column] * vector[i];
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string& pattern, const silicon::Numbers& numbers) {
    const int width = static_cast<int>(numbers[0]);
    silicon::Array<float> square(width * width), p(width), q(width), r(width), s(width);
    const unsigned workgroups = silicon::round_up(width, 256);
    return silicon::microseconds([&] {
      if (pattern == "chained") {
        for (float* sums : {q.data, s.data}) CHECK(hipMemsetAsync(sums, 0, width * sizeof(float)));
        row_sums<false><<<workgroups, 256>>>(q, square, p, width);
        column_sums<false><<<workgroups, 256>>>(s, square, q, width);
      } else {
        row_sums<true><<<workgroups, 256>>>(q, square, p, width);
        column_sums<true><<<workgroups, 256>>>(s, square, r, width);
      }
    });
  });
}
