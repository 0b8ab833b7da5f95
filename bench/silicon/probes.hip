// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// One thing at a time: a chase of pointers through vector memory, LDS or scalar memory, atomics that return, streams,
// an empty launch. Prints microseconds an access (streams: for all bytes; launches: between the events).
//   probes chase <KB>…   lds <KB>…   scalar <KB>…   atomic <lanes>…   read <MB>…   write <MB>…   launches <how many>…
#include <utility>

#include "timed.h"

__global__ void chase(const unsigned* next, unsigned* out, unsigned steps) {
  unsigned at = threadIdx.x;  // a vector's, or the loads were scalar
  for (unsigned i = 0; i < steps; ++i) at = next[at];
  out[threadIdx.x] = at;
}

__global__ void chase_scalar(const unsigned* next, unsigned* out, unsigned steps) {
  unsigned at = 0;  // bytes
  for (unsigned i = 0; i < steps; ++i)
    asm volatile("s_load_dword %0, %1, %0\n s_waitcnt lgkmcnt(0)" : "+s"(at) : "s"(next));
  *out = at;
}

__global__ void chase_lds(const unsigned* next, unsigned* out, unsigned steps) {
  __shared__ unsigned lds[1024];
  for (unsigned i = 0; i < 1024; ++i) lds[i] = next[i];
  unsigned at = threadIdx.x;
  for (unsigned i = 0; i < steps; ++i) at = lds[at];
  *out = at;
}

// The compiler makes one atomic of a wave's.
__global__ void count_up(unsigned* counter, unsigned* out, unsigned steps) {
  unsigned sum = 0;
  for (unsigned i = 0; i < steps; ++i) sum += atomicAdd(counter, 1U);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
}

__global__ void read_all(const float4* in, float* out, unsigned count) {
  float sum = 0;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    sum += in[i].x + in[i].w;
  if (sum != 0) *out = sum;
}

__global__ void write_all(float4* out, unsigned count) {
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) out[i] = float4{};
}

__global__ void nothing() {}

// A walk over all lines in an order that no stride tells.
static std::vector<unsigned> walk(unsigned kilobytes) {
  constexpr unsigned line = 32;  // elements
  const unsigned lines = kilobytes * 256 / line;
  std::vector<unsigned> order(lines), next(kilobytes * 256);
  for (unsigned i = 0; i < lines; ++i) order[i] = i;
  unsigned random = 42;
  for (unsigned i = lines - 1; i > 0; --i) {
    random = random * 1664525U + 1013904223U;
    std::swap(order[i], order[(random >> 8) % (i + 1)]);
  }
  for (unsigned i = 0; i < lines; ++i) next[order[i] * line] = order[(i + 1) % lines] * line;
  return next;
}

// A step's time: of a long walk and a short one, so that what a launch takes is in neither.
template <class Launch>
static double step(unsigned few, unsigned many, Launch launch) {
  const double short_one = silicon::microseconds([&] { launch(few); });
  return (silicon::microseconds([&] { launch(many); }) - short_one) / (many - few);
}

int main(int count, char** words) {
  return silicon::each_size(count, words, [](const std::string& pattern, const silicon::Numbers& numbers) {
    const unsigned size = numbers[0];
    silicon::Array<unsigned> out(65536);
    if (pattern == "launches")
      return silicon::microseconds([&] {
        for (unsigned i = 0; i < size; ++i) nothing<<<1, 64>>>();
      });
    if (pattern == "read" || pattern == "write") {
      const unsigned vectors = size << 16;
      silicon::Array<float4> data(vectors);
      return silicon::microseconds([&] {
        if (pattern == "read") read_all<<<1216, 256>>>(data, reinterpret_cast<float*>(out.data), vectors);
        if (pattern == "write") write_all<<<1216, 256>>>(data, vectors);
      });
    }
    if (pattern == "atomic") {
      silicon::Array<unsigned> counter(1);
      const unsigned lanes = size < 64 ? size : 64;
      return step(8, 16, [&](unsigned steps) { count_up<<<size / lanes, lanes>>>(counter, out, steps); });
    }
    std::vector<unsigned> next = walk(size);
    const unsigned lines = size * 8;
    // A part of large sets is walked, once: more than an L2 holds.
    const unsigned few = lines <= 8192 ? 2 * lines : 34000, many = lines <= 8192 ? 4 * lines : 36000;
    if (pattern == "scalar")
      for (unsigned& at : next) at *= 4;
    silicon::Array<unsigned> data(next);
    return step(few, many, [&](unsigned steps) {
      if (pattern == "chase") chase<<<1, 1>>>(data, out, steps);
      if (pattern == "lds") chase_lds<<<1, 1>>>(data, out, steps);
      if (pattern == "scalar") chase_scalar<<<1, 64>>>(data, out, steps);
    });
  });
}
