// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Workgroups that wait for each other, on either front:
//
//   workgroups meet      a cooperative launch: barriers among all its workgroups, and launches that do not fit
//   workgroups refused   the same where it is not announced: an error, and nothing ran
//   workgroups wait      an ordinary one whose first workgroup waits for its last
//   workgroups scan      sums of everything before, by words of 64 bits that hold a sum and its state (look-back)
//
// On WAVEJIT_SIM_THREADS host threads, whatever they are: one is enough for each.
#include <hip/hip_cooperative_groups.h>
#include <hip/hip_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

namespace {

#define CHECK(call)                                                                     \
  do {                                                                                  \
    if (const hipError_t status = call; status != hipSuccess) {                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, hipGetErrorName(status)); \
      std::exit(1);                                                                     \
    }                                                                                   \
  } while (false)
#define EXPECT(condition)                                                          \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                                \
    }                                                                              \
  } while (false)

template <typename T>
T* zeroed(std::size_t count) {
  T* memory = nullptr;
  CHECK(hipMalloc(&memory, count * sizeof(T)));
  CHECK(hipMemset(memory, 0, count * sizeof(T)));
  return memory;
}

template <typename T>
std::vector<T> copy_of(const T* memory, std::size_t count) {
  std::vector<T> copy(count);
  CHECK(hipMemcpy(copy.data(), memory, count * sizeof(T), hipMemcpyDeviceToHost));
  return copy;
}

// In each round all come, and each then sees that all have come.
__global__ void meet(unsigned* came, unsigned* missing, int rounds) {
  const auto grid = cooperative_groups::this_grid();
  for (int i = 0; i < rounds; ++i) {
    if (threadIdx.x == 0) atomicAdd(&came[i], 1U);
    grid.sync();
    if (threadIdx.x == 0 && came[i] != gridDim.x * gridDim.y) atomicAdd(missing, 1U);
    grid.sync();
  }
  if (grid.thread_rank() == grid.size() - 1) came[rounds] = static_cast<unsigned>(grid.size());
}

void test_meeting() {
  int announced = 0;
  CHECK(hipDeviceGetAttribute(&announced, hipDeviceAttributeCooperativeLaunch, 0));
  EXPECT(announced == 1);
  int rounds = 4;
  auto* came = zeroed<unsigned>(rounds + 1);
  auto* missing = zeroed<unsigned>(1);
  void* arguments[] = {&came, &missing, &rounds};
  const auto* kernel = reinterpret_cast<const void*>(meet);
  CHECK(hipLaunchCooperativeKernel(kernel, dim3(60, 2), dim3(128), arguments, 0, nullptr));
  CHECK(hipDeviceSynchronize());
  for (int i = 0; i < rounds; ++i) EXPECT(copy_of(came, rounds + 1)[i] == 120);
  EXPECT(copy_of(came, rounds + 1)[rounds] == 120 * 128);
  EXPECT(copy_of(missing, 1)[0] == 0);
  // As many as fit begin, and one more does not.
  hipDeviceProp_t properties;
  CHECK(hipGetDeviceProperties(&properties, 0));
  int each = 0;
  CHECK(hipOccupancyMaxActiveBlocksPerMultiprocessor(&each, kernel, 1024, 0));
  const auto most = static_cast<unsigned>(each * properties.multiProcessorCount);
  EXPECT(hipLaunchCooperativeKernel(kernel, dim3(most + 1), dim3(1024), arguments, 0, nullptr) ==
         hipErrorCooperativeLaunchTooLarge);
  // LDS counts as well.
  const auto lds = static_cast<unsigned>(properties.sharedMemPerBlock);
  EXPECT(hipLaunchCooperativeKernel(kernel, dim3(properties.multiProcessorCount + 1), dim3(64), arguments, lds,
                                    nullptr) == hipErrorCooperativeLaunchTooLarge);
}

