// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A sparse matrix times a vector: a lane walks over a row's entries, so that a wave touches 64 lines at once.
#include "timed.h"

__global__ void gather(float* out, const float* __restrict__ values, const int* __restrict__ columns,
                       const int* __restrict__ starts, const float* __restrict__ vector, int rows) {
  const int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row >= rows) return;
  float sum = 0;
  for (int i = starts[row]; i < starts[row + 1]; ++i) sum += values[i] * vector[columns[i]];
  out[row] = sum;
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string&, const silicon::Numbers& numbers) {
    const int rows = static_cast<int>(numbers[0]);
    const int of_row = static_cast<int>(numbers[2]) / rows;
    std::vector<int> starts, columns;
    for (int row = 0; row <= rows; ++row) starts.push_back(row * of_row);
    for (int i = 0; i < rows * of_row; ++i) columns.push_back((i / of_row + i % of_row) % rows);
    silicon::Array<int> begin(starts), column(columns);
    silicon::Array<float> values(columns.size()), vector(rows), out(rows);
    return silicon::microseconds(
        [&] { gather<<<silicon::round_up(rows, 256), 256>>>(out, values, column, begin, vector, rows); });
  });
}
