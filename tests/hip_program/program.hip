// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A user's program: nothing in it knows that the GPU is simulated. Vector addition and a reduction in shared memory,
// launched with <<<>>>, with events, streams, a device variable, and every answer checked.
#include <hip/hip_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <vector>

#define CHECK(call)                                                                                    \
  do {                                                                                                 \
    const hipError_t status = (call);                                                                  \
    if (status != hipSuccess) {                                                                        \
      std::fprintf(stderr, "%s:%d: %s: %s (%s)\n", __FILE__, __LINE__, #call, hipGetErrorName(status), \
                   hipGetErrorString(status));                                                         \
      std::exit(1);                                                                                    \
    }                                                                                                  \
  } while (false)

#define EXPECT(condition)                                                            \
  do {                                                                               \
    if (!(condition)) {                                                              \
      std::fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                  \
    }                                                                                \
  } while (false)

__device__ int launches_seen;
__constant__ float factor = 1.0f;
__managed__ int managed_total = 5;

__global__ void add(const float* a, const float* b, float* sum, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i == 0) atomicAdd(&launches_seen, 1);
  if (i < n) sum[i] = factor * a[i] + b[i];
}

template <int block>
__global__ void reduce(const float* in, float* out, int n) {
  __shared__ float partial[block];
  float sum = 0;
  for (int i = blockIdx.x * block + threadIdx.x; i < n; i += gridDim.x * block) sum += in[i];
  partial[threadIdx.x] = sum;
  __syncthreads();
  for (int step = block / 2; step > 0; step /= 2) {
    if (threadIdx.x < step) partial[threadIdx.x] += partial[threadIdx.x + step];
    __syncthreads();
  }
  if (threadIdx.x == 0) out[blockIdx.x] = partial[0];
}

__global__ void add_to_managed(int value) { atomicAdd(&managed_total, value); }

__global__ void write_far(int* where) { where[1 << 28] = 1; }

