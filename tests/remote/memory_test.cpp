// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A name is resolved in a thread of the store's own: memory that runs out there, or on the way there, is an answer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <new>

#include "remote/resolver.h"

namespace {

// How many allocations of the calling thread go well before one fails.
thread_local int good_allocations = std::numeric_limits<int>::max();
thread_local bool is_tests_own = false;
std::atomic<bool> others_fail{false};

}  // namespace

void* operator new(std::size_t bytes) {
  if (others_fail && !is_tests_own) throw std::bad_alloc();
  if (good_allocations != std::numeric_limits<int>::max() && good_allocations-- == 0) throw std::bad_alloc();
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace wavejit::remote {
namespace {

using namespace std::chrono_literals;

bool blocks_a_signal() {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, SIGUSR1) == 1;
}

TEST(ResolverMemoryTest, SignalsAreNotLeftBlockedWhicheverAllocationFails) {
  int failed = 0;
  bool resolved = false;
  for (int good = 0; good < 100 && !resolved; ++good) {
    const Interruption interruption;
    Resolver resolver("localhost", 6379);
    good_allocations = good;
    try {
      resolved = resolver.addresses(Deadline::in(20s), interruption).has_value();
    } catch (const std::bad_alloc&) {
    }
    good_allocations = std::numeric_limits<int>::max();
    failed += resolved ? 0 : 1;
    ASSERT_FALSE(blocks_a_signal()) << "the allocation after " << good << " good ones failed";
  }
  EXPECT_GE(failed, 1);
  EXPECT_TRUE(resolved);
}

TEST(ResolverMemoryTest, RunningOutInTheThreadThatAsksIsAFault) {
  is_tests_own = true;
  const Interruption interruption;
  Resolver resolver("localhost", 6379);
  others_fail = true;
  const auto addresses = resolver.addresses(Deadline::in(20s), interruption);
  others_fail = false;
  is_tests_own = false;
  ASSERT_FALSE(addresses);
  EXPECT_THAT(addresses.error().what, ::testing::HasSubstr("leads nowhere"));
}

}  // namespace
}  // namespace wavejit::remote
