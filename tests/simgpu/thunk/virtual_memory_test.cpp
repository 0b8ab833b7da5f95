// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Addresses without memory, memory without addresses, and children of fork, without ROCr (with it: tests/rocr).
#include "simgpu/front_ends/thunk/virtual_memory.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "simgpu/front_ends/thunk/address_space.h"
#include "simgpu/front_ends/thunk/child.h"
#include "simgpu/front_ends/thunk/memory.h"
#include "simgpu/machine/allocations/memory.h"
#include "simgpu/machine/device/device.h"

namespace wavejit::simgpu::thunk {
namespace {

constexpr std::uint64_t bytes = 3 * 4096;

class Virtual : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { ASSERT_TRUE(Device::open("gfx942", 2).has_value()); }
  static std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
  // As ROCr does: a file of it, and an object of the file.
  static std::uint64_t import(const void* handle) {
    const int file = memory().export_file(handle);
    EXPECT_GE(file, 0);
    const std::uint64_t object = memory().import_file(file);
    ::close(file);
    return object;
  }
  static VirtualMemory& memory() { return VirtualMemory::instance(); }
};

TEST_F(Virtual, MemoryIsWhereItIsMapped) {
  void* place = nullptr;
  void* handle = nullptr;
  Memory& thunk = Memory::instance();
  ASSERT_EQ(thunk.allocate(0, 4 * bytes, 1 << 21, flag_only_address, &place), KmtStatus::success);
  EXPECT_EQ(address_of(place) % (1 << 21), 0U);
  EXPECT_EQ(DeviceMemory::instance().lookup(place).base, 0U);
  const std::uint64_t before = thunk.available(1);
  ASSERT_EQ(thunk.allocate(1, bytes, 0, flag_no_address, &handle), KmtStatus::success);
  EXPECT_EQ(thunk.available(1), before - bytes);
  const std::uint64_t object = import(handle);
  ASSERT_NE(object, 0U);
  EXPECT_EQ(memory().bytes_of(object), bytes);

  ASSERT_TRUE(memory().map(object, 0, bytes, address_of(place)));
  ASSERT_TRUE(memory().map(object, 0, bytes, address_of(place)));  // for another GPU
  auto* const words = static_cast<std::uint32_t*>(place);
  EXPECT_EQ(words[0], 0U);
  words[0] = 17;
  words[bytes / 4 - 1] = 18;
  EXPECT_TRUE(DeviceMemory::instance().lookup(place).holds(address_of(place), bytes));
  EXPECT_TRUE(memory().unmap(address_of(place), bytes));
  EXPECT_NE(DeviceMemory::instance().lookup(place).base, 0U);
  EXPECT_TRUE(memory().unmap(address_of(place), bytes));
  EXPECT_EQ(DeviceMemory::instance().lookup(place).base, 0U);
  EXPECT_FALSE(memory().unmap(address_of(place), bytes));

  // Its last page elsewhere.
  const std::uint64_t elsewhere = address_of(place) + (2 * bytes);
  ASSERT_TRUE(memory().map(object, bytes - 4096, 4096, elsewhere));
  EXPECT_EQ(*host_pointer<std::uint32_t>(elsewhere + 4092), 18U);
  EXPECT_TRUE(memory().unmap(elsewhere, 4096));

  EXPECT_TRUE(memory().drop(object));
  EXPECT_EQ(thunk.free(handle), KmtStatus::success);
  EXPECT_EQ(thunk.available(1), before);
  EXPECT_EQ(thunk.free(place), KmtStatus::success);
  EXPECT_EQ(thunk.free(place), KmtStatus::invalid_parameter);
}

TEST_F(Virtual, WhatHostsMapOfTheFileIsTheSameMemory) {
  void* const handle = memory().create(2, bytes);
  ASSERT_NE(handle, nullptr);
  const std::uint64_t object = import(handle);
  void* const place = memory().reserve(bytes, 4096, nullptr);
  ASSERT_TRUE(memory().map(object, 0, bytes, address_of(place)));
  std::uint64_t offset = 0;
  ASSERT_TRUE(memory().offset_of(object, offset));
  const int file = memory().device(2)->file;
  void* const host = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, static_cast<off_t>(offset));
  ASSERT_NE(host, MAP_FAILED);
  static_cast<char*>(host)[5000] = 'x';
  EXPECT_EQ(static_cast<char*>(place)[5000], 'x');
  ::munmap(host, bytes);
  EXPECT_TRUE(memory().unmap(address_of(place), bytes));
  EXPECT_TRUE(memory().drop(object));
  EXPECT_TRUE(memory().release(handle));
  EXPECT_TRUE(memory().free_addresses(place));
}