void test_refusal() {
  int announced = 1;
  CHECK(hipDeviceGetAttribute(&announced, hipDeviceAttributeCooperativeLaunch, 0));
  EXPECT(announced == 0);
  int rounds = 1;
  auto* came = zeroed<unsigned>(rounds + 1);
  auto* missing = zeroed<unsigned>(1);
  void* arguments[] = {&came, &missing, &rounds};
  EXPECT(hipLaunchCooperativeKernel(reinterpret_cast<const void*>(meet), dim3(2), dim3(64), arguments, 0, nullptr) ==
         hipErrorLaunchFailure);
  EXPECT(copy_of(came, 1)[0] == 0);
}

__global__ void wait(unsigned* came, unsigned* seen) {
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    while (__hip_atomic_load(came, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_AGENT) != gridDim.x - 1) {
      __builtin_amdgcn_s_sleep(1);
    }
    *seen = 1;
  } else {
    __hip_atomic_fetch_add(came, 1U, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_AGENT);
  }
}

void test_waiting() {
  auto* came = zeroed<unsigned>(1);
  auto* seen = zeroed<unsigned>(1);
  wait<<<64, 64>>>(came, seen);
  CHECK(hipDeviceSynchronize());
  EXPECT(copy_of(seen, 1)[0] == 1);
}

constexpr unsigned of_block = 256;
constexpr std::uint64_t has_own_sum = std::uint64_t{1} << 32;
constexpr std::uint64_t has_whole_sum = std::uint64_t{2} << 32;

// A block publishes its own sum, adds up what the blocks before it published, and then publishes the sum up to itself.
// State and sum are one word: whoever sees the state has the sum.
__global__ void scan(const unsigned* numbers, unsigned* sums, std::uint64_t* states) {
  __shared__ unsigned shared[of_block];
  __shared__ unsigned before;
  const unsigned thread = threadIdx.x;
  const unsigned at = (blockIdx.x * of_block) + thread;
  unsigned sum = numbers[at];
  for (unsigned distance = 1; distance < of_block; distance *= 2) {
    shared[thread] = sum;
    __syncthreads();
    if (thread >= distance) sum += shared[thread - distance];
    __syncthreads();
  }
  if (thread == of_block - 1) {
    const auto publish = [&](std::uint64_t state, unsigned value) {
      __hip_atomic_store(&states[blockIdx.x], state | value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
    };
    publish(has_own_sum, sum);
    before = 0;
    for (int i = static_cast<int>(blockIdx.x) - 1; i >= 0;) {
      const std::uint64_t word = __hip_atomic_load(&states[i], __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
      const std::uint64_t state = word >> 32 << 32;
      if (state == 0) continue;
      before += static_cast<unsigned>(word);
      if (state == has_whole_sum) break;
      --i;
    }
    publish(has_whole_sum, before + sum);
  }
  __syncthreads();
  sums[at] = before + sum;
}

void test_scan() {
  constexpr unsigned blocks = 200;
  constexpr unsigned count = blocks * of_block;
  auto* numbers = zeroed<unsigned>(count);
  auto* sums = zeroed<unsigned>(count);
  auto* states = zeroed<std::uint64_t>(blocks);
  std::vector<unsigned> given(count);
  for (unsigned i = 0; i < count; ++i) given[i] = (i * 2654435761U) >> 20;
  CHECK(hipMemcpy(numbers, given.data(), count * sizeof(unsigned), hipMemcpyHostToDevice));
  for (int round = 0; round < 5; ++round) {
    CHECK(hipMemset(states, 0, blocks * sizeof(std::uint64_t)));
    scan<<<blocks, of_block>>>(numbers, sums, states);
    const std::vector<unsigned> got = copy_of(sums, count);
    unsigned sum = 0;
    for (unsigned i = 0; i < count; ++i) EXPECT(got[i] == (sum += given[i]));
  }
}

}  // namespace

int main(int count, char** words) {
  const char* what = count > 1 ? words[1] : "";
  if (std::strcmp(what, "meet") == 0) {
    test_meeting();
  } else if (std::strcmp(what, "refused") == 0) {
    test_refusal();
  } else if (std::strcmp(what, "wait") == 0) {
    test_waiting();
  } else if (std::strcmp(what, "scan") == 0) {
    test_scan();
  } else {
    std::fputs("workgroups <meet|refused|wait|scan>\n", stderr);
    return 2;
  }
  return 0;
}
