// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Devices, errors, memory: what needs no kernel.
#include <algorithm>
#include <cstring>
#include <string>
#include <thread>

#include "front_fixture.h"

namespace wavejit::hip_kernels {
namespace {

TEST_F(Front, counts_and_chooses_devices) {
  int count = 0;
  EXPECT_EQ(hipGetDeviceCount(&count), hipSuccess);
  EXPECT_EQ(count, 3);
  EXPECT_EQ(hipSetDevice(2), hipSuccess);
  int current = -1;
  EXPECT_EQ(hipGetDevice(&current), hipSuccess);
  EXPECT_EQ(current, 2);
  std::thread([] {  // the current device belongs to a thread
    int of_thread = -1;
    EXPECT_EQ(hipGetDevice(&of_thread), hipSuccess);
    EXPECT_EQ(of_thread, 0);
  })
      .join();
  EXPECT_EQ(hipSetDevice(3), hipErrorInvalidDevice);
  EXPECT_EQ(hipSetDevice(-1), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetDevice(&current), hipSuccess);
  EXPECT_EQ(current, 2);
  EXPECT_EQ(hipGetDeviceCount(nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipInit(0), hipSuccess);
  EXPECT_EQ(hipInit(1), hipErrorInvalidValue);
}

TEST_F(Front, describes_devices) {
  hipDeviceProp_tR0600 properties;
  ASSERT_EQ(hipGetDevicePropertiesR0600(&properties, 0), hipSuccess);
  EXPECT_STREQ(properties.gcnArchName, "gfx950:sramecc+:xnack-");
  EXPECT_EQ(properties.sharedMemPerBlock, 160U * 1024);
  EXPECT_EQ(properties.multiProcessorCount, 256);
  EXPECT_EQ(properties.maxThreadsPerBlock, 1024);
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.minor, 5);
  EXPECT_EQ(properties.memoryClockRate, 2'000'000);
  hipDeviceProp_tR0000 old;
  ASSERT_EQ(hipGetDeviceProperties(&old, 2), hipSuccess);
  EXPECT_STREQ(old.gcnArchName, "gfx942:sramecc+:xnack-");
  EXPECT_EQ(old.maxSharedMemoryPerMultiProcessor, 64U * 1024);
  EXPECT_EQ(old.gcnArch, 940);
  int value = 0;
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0), hipSuccess);
  EXPECT_EQ(value, 64);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeMaxSharedMemoryPerBlock, 2), hipSuccess);
  EXPECT_EQ(value, 64 * 1024);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeCooperativeLaunch, 0), hipSuccess);
  EXPECT_EQ(value, 1);
  EXPECT_EQ(hipDeviceGetAttribute(&value, static_cast<hipDeviceAttribute_t>(5000), 0), hipErrorInvalidValue);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 9), hipErrorInvalidDevice);
  char name[8];
  EXPECT_EQ(hipDeviceGetName(name, sizeof name, 0), hipSuccess);
  EXPECT_STREQ(name, "MI355X ");
  char bus_id[16];
  EXPECT_EQ(hipDeviceGetPCIBusId(bus_id, sizeof bus_id, 1), hipSuccess);
  EXPECT_EQ(hipDeviceGetPCIBusId(bus_id, 5, 1), hipErrorInvalidValue);
  int device = -1;
  EXPECT_EQ(hipDeviceGetByPCIBusId(&device, bus_id), hipSuccess);
  EXPECT_EQ(device, 1);
  int version = 0;
  EXPECT_EQ(hipRuntimeGetVersion(&version), hipSuccess);
  EXPECT_EQ(version / 100000, 702);
}

TEST_F(Front, remembers_the_last_error_of_each_thread) {
  EXPECT_EQ(hipSetDevice(77), hipErrorInvalidDevice);
  EXPECT_EQ(hipPeekAtLastError(), hipErrorInvalidDevice);
  int device;
  EXPECT_EQ(hipGetDevice(&device), hipSuccess);  // success forgets nothing
  std::thread([] { EXPECT_EQ(hipGetLastError(), hipSuccess); }).join();
  EXPECT_EQ(hipExtGetLastError(), hipSuccess);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetLastError(), hipSuccess);
  EXPECT_STREQ(hipGetErrorName(hipErrorNoBinaryForGpu), "hipErrorNoBinaryForGpu");
  EXPECT_STREQ(hipGetErrorString(hipErrorIllegalAddress), "an illegal memory access was encountered");
  EXPECT_STREQ(hipGetErrorName(static_cast<hipError_t>(4711)), "hipErrorUnknown");
  const char* name = nullptr;
  EXPECT_EQ(hipDrvGetErrorName(static_cast<hipError_t>(4711), &name), hipErrorInvalidValue);
  EXPECT_EQ(hipDrvGetErrorString(hipErrorNotFound, &name), hipSuccess);
  EXPECT_STREQ(name, "named symbol not found");
}

