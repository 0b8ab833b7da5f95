// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Prints what events say of a kernel and of a pause of the host, one "name nanoseconds" a line:
//   one     an event, a launch, an event
//   two     an event, two launches, an event
//   kernel  a launch with events of its own
//   other   a launch in another stream that waits for the first by an event: from the first's event to its own
//   pause   an event, 20 ms of the host, an event
//   wall    wall_clock64() of two launches directly after each other: between them
//   cycles  clock64() around a kernel's own loop, in cycles
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>

__global__ void work(float* out, int rounds) {
  float x = threadIdx.x;
  for (int i = 0; i < rounds; ++i) x = x * 1.5F + 2.0F;
  out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

__global__ void clocks(long long* times, int rounds) {
  float x = threadIdx.x;
  const long long wall = wall_clock64();
  const long long before = clock64();
  for (int i = 0; i < rounds; ++i) asm volatile("v_fma_f32 %0, %0, %0, %0" : "+v"(x));
  times[0] = wall;
  times[1] = clock64() - before;
}

static void check(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
  std::exit(1);
}
#define CHECK(call) check(call, #call)

static void print_between(const char* name, hipEvent_t from, hipEvent_t to) {
  float milliseconds = -1;
  CHECK(hipEventSynchronize(to));
  CHECK(hipEventElapsedTime(&milliseconds, from, to));
  std::printf("%s %.0f\n", name, static_cast<double>(milliseconds) * 1e6);
}

int main() {
  constexpr int blocks = 64;
  constexpr int threads = 256;
  constexpr int rounds = 100;
  float* out = nullptr;
  CHECK(hipMalloc(&out, blocks * threads * sizeof(float)));
  hipStream_t stream, other;
  CHECK(hipStreamCreate(&stream));
  CHECK(hipStreamCreate(&other));
  hipEvent_t start, middle, stop;
  for (hipEvent_t* event : {&start, &middle, &stop}) CHECK(hipEventCreate(event));

  CHECK(hipEventRecord(start, stream));
  work<<<blocks, threads, 0, stream>>>(out, rounds);
  CHECK(hipEventRecord(stop, stream));
  print_between("one", start, stop);

  CHECK(hipEventRecord(start, stream));
  work<<<blocks, threads, 0, stream>>>(out, rounds);
  work<<<blocks, threads, 0, stream>>>(out, rounds);
  CHECK(hipEventRecord(stop, stream));
  print_between("two", start, stop);

  hipExtLaunchKernelGGL(work, dim3(blocks), dim3(threads), 0, stream, start, stop, 0, out, rounds);
  print_between("kernel", start, stop);

  CHECK(hipEventRecord(start, stream));
  work<<<blocks, threads, 0, stream>>>(out, rounds);
  CHECK(hipEventRecord(middle, stream));
  CHECK(hipStreamWaitEvent(other, middle, 0));
  work<<<blocks, threads, 0, other>>>(out, rounds);
  CHECK(hipEventRecord(stop, other));
  print_between("other", start, stop);

  CHECK(hipEventRecord(start, stream));
  CHECK(hipEventSynchronize(start));
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK(hipEventRecord(stop, stream));
  print_between("pause", start, stop);

  long long* times = nullptr;
  CHECK(hipMalloc(&times, 4 * sizeof(long long)));
  clocks<<<1, 64, 0, stream>>>(times, 10'000);
  clocks<<<1, 64, 0, stream>>>(times + 2, 10'000);
  long long read[4];
  CHECK(hipMemcpyAsync(read, times, sizeof(read), hipMemcpyDeviceToHost, stream));
  CHECK(hipStreamSynchronize(stream));
  std::printf("wall %lld\ncycles %lld\n", (read[2] - read[0]) * 10, read[1]);
  return 0;
}
