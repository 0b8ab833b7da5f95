// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums of a matrix's rows, a workgroup each: a HIP program as any other, which checks its own results.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <vector>

constexpr int threads = 256;

__global__ void row_sums(const float* matrix, float* sums, int columns) {
  __shared__ float parts[threads];
  const float* row = matrix + static_cast<size_t>(blockIdx.x) * columns;
  float part = 0;
  for (int i = threadIdx.x; i < columns; i += threads) part += row[i];
  parts[threadIdx.x] = part;
  for (int width = threads / 2; width > 0; width /= 2) {
#ifndef FORGET_THE_BARRIER
    __syncthreads();
#endif
    if (static_cast<int>(threadIdx.x) < width) parts[threadIdx.x] += parts[threadIdx.x + width];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = parts[0];
}

namespace {

bool works(hipError_t error, const char* what) {
  if (error != hipSuccess) std::fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
  return error == hipSuccess;
}

bool works_on(int device) {
  constexpr int rows = 37;
  constexpr int columns = 1000;
  std::vector<float> matrix(size_t{rows} * columns);
  for (size_t i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<float>(i % 7);
  std::vector<float> sums(rows);
  float* device_matrix = nullptr;
  float* device_sums = nullptr;
  if (!works(hipSetDevice(device), "hipSetDevice") ||
      !works(hipMalloc(&device_matrix, matrix.size() * sizeof(float)), "hipMalloc") ||
      !works(hipMalloc(&device_sums, rows * sizeof(float)), "hipMalloc") ||
      !works(hipMemcpy(device_matrix, matrix.data(), matrix.size() * sizeof(float), hipMemcpyHostToDevice),
             "hipMemcpy")) {
    return false;
  }
  row_sums<<<rows, threads>>>(device_matrix, device_sums, columns);
  if (!works(hipGetLastError(), "row_sums") ||
      !works(hipMemcpy(sums.data(), device_sums, rows * sizeof(float), hipMemcpyDeviceToHost), "hipMemcpy")) {
    return false;
  }
  (void)hipFree(device_matrix);
  (void)hipFree(device_sums);
  for (int row = 0; row < rows; ++row) {
    float expected = 0;  // whole numbers: the order of additions does not matter
    for (int i = 0; i < columns; ++i) expected += matrix[size_t(row) * columns + i];
    if (sums[row] == expected) continue;
    std::fprintf(stderr, "GPU %d, row %d: %g, expected %g\n", device, row, sums[row], expected);
    return false;
  }
  std::printf("GPU %d: %d rows are right\n", device, rows);
  return true;
}

}  // namespace

int main() {
  int devices = 0;
  if (!works(hipGetDeviceCount(&devices), "hipGetDeviceCount")) return 1;
  for (int device = 0; device < devices; ++device) {
    if (!works_on(device)) return 1;
  }
  return 0;
}