TEST_F(Front, allocates_and_accounts) {
  std::size_t free_before = 0;
  std::size_t total = 0;
  ASSERT_EQ(hipMemGetInfo(&free_before, &total), hipSuccess);
  EXPECT_EQ(total, std::size_t{288} << 30);
  void* pointer = nullptr;
  ASSERT_EQ(hipMalloc(&pointer, 1000), hipSuccess);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pointer) % 256, 0U);
  std::size_t free_after = 0;
  ASSERT_EQ(hipMemGetInfo(&free_after, &total), hipSuccess);
  EXPECT_GE(free_before, free_after + 1000);

  hipPointerAttribute_t attributes;
  ASSERT_EQ(hipPointerGetAttributes(&attributes, static_cast<char*>(pointer) + 10), hipSuccess);
  EXPECT_EQ(attributes.type, hipMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  hipDeviceptr_t base = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(hipMemGetAddressRange(&base, &bytes, static_cast<char*>(pointer) + 999), hipSuccess);
  EXPECT_EQ(base, pointer);
  EXPECT_EQ(bytes, 1000U);
  EXPECT_EQ(hipFree(static_cast<char*>(pointer) + 1), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(pointer), hipSuccess);
  EXPECT_EQ(hipFree(pointer), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  ASSERT_EQ(hipMemGetInfo(&free_after, nullptr), hipSuccess);
  EXPECT_EQ(free_after, free_before);

  EXPECT_EQ(hipMalloc(&pointer, std::size_t{289} << 30), hipErrorOutOfMemory);
  EXPECT_EQ(hipMalloc(&pointer, SIZE_MAX - 5), hipErrorOutOfMemory);
  EXPECT_EQ(hipMalloc(nullptr, 5), hipErrorInvalidValue);
  EXPECT_EQ(hipMalloc(&pointer, 0), hipSuccess);
  EXPECT_EQ(pointer, nullptr);
  int here = 0;
  ASSERT_EQ(hipPointerGetAttributes(&attributes, &here), hipSuccess);
  EXPECT_EQ(attributes.type, hipMemoryTypeUnregistered);
}

TEST_F(Front, allocates_and_registers_host_memory) {
  void* pinned = nullptr;
  ASSERT_EQ(hipHostMalloc(&pinned, 4096, hipHostMallocMapped), hipSuccess);
  std::memset(pinned, 3, 4096);
  void* on_device = nullptr;
  EXPECT_EQ(hipHostGetDevicePointer(&on_device, pinned, 0), hipSuccess);
  EXPECT_EQ(on_device, pinned);
  EXPECT_EQ(hipHostFree(pinned), hipSuccess);
  EXPECT_EQ(hipHostFree(pinned), hipErrorInvalidValue);
  EXPECT_EQ(hipHostMalloc(&pinned, 16, 0x8), hipErrorInvalidValue);

  std::vector<std::uint32_t> mine(1000);
  EXPECT_EQ(hipHostUnregister(mine.data()), hipErrorHostMemoryNotRegistered);
  ASSERT_EQ(hipHostRegister(mine.data(), mine.size() * 4, hipHostRegisterDefault), hipSuccess);
  EXPECT_EQ(hipHostRegister(mine.data() + 10, 64, hipHostRegisterDefault), hipErrorHostMemoryAlreadyRegistered);
  hipPointerAttribute_t attributes;
  ASSERT_EQ(hipPointerGetAttributes(&attributes, mine.data()), hipSuccess);
  EXPECT_EQ(attributes.type, hipMemoryTypeHost);
  const hipModule_t module = load();
  EXPECT_EQ(launch(function(module, "fill"), 2, 64, nullptr, mine.data(), 9U, 1000U), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(std::ranges::count(mine, 9U), 1000);
  EXPECT_EQ(hipHostUnregister(mine.data()), hipSuccess);
  EXPECT_EQ(hipModuleUnload(module), hipSuccess);

  void* managed = nullptr;
  EXPECT_EQ(hipMallocManaged(&managed, 100, 7), hipErrorInvalidValue);
  ASSERT_EQ(hipMallocManaged(&managed, 100, hipMemAttachGlobal), hipSuccess);
  ASSERT_EQ(hipPointerGetAttributes(&attributes, managed), hipSuccess);
  EXPECT_EQ(attributes.isManaged, 1);
  EXPECT_EQ(hipFree(managed), hipSuccess);
}

TEST_F(Front, copies_and_fills_with_bounds) {
  std::uint32_t* words = device_words(64, 0x01020304);
  std::vector<std::uint32_t> host(128);
  EXPECT_EQ(hipMemcpy(host.data(), words, 64 * 4, hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_EQ(host[63], 0x01020304U);
  EXPECT_EQ(hipMemcpy(host.data(), words, 64 * 4 + 1, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(words + 60, host.data(), 20, hipMemcpyHostToDevice), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, words, 4, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, nullptr, 0, hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_EQ(hipMemcpy(host.data(), words, 4, static_cast<hipMemcpyKind>(9)), hipErrorInvalidMemcpyDirection);
  EXPECT_EQ(hipMemset(words, 0xab, 256), hipSuccess);
  EXPECT_EQ(hipMemset(words, 0xab, 257), hipErrorInvalidValue);
  EXPECT_EQ(hipMemset(host.data(), 0, 4), hipErrorInvalidValue);
  EXPECT_EQ(hipMemsetD16(words, 0x1234, 3), hipSuccess);
  EXPECT_EQ(hipMemsetD8(reinterpret_cast<char*>(words) + 5, 0x99, 1), hipSuccess);
  EXPECT_EQ(read(words, 3), (std::vector<std::uint32_t>{0x12341234, 0xabab9934, 0xabababab}));

  // A 3×2 block of words out of rows of 8 into rows of 16.
  std::vector<std::uint32_t> rows(16);
  for (std::uint32_t i = 0; i < 16; ++i) rows[i] = i;
  EXPECT_EQ(hipMemcpy2D(words, 64, rows.data() + 1, 32, 12, 2, hipMemcpyHostToDevice), hipSuccess);
  EXPECT_EQ(read(words, 3), (std::vector<std::uint32_t>{1, 2, 3}));
  EXPECT_EQ(read(words + 16, 3), (std::vector<std::uint32_t>{9, 10, 11}));
  EXPECT_EQ(hipMemcpy2D(words, 8, rows.data(), 32, 12, 2, hipMemcpyHostToDevice), hipErrorInvalidPitchValue);
  EXPECT_EQ(hipMemcpy2D(words, 64, rows.data(), 32, 12, SIZE_MAX / 2, hipMemcpyHostToDevice), hipErrorInvalidValue);
  EXPECT_EQ(hipMemset2D(words, 64, 0, 4, 4), hipSuccess);
  EXPECT_EQ(hipMemset2D(words, 64, 0, 4, 5), hipErrorInvalidValue);

  hipMemcpy3DParms box = {};
  box.srcPtr = {rows.data(), 16, 4, 2};
  box.dstPtr = {words, 64, 16, 2};
  box.srcPos = {4, 0, 0};
  box.extent = {8, 2, 2};
  box.kind = hipMemcpyHostToDevice;
  EXPECT_EQ(hipMemcpy3D(&box), hipSuccess);
  EXPECT_EQ(read(words, 2), (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(read(words + 48, 2), (std::vector<std::uint32_t>{13, 14}));
  EXPECT_EQ(hipFree(words), hipSuccess);
}

TEST_F(Front, answers_for_contexts_and_limits) {
  hipCtx_t context = nullptr;
  ASSERT_EQ(hipDevicePrimaryCtxRetain(&context, 1), hipSuccess);
  ASSERT_EQ(hipCtxPushCurrent(context), hipSuccess);
  int device = -1;
  EXPECT_EQ(hipCtxGetDevice(&device), hipSuccess);
  EXPECT_EQ(device, 1);
  hipCtx_t popped = nullptr;
  EXPECT_EQ(hipCtxPopCurrent(&popped), hipSuccess);
  EXPECT_EQ(popped, context);
  EXPECT_EQ(hipCtxPopCurrent(nullptr), hipErrorInvalidContext);
  EXPECT_EQ(hipCtxSetCurrent(reinterpret_cast<hipCtx_t>(&device)), hipErrorInvalidContext);
  std::size_t limit = 0;
  EXPECT_EQ(hipDeviceGetLimit(&limit, hipLimitStackSize), hipSuccess);
  EXPECT_GT(limit, 0U);
  EXPECT_EQ(hipDeviceGetLimit(&limit, hipLimitPrintfFifoSize), hipErrorUnsupportedLimit);
}

TEST_F(Front, finds_functions_by_name) {
  void* found = nullptr;
  hipDriverProcAddressQueryResult status;
  EXPECT_EQ(hipGetProcAddress("hipMalloc", &found, 702, 0, &status), hipSuccess);
  EXPECT_EQ(found, reinterpret_cast<void*>(&hipMalloc));
  EXPECT_EQ(hipGetProcAddress("hipGetDeviceProperties", &found, 702, 0, &status), hipSuccess);
  EXPECT_EQ(found, reinterpret_cast<void*>(&hipGetDevicePropertiesR0600));
  EXPECT_EQ(hipGetProcAddress("hipNoSuchThing", &found, 702, 0, &status), hipErrorInvalidValue);
  EXPECT_EQ(status, HIP_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

}  // namespace
}  // namespace wavejit::hip_kernels
