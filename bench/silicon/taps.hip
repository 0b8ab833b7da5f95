// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sums over taps whose weights come by scalar loads: of a line (a filter), of a square (a convolution), and distances
// to the nearest of some centres.
#include "timed.h"

__global__ void line(float* out, const float* weights, const float* in, const float* before, unsigned taps) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (unsigned tap = 0; tap < taps; ++tap) sum += weights[tap] * (i >= tap ? in[i - tap] : before[taps + i - tap]);
  out[i] = sum;
}

__global__ void square(int* out, const unsigned* in, const float* weights, unsigned width, unsigned mask) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned x = i % width, y = i / width;
  const unsigned pitch = width + mask - 1;
  float sum = 0.5F;
  for (unsigned row = 0; row < mask; ++row)
    for (unsigned column = 0; column < mask; ++column)
      sum += static_cast<float>(in[(y + row) * pitch + x + column]) * weights[row * mask + column];
  out[i] = static_cast<int>(sum);
}

__global__ void nearest(int* out, const float* points, const float* centres, int count, int groups, int features) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float least = 1e30F;
  int found = 0;
  for (int group = 0; group < groups; ++group) {
    float distance = 0;
    for (int feature = 0; feature < features; ++feature) {
      const float apart = points[feature * count + i] - centres[group * features + feature];
      distance += apart * apart;
    }
    if (distance < least) {
      least = distance;
      found = group;
    }
  }
  out[i] = found;
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string& pattern, const silicon::Numbers& numbers) {
    const unsigned size = numbers[0];
    if (pattern == "line") {
      const unsigned taps = numbers[1];
      silicon::Array<float> in(size), out(size), weights(taps), before(taps);
      return silicon::microseconds([&] { line<<<size / 256, 256>>>(out, weights, in, before, taps); });
    }
    if (pattern == "nearest") {
      const int features = static_cast<int>(numbers[1]), groups = static_cast<int>(numbers[2]);
      silicon::Array<float> points(size * features), centres(groups * features);
      silicon::Array<int> out(size);
      return silicon::microseconds(
          [&] { nearest<<<size / 256, 256>>>(out, points, centres, static_cast<int>(size), groups, features); });
    }
    const unsigned mask = numbers[2];
    silicon::Array<unsigned> in((size + mask - 1) * (size + mask - 1));
    silicon::Array<float> weights(mask * mask);
    silicon::Array<int> out(size * size);
    return silicon::microseconds([&] { square<<<size * size / 64, 64>>>(out, in, weights, size, mask); });
  });
}
