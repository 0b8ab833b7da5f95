// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Streams: each lane reads and writes one float (add: of three arrays; relu: of two), and HIP's own copy on the device.
#include "timed.h"

__global__ void add(float* sum, const float* a, const float* b, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = a[i] + b[i];
}

__global__ void relu(float* out, const float* in, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) out[i] = fmaxf(in[i], 0.0F);
}

static double copied(std::size_t bytes) {
  silicon::Array<char> from(bytes), to(bytes);
  return silicon::microseconds([&] { CHECK(hipMemcpyAsync(to, from, bytes, hipMemcpyDeviceToDevice, nullptr)); });
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string& pattern, const silicon::Numbers& numbers) {
    if (pattern == "copy") return copied(static_cast<std::size_t>(numbers[0]) << 20);
    const unsigned floats = numbers[0];
    silicon::Array<float> a(floats), b(floats), out(floats);
    return silicon::microseconds([&] {
      const unsigned workgroups = silicon::round_up(floats, 256);
      if (pattern == "add") add<<<workgroups, 256>>>(out, a, b, floats);
      if (pattern == "relu") relu<<<workgroups, 256>>>(out, a, floats);
    });
  });
}
