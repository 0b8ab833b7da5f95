// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A program that does something wrong, if asked, and ends as asked:
//   findings <fine|race|far|copy|named> <exit|return|abort|quick>
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <string>

__global__ void fine(int* out) { out[threadIdx.x] = static_cast<int>(threadIdx.x); }

// Waves read what others write, with no barrier in between.
__global__ void race(int* out) {
  __shared__ int values[256];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values[255 - threadIdx.x];
}

// The same under a name as the runtime's own kernels have.
extern "C" __global__ void __amd_rocclr_of_a_user(int* out) {
  __shared__ int values[256];
  values[threadIdx.x] = static_cast<int>(threadIdx.x);
  out[threadIdx.x] = values[255 - threadIdx.x];
}

__global__ void far(int* out) { out[threadIdx.x + (1ULL << 24)] = 1; }

int main(int count, char** words) {
  if (count != 3) return 2;
  const std::string what = words[1];
  const std::string how = words[2];
  int* out = nullptr;
  if (hipMalloc(&out, 256 * sizeof(int)) != hipSuccess) return 3;
  fine<<<1, 256>>>(out);
  if (what == "race") race<<<1, 256>>>(out);
  if (what == "named") __amd_rocclr_of_a_user<<<1, 256>>>(out);
  if (what == "far") far<<<1, 256>>>(out);
  int back[256];
  if (what == "copy" && hipMemcpy(back, out, sizeof back, hipMemcpyDeviceToHost) != hipSuccess) return 4;
  static_cast<void>(hipDeviceSynchronize());
  if (how == "abort") std::abort();
  if (how == "quick") std::_Exit(0);
  if (how == "exit") std::exit(0);
  return 0;
}