int main(int argc, char** argv) {
  int count = 0;
  CHECK(hipGetDeviceCount(&count));
  EXPECT(count >= 1);
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  std::printf("%s, %s, %d compute units\n", properties.name, properties.gcnArchName, properties.multiProcessorCount);
  EXPECT(properties.warpSize == 64);
  // ROCr's interface for models has no clock, and ends a program whose kernel faults.
  const bool by_model = argc > 2 && std::strcmp(argv[2], "model") == 0;
  if (argc > 1) EXPECT(std::strncmp(properties.gcnArchName, argv[1], std::strlen(argv[1])) == 0);

  constexpr int n = 10000;
  std::vector<float> a(n), b(n), sum(n);
  std::iota(a.begin(), a.end(), 0.0f);
  for (int i = 0; i < n; ++i) b[i] = 2.0f * i;
  float *da, *db, *dsum, *dpartial;
  CHECK(hipMalloc(&da, n * sizeof(float)));
  CHECK(hipMalloc(&db, n * sizeof(float)));
  CHECK(hipMalloc(&dsum, n * sizeof(float)));
  CHECK(hipMalloc(&dpartial, 8 * sizeof(float)));
  hipStream_t stream;
  CHECK(hipStreamCreate(&stream));
  hipEvent_t start, stop;
  CHECK(hipEventCreate(&start));
  CHECK(hipEventCreate(&stop));

  CHECK(hipMemcpyAsync(da, a.data(), n * sizeof(float), hipMemcpyHostToDevice, stream));
  CHECK(hipMemcpyAsync(db, b.data(), n * sizeof(float), hipMemcpyHostToDevice, stream));
  const float one_and_a_half = 1.5f;
  CHECK(hipMemcpyToSymbol(HIP_SYMBOL(factor), &one_and_a_half, sizeof(float)));
  CHECK(hipEventRecord(start, stream));
  add<<<(n + 255) / 256, 256, 0, stream>>>(da, db, dsum, n);
  CHECK(hipGetLastError());
  reduce<128><<<8, 128, 0, stream>>>(dsum, dpartial, n);
  CHECK(hipGetLastError());
  CHECK(hipEventRecord(stop, stream));
  CHECK(hipEventSynchronize(stop));
  float milliseconds = -1;
  CHECK(hipEventElapsedTime(&milliseconds, start, stop));
  EXPECT(by_model ? milliseconds == 0 : milliseconds > 0);

  CHECK(hipMemcpy(sum.data(), dsum, n * sizeof(float), hipMemcpyDeviceToHost));
  for (int i = 0; i < n; ++i) EXPECT(sum[i] == 3.5f * i);
  float partial[8];
  CHECK(hipMemcpy(partial, dpartial, sizeof partial, hipMemcpyDeviceToHost));
  double total = 0;
  for (const float value : partial) total += value;
  const double exact = 3.5 * n * (n - 1) / 2;
  EXPECT(total > exact * (1 - 1e-5) && total < exact * (1 + 1e-5));
  int seen = 0;
  CHECK(hipMemcpyFromSymbol(&seen, HIP_SYMBOL(launches_seen), sizeof seen));
  EXPECT(seen == 1);

  add_to_managed<<<1, 64>>>(2);
  CHECK(hipDeviceSynchronize());
  EXPECT(managed_total == 5 + 2 * 64);

  // Errors as HIP gives them: at the launch for what is wrong with the launch, later for what the kernel did.
  add<<<1, 2048>>>(da, db, dsum, n);
  EXPECT(hipGetLastError() == hipErrorInvalidConfiguration);
  EXPECT(hipGetLastError() == hipSuccess);
  EXPECT(hipMemcpy(sum.data(), dsum, 2 * n * sizeof(float), hipMemcpyDeviceToHost) == hipErrorInvalidValue);
  (void)hipGetLastError();
  EXPECT(hipSetDevice(count) == hipErrorInvalidDevice);
  (void)hipGetLastError();
  hipFuncAttributes attributes;
  CHECK(hipFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&reduce<128>)));
  EXPECT(attributes.sharedSizeBytes == 128 * sizeof(float));
  int blocks = 0;
  CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reduce<128>, 128, 0));
  EXPECT(blocks == 16);  // 32 waves a compute unit, two a block

  // A captured launch runs as often as its graph is launched, and not before.
  managed_total = 0;
  hipStream_t captured;
  CHECK(hipStreamCreateWithFlags(&captured, hipStreamNonBlocking));
  CHECK(hipStreamBeginCapture(captured, hipStreamCaptureModeGlobal));
  add_to_managed<<<1, 64, 0, captured>>>(3);
  hipGraph_t graph;
  CHECK(hipStreamEndCapture(captured, &graph));
  EXPECT(managed_total == 0);
  hipGraphExec_t executable;
  CHECK(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0));
  for (int i = 0; i < 5; ++i) CHECK(hipGraphLaunch(executable, captured));
  CHECK(hipStreamSynchronize(captured));
  EXPECT(managed_total == 5 * 3 * 64);
  CHECK(hipGraphExecDestroy(executable));
  CHECK(hipGraphDestroy(graph));
  CHECK(hipStreamDestroy(captured));

  CHECK(hipEventDestroy(start));
  CHECK(hipEventDestroy(stop));
  CHECK(hipStreamDestroy(stream));
  CHECK(hipFree(da));
  CHECK(hipFree(db));
  CHECK(hipFree(dpartial));

  if (by_model) {
    std::printf("passed\n");
    (void)std::fflush(stdout);
  }
  // Last, because the device is lost afterwards.
  write_far<<<1, 1>>>(reinterpret_cast<int*>(dsum));
  // A small kernel may have failed before its launch has returned.
  const hipError_t launched = hipGetLastError();
  EXPECT(launched == hipSuccess || launched == hipErrorIllegalAddress);
  EXPECT(hipDeviceSynchronize() == hipErrorIllegalAddress);
  EXPECT(hipMalloc(&da, 4) == hipErrorIllegalAddress);
  std::printf("passed\n");
  return 0;
}
