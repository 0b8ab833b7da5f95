// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// HIP's virtual-memory interface and its memory pools, which are made of it, run by `wavejit sim`: addresses without
// memory, memory without addresses, mapped, filled by kernels, copied, mapped elsewhere, taken away.
#include <hip/hip_runtime_api.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void check(hipError_t status, const char* call, int line) {
  if (status == hipSuccess) return;
  static_cast<void>(std::fprintf(stderr, "%d: %s: %s\n", line, call, hipGetErrorName(status)));
  std::exit(1);
}
#define CHECK(call) check((call), #call, __LINE__)

void expect(bool is_true, const std::string& what) {
  if (is_true) return;
  static_cast<void>(std::fprintf(stderr, "not true: %s\n", what.c_str()));
  std::exit(1);
}

using Bytes = std::vector<std::uint8_t>;

const hipMemAllocationProp on_gpu_0 = [] {
  hipMemAllocationProp properties{};
  properties.type = hipMemAllocationTypePinned;
  properties.location = {hipMemLocationTypeDevice, 0};
  return properties;
}();

std::size_t granule() {
  std::size_t bytes = 0;
  CHECK(hipMemGetAllocationGranularity(&bytes, &on_gpu_0, hipMemAllocationGranularityMinimum));
  expect(bytes >= 4096, "a granule of pages");
  return bytes;
}

std::size_t free_memory() {
  std::size_t free = 0;
  std::size_t all = 0;
  CHECK(hipMemGetInfo(&free, &all));
  return free;
}

void give_access(void* address, std::size_t bytes, int device = 0) {
  hipMemAccessDesc access{};
  access.location = {hipMemLocationTypeDevice, device};
  access.flags = hipMemAccessFlagsProtReadWrite;
  CHECK(hipMemSetAccess(address, bytes, &access, 1));
}

std::uint8_t* offset(void* address, std::size_t bytes) { return static_cast<std::uint8_t*>(address) + bytes; }

