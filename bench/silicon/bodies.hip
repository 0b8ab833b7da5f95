// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bodies that attract each other: each lane goes over all bodies, 256 at a time, whose places it reads by scalar loads.
#include "timed.h"

__global__ void attract(float4* moved, const float4* __restrict__ bodies, const float4* __restrict__ speeds,
                        unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float4 mine = bodies[i];
  float x = 0, y = 0, z = 0;
  for (unsigned j = 0; j < count; ++j) {
    const float4 other = bodies[j];
    const float dx = other.x - mine.x, dy = other.y - mine.y, dz = other.z - mine.z;
    const float nearness = 1.0F / sqrtf(dx * dx + dy * dy + dz * dz + 50.0F);
    const float pull = other.w * nearness * nearness * nearness;
    x += pull * dx;
    y += pull * dy;
    z += pull * dz;
  }
  const float4 speed = speeds[i];
  moved[i] = make_float4(mine.x + speed.x + x, mine.y + speed.y + y, mine.z + speed.z + z, mine.w);
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string&, const silicon::Numbers& numbers) {
    const unsigned bodies = numbers[0];
    silicon::Array<float4> places(bodies), speeds(bodies), moved(bodies);
    return silicon::microseconds([&] { attract<<<bodies / 256, 256>>>(moved, places, speeds, bodies); });
  });
}