TEST_F(Virtual, WrongCallsAreRefused) {
  EXPECT_EQ(memory().create(0, bytes), nullptr);
  EXPECT_EQ(memory().create(9, bytes), nullptr);
  EXPECT_EQ(memory().device(0), nullptr);
  EXPECT_EQ(memory().reserve(std::uint64_t{1} << 60, 4096, nullptr), nullptr);
  int here = 0;
  EXPECT_EQ(memory().reserve(4096, 4096, host_pointer<void>(address_of(&here) & ~std::uint64_t{4095})), nullptr);
  EXPECT_FALSE(memory().release(&here));
  EXPECT_EQ(memory().export_file(&here), -1);
  EXPECT_EQ(memory().import_file(0), 0U);
  EXPECT_EQ(memory().import_file(-1), 0U);
  EXPECT_FALSE(memory().drop(12345));
  EXPECT_FALSE(memory().map(12345, 0, 4096, 1 << 20));
  void* const handle = memory().create(1, bytes);
  void* const place = memory().reserve(4 * bytes, 4096, nullptr);
  const std::uint64_t object = import(handle);
  EXPECT_FALSE(memory().map(object, 4096, bytes, address_of(place)));
  EXPECT_FALSE(memory().map(object, bytes + 4096, 1, address_of(place)));
  EXPECT_TRUE(memory().drop(object));
  EXPECT_TRUE(memory().release(handle));
  EXPECT_TRUE(memory().free_addresses(place));
  void* much = nullptr;
  EXPECT_EQ(Memory::instance().allocate(1, std::uint64_t{1} << 43, 0, flag_no_address, &much), KmtStatus::no_memory);
}

// Exit codes of a child: 10 where it is one, 11 where it is refused.
TEST_F(Virtual, ChildrenAreRefusedAndEndWhenTheyRing) {
  watch_for_forks();
  watch_for_forks();
  ASSERT_NE(doorbell_place(), 0U);
  ASSERT_FALSE(in_child());
  const auto status_of = [](auto work) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(STDERR_FILENO);
      ::_exit(work());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  };
  const int refused = status_of([] { return in_child() && refuse_in_child() == KmtStatus::not_opened ? 11 : 1; });
  EXPECT_TRUE(WIFEXITED(refused) && WEXITSTATUS(refused) == 11);
  const int rang = status_of([] {
    *host_pointer<volatile std::uint64_t>(doorbell_place()) = 1;
    return 1;
  });
  EXPECT_TRUE(WIFSIGNALED(rang) && WTERMSIG(rang) == SIGABRT);
  // Other faults go where they went before.
  const int fault = status_of([] {
    ::signal(SIGSEGV, SIG_DFL);
    *host_pointer<volatile int>(64) = 1;
    return 1;
  });
  EXPECT_TRUE(WIFSIGNALED(fault) && WTERMSIG(fault) == SIGSEGV);
  *host_pointer<volatile std::uint64_t>(doorbell_place()) = 1;
  EXPECT_FALSE(in_child());
}

TEST_F(Virtual, AddressesThatRunOutAreSaidOnce) {
  EXPECT_TRUE(has_address_space());
  ::testing::internal::CaptureStderr();
  say_no_address_space(123);
  say_no_address_space(456);
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_THAT(said, ::testing::HasSubstr("no room for 123 bytes in the "));
  EXPECT_THAT(said, ::testing::Not(::testing::HasSubstr("456")));
}

}  // namespace
}  // namespace wavejit::simgpu::thunk
