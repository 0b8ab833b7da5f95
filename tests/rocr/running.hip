// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What kernels meet while they run, one or several of:
//
//   running memory      memory that the host allocated after the kernel began
//   running malloc      malloc in kernels, beyond what the heap began with (beneath AMD's HIP)
//   running values      hipStreamWaitValue by a program of one thread (beneath AMD's HIP), on three kinds of memory
//   running late        likewise, and nobody writes for some seconds
//   running clock       how long s_sleep takes
//   running masks       comparisons of waves of 64 lanes, where the program was compiled for such
//   running images      images have no size, and are refused
//   running copies      copies of several sizes, both ways
//   running endless     a kernel that does not end, and what the launch then says
#include <hip/hip_runtime.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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
T* on_device(std::size_t count) {
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

hipStream_t stream_of_its_own() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
  return stream;
}

constexpr int far = 5 << 18;

__global__ void store_where_told(int** box) {
  int* memory = nullptr;
  while ((memory = __hip_atomic_load(box, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM)) == nullptr) {
    __builtin_amdgcn_s_sleep(1);
  }
  memory[0] = 42;
  memory[far] = 43;
}

void test_memory() {
  int** box = nullptr;
  CHECK(hipHostMalloc(reinterpret_cast<void**>(&box), 4096, hipHostMallocCoherent));
  *box = nullptr;
  hipStream_t stream = stream_of_its_own();
  store_where_told<<<1, 1, 0, stream>>>(box);
  static_cast<void>(hipStreamQuery(stream));
  usleep(50'000);
  int* memory = nullptr;
  CHECK(hipMalloc(&memory, std::size_t{16} << 20));
  __atomic_store_n(box, memory, __ATOMIC_SEQ_CST);
  CHECK(hipStreamSynchronize(stream));
  EXPECT(copy_of(memory, 1)[0] == 42);
  EXPECT(copy_of(memory + far, 1)[0] == 43);
}

// Each work-item's own piece of memory.
__global__ void take(int** pieces, std::size_t bytes) {
  const unsigned i = (blockIdx.x * blockDim.x) + threadIdx.x;
  auto* const piece = static_cast<int*>(malloc(bytes));
  if (piece != nullptr) *piece = static_cast<int>(i);
  pieces[i] = piece;
}
__global__ void give_back(int** pieces, int* wrong) {
  const unsigned i = (blockIdx.x * blockDim.x) + threadIdx.x;
  if (pieces[i] == nullptr || *pieces[i] != static_cast<int>(i)) atomicAdd(wrong, 1);
  free(pieces[i]);
}

void test_malloc() {
  struct Case {
    std::size_t bytes;
    unsigned threads;
  };
  for (const Case& one : {Case{64, 64}, Case{300, 256}, Case{3'000'000, 1}}) {
    int** pieces = on_device<int*>(one.threads);
    int* wrong = on_device<int>(1);
    take<<<1, one.threads>>>(pieces, one.bytes);
    give_back<<<1, one.threads>>>(pieces, wrong);
    CHECK(hipDeviceSynchronize());
    EXPECT(copy_of(wrong, 1)[0] == 0);
  }
}

// Both streams are this thread's: whoever waits for its own write waits for ever.
void wait_for_values(std::uint64_t* place, unsigned seconds) {
  hipStream_t waits = stream_of_its_own();
  hipStream_t writes = stream_of_its_own();
  CHECK(hipStreamWriteValue64(writes, place, 1, 0));
  CHECK(hipStreamSynchronize(writes));
  CHECK(hipStreamWaitValue64(waits, place, 1, hipStreamWaitValueGte, ~0ULL));  // true already
  CHECK(hipStreamSynchronize(waits));
  CHECK(hipStreamWaitValue64(waits, place, 5, hipStreamWaitValueGte, ~0ULL));  // not yet
  EXPECT(hipStreamQuery(waits) == hipErrorNotReady);
  sleep(seconds);
  CHECK(hipStreamWriteValue64(writes, place, 6, 0));
  CHECK(hipStreamSynchronize(writes));
  CHECK(hipStreamSynchronize(waits));
  std::uint64_t value = 0;
  CHECK(hipMemcpy(&value, place, sizeof value, hipMemcpyDefault));
  EXPECT(value == 6);
}

void test_values() {
  wait_for_values(on_device<std::uint64_t>(1), 0);
  std::uint64_t* on_host = nullptr;
  CHECK(hipHostMalloc(reinterpret_cast<void**>(&on_host), 8, 0));
  *on_host = 0;
  wait_for_values(on_host, 0);
  std::uint64_t* signal = nullptr;
  CHECK(hipExtMallocWithFlags(reinterpret_cast<void**>(&signal), 8, hipMallocSignalMemory));
  *signal = 0;
  wait_for_values(signal, 0);
}

__global__ void sleep_and_spin(long long* cycles) {
  const long long begin = clock64();
  for (int i = 0; i < 50; ++i) __builtin_amdgcn_s_sleep(127);
  const long long awake = clock64();
  while (clock64() - awake < 10'000) {
  }
  cycles[0] = awake - begin;
  cycles[1] = clock64() - awake;
}

void test_clock() {
  auto* cycles = on_device<long long>(2);
  sleep_and_spin<<<1, 1>>>(cycles);
  CHECK(hipDeviceSynchronize());
  const std::vector<long long> took = copy_of(cycles, 2);
  EXPECT(took[0] >= 50 * 127 * 64 && took[0] < 420'000);
  EXPECT(took[1] >= 10'000 && took[1] < 12'000);
}

__global__ void compare(unsigned long long* masks) {
  const unsigned lane = threadIdx.x;
  unsigned long long below = 0;
  unsigned long long small = 0;
#ifdef WAVEFRONT_SIZE_64
  asm volatile("v_cmp_gt_u32_e64 %0, 50, %1" : "=s"(below) : "v"(lane));
  asm volatile("v_cmp_gt_f32_e64 %0, 4.0, %1" : "=s"(small) : "v"(static_cast<float>(lane)));
#endif
  const unsigned long long thirds = __ballot(static_cast<unsigned short>(lane) % 3 == 0);
  const auto count = static_cast<unsigned long long>(__syncthreads_count(lane % 3 == 0));
  if (lane != 0) return;
  masks[0] = below;
  masks[1] = small;
  masks[2] = thirds;
  masks[3] = count;
}

void test_masks() {
  auto* masks = on_device<unsigned long long>(4);
  compare<<<1, 64>>>(masks);
  CHECK(hipDeviceSynchronize());
  const std::vector<unsigned long long> all = copy_of(masks, 4);
  EXPECT(all[0] == (1ULL << 50) - 1);
  EXPECT(all[1] == 15);
  EXPECT(all[2] == 0x9249249249249249ULL);
  EXPECT(all[3] == 22);
}

void test_images() {
  // Whether there are images HIP takes from its compiler's table of targets; how large they may be, from the runtime.
  for (const auto attribute : {hipDeviceAttributeMaxTexture1DWidth, hipDeviceAttributeMaxTexture2DWidth}) {
    int most = -1;
    CHECK(hipDeviceGetAttribute(&most, attribute, 0));
    EXPECT(most == 0);
  }
  hipArray_t image = nullptr;
  const hipChannelFormatDesc floats = hipCreateChannelDesc(32, 0, 0, 0, hipChannelFormatKindFloat);
  EXPECT(hipMallocArray(&image, &floats, 16, 16, 0) != hipSuccess);
  static_cast<void>(hipGetLastError());
}

void test_copies() {
  constexpr std::size_t most = 1U << 20;
  auto* from = on_device<char>(most);
  auto* to = on_device<char>(most);
  for (const std::size_t bytes :
       {std::size_t{4}, std::size_t{4'000}, std::size_t{16'384}, std::size_t{70'000}, most - 3}) {
    std::vector<char> there(bytes);
    for (std::size_t i = 0; i < bytes; ++i) there[i] = static_cast<char>((i * 31) + bytes);
    CHECK(hipMemcpy(from, there.data(), bytes, hipMemcpyHostToDevice));
    CHECK(hipMemcpy(to, from, bytes, hipMemcpyDeviceToDevice));
    EXPECT(copy_of(to, bytes) == there);
  }
}

__global__ void spin(int* flag) {
  while (__hip_atomic_load(flag, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT) == 0) {
  }
}

void run_endless() {
  auto* flag = on_device<int>(1);
  spin<<<1, 64>>>(flag);
  std::printf("%s\n", hipGetErrorName(hipDeviceSynchronize()));
  std::exit(0);
}

bool run(const std::string& what) {
  if (what == "memory") {
    test_memory();
  } else if (what == "malloc") {
    test_malloc();
  } else if (what == "values") {
    test_values();
  } else if (what == "late") {
    wait_for_values(on_device<std::uint64_t>(1), 2);
  } else if (what == "clock") {
    test_clock();
  } else if (what == "masks") {
    test_masks();
  } else if (what == "images") {
    test_images();
  } else if (what == "copies") {
    test_copies();
  } else if (what == "endless") {
    run_endless();
  } else {
    return false;
  }
  std::printf("%s: right\n", what.c_str());
  return true;
}

}  // namespace

int main(int count, char** words) {
  for (const std::string& what : std::vector<std::string>(words + 1, words + count)) {
    if (run(what)) continue;
    std::fprintf(stderr, "running memory|malloc|values|late|clock|masks|images|copies|endless …\n");
    return 2;
  }
  return 0;
}