// Two pieces behind each other, then one of them elsewhere as well.
std::size_t map_and_map_again(std::size_t piece) {
  const std::size_t before = free_memory();
  void* place = nullptr;
  CHECK(hipMemAddressReserve(&place, 4 * piece, 0, nullptr, 0));
  hipMemGenericAllocationHandle_t first{};
  hipMemGenericAllocationHandle_t second{};
  CHECK(hipMemCreate(&first, piece, &on_gpu_0, 0));
  CHECK(hipMemCreate(&second, piece, &on_gpu_0, 0));
  expect(free_memory() <= before - (2 * piece), "memory is used");
  CHECK(hipMemMap(place, piece, 0, first, 0));
  CHECK(hipMemMap(offset(place, piece), piece, 0, second, 0));
  give_access(place, 2 * piece);
  // A kernel's fill and an engine's copies across both.
  CHECK(hipMemset(place, 0x11, 2 * piece));
  Bytes source(100'000);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<std::uint8_t>(i * 7);
  std::uint8_t* const across = offset(place, piece - 50'000);
  CHECK(hipMemcpy(across, source.data(), source.size(), hipMemcpyHostToDevice));
  Bytes back(source.size());
  CHECK(hipMemcpy(back.data(), across, back.size(), hipMemcpyDeviceToHost));
  expect(back == source, "bytes across two pieces");
  CHECK(hipMemcpy(back.data(), offset(place, (2 * piece) - back.size()), back.size(), hipMemcpyDeviceToHost));
  expect(back == Bytes(back.size(), 0x11), "the fill's bytes");

  CHECK(hipMemUnmap(offset(place, piece), piece));
  CHECK(hipMemMap(offset(place, 3 * piece), piece, 0, second, 0));
  give_access(offset(place, 3 * piece), piece);
  CHECK(hipMemcpy(back.data(), offset(place, 3 * piece), 50'000, hipMemcpyDeviceToHost));
  expect(std::equal(source.begin() + 50'000, source.end(), back.begin()), "what was written is where the memory went");

  CHECK(hipMemUnmap(place, piece));
  CHECK(hipMemUnmap(offset(place, 3 * piece), piece));
  CHECK(hipMemRelease(first));
  CHECK(hipMemRelease(second));
  CHECK(hipMemAddressFree(place, 4 * piece));
  return before - free_memory();
}

// Another GPU's view of the same memory.
void two_gpus(std::size_t piece) {
  int count = 0;
  CHECK(hipGetDeviceCount(&count));
  if (count < 2) return;
  void* place = nullptr;
  hipMemGenericAllocationHandle_t memory{};
  CHECK(hipMemAddressReserve(&place, piece, 0, nullptr, 0));
  CHECK(hipMemCreate(&memory, piece, &on_gpu_0, 0));
  CHECK(hipMemMap(place, piece, 0, memory, 0));
  give_access(place, piece, 0);
  give_access(place, piece, 1);
  CHECK(hipMemset(place, 0x21, piece));
  CHECK(hipDeviceSynchronize());
  CHECK(hipSetDevice(1));
  CHECK(hipMemset(place, 0x22, 1000));
  CHECK(hipDeviceSynchronize());
  CHECK(hipSetDevice(0));
  Bytes back(2000);
  CHECK(hipMemcpy(back.data(), place, back.size(), hipMemcpyDeviceToHost));
  expect(back[0] == 0x22 && back[999] == 0x22 && back[1000] == 0x21, "bytes of both GPUs");
  CHECK(hipMemUnmap(place, piece));
  CHECK(hipMemRelease(memory));
  CHECK(hipMemAddressFree(place, piece));
}

// Mapping more than was reserved is not tried: AMD's HIP 7.2 itself ends in a null pointer then.
void wrong_calls() {
  hipMemGenericAllocationHandle_t much{};
  expect(hipMemCreate(&much, std::size_t{1} << 43, &on_gpu_0, 0) == hipErrorOutOfMemory, "8 TiB are not there");
  void* place = nullptr;
  expect(hipMemAddressReserve(&place, std::size_t{1} << 60, 0, nullptr, 0) != hipSuccess, "so many addresses neither");
}

// Pools: memory in a stream's order, given back and taken again.
void pools() {
  hipStream_t stream = nullptr;
  CHECK(hipStreamCreate(&stream));
  const std::size_t bytes = 300'000;
  Bytes back(bytes);
  for (int round = 0; round < 4; ++round) {
    void* memory = nullptr;
    void* other = nullptr;
    CHECK(hipMallocAsync(&memory, bytes, stream));
    CHECK(hipMallocAsync(&other, bytes / 2, stream));
    CHECK(hipMemsetAsync(memory, round + 1, bytes, stream));
    CHECK(hipMemsetAsync(other, 0xff, bytes / 2, stream));
    CHECK(hipMemcpyAsync(back.data(), memory, bytes, hipMemcpyDeviceToHost, stream));
    CHECK(hipFreeAsync(other, stream));
    CHECK(hipFreeAsync(memory, stream));
    CHECK(hipStreamSynchronize(stream));
    expect(back == Bytes(bytes, static_cast<std::uint8_t>(round + 1)),
           "a pool's bytes of round " + std::to_string(round));
  }
  hipMemPool_t pool = nullptr;
  CHECK(hipDeviceGetDefaultMemPool(&pool, 0));
  CHECK(hipMemPoolTrimTo(pool, 0));
  hipMemPoolProps properties{};
  properties.allocType = hipMemAllocationTypePinned;
  properties.location = {hipMemLocationTypeDevice, 0};
  hipMemPool_t own = nullptr;
  CHECK(hipMemPoolCreate(&own, &properties));
  void* memory = nullptr;
  CHECK(hipMallocFromPoolAsync(&memory, 5000, own, stream));
  CHECK(hipMemsetAsync(memory, 9, 5000, stream));
  CHECK(hipFreeAsync(memory, stream));
  CHECK(hipStreamSynchronize(stream));
  CHECK(hipMemPoolDestroy(own));
  CHECK(hipStreamDestroy(stream));
}

// Memory that host and GPU both write.
void managed() {
  constexpr std::size_t bytes = 3 << 20;
  void* memory = nullptr;
  CHECK(hipMallocManaged(&memory, bytes, hipMemAttachGlobal));
  auto* const words = static_cast<std::uint8_t*>(memory);
  words[bytes - 1] = 7;
  CHECK(hipMemset(memory, 3, bytes / 2));
  CHECK(hipDeviceSynchronize());
  expect(words[0] == 3 && words[bytes / 2 - 1] == 3 && words[bytes - 1] == 7, "managed memory");
  CHECK(hipFree(memory));
}

}  // namespace

int main() {
  int supported = 0;
  CHECK(hipDeviceGetAttribute(&supported, hipDeviceAttributeVirtualMemoryManagementSupported, 0));
  expect(supported == 1, "the interface is announced");
  const std::size_t piece = granule() * ((std::size_t{1} << 18) / granule() + 1);
  static_cast<void>(map_and_map_again(piece));  // HIP takes memory of its own at first use
  expect(map_and_map_again(piece) == 0, "all memory is back");
  two_gpus(piece);
  wrong_calls();
  pools();
  managed();
  static_cast<void>(std::printf("every byte is right\n"));
  return 0;
}
