// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A writer killed at any moment leaves nothing, the old entry, the new one, or a temporary that nobody reads.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <thread>

#include "cache/cache.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

int wait_for(pid_t child) {
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return status;
}

// At every system call of a publish, over nothing and over an older entry.
TEST(KillTest, AtEverySystemCall) {
  const ScratchDirectory scratch;
  const auto older = sample_code(20'000, 1);
  const auto newer = sample_code(30'000, 2);
  const Key key = sample_key();
  for (const bool over_older : {false, true}) {
    bool survived = false;
    int kills = 0;
    for (int nth = 1; !survived; ++nth) {
      ASSERT_LT(nth, 100);
      const std::string root = scratch / (std::string(over_older ? "over" : "fresh") + std::to_string(nth));
      if (over_older) {
        ASSERT_TRUE(open_cache(root).publish(key, {.kernels = sample_kernels(), .code_object = older}).published);
      }
      const pid_t child = ::fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        DyingIo io(nth);
        Cache cache = open_cache(root, Mode::read_write, &io);
        ::_exit(cache.publish(key, {.kernels = sample_kernels(), .code_object = newer}).published ? 0 : 1);
      }
      const int status = wait_for(child);
      survived = WIFEXITED(status);
      if (survived) {
        EXPECT_EQ(WEXITSTATUS(status), 0);
      } else {
        EXPECT_EQ(WTERMSIG(status), SIGKILL);
        ++kills;
      }
      const FilesBelow files = files_below(root);
      EXPECT_LE(files.entries.size(), 1U);
      EXPECT_LE(files.temporaries.size(), 1U);
      EXPECT_TRUE(files.strangers.empty());
      Cache next = open_cache(root);
      const auto hit = next.lookup(key);
      EXPECT_EQ(next.counters().damaged, 0U);
      if (over_older) ASSERT_TRUE(hit);
      if (hit) {
        const auto code = hit->entry().code_object;
        EXPECT_TRUE(same_bytes(code, newer) || (over_older && same_bytes(code, older)));
      }
      EXPECT_TRUE(next.publish(key, {.kernels = sample_kernels(), .code_object = newer}).published);
    }
    EXPECT_GE(kills, 5) << "create, write, sync, close and rename at least";
  }
}

// The whole cold path, lock included: who comes next waits for nobody and finds the entry or compiles.
TEST(KillTest, AtEverySystemCallOfATurn) {
  const ScratchDirectory scratch;
  const Key key = sample_key();
  const auto code = sample_code(5000);
  bool survived = false;
  int kills = 0;
  for (int nth = 1; !survived; ++nth) {
    ASSERT_LT(nth, 200);
    const std::string root = scratch / std::to_string(nth);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DyingIo io(nth);
      Cache cache({.layers = {{.name = "user", .root = root, .writable = true}}, .io = &io});
      if (cache.lookup(key)) ::_exit(1);
      {
        const Turn turn = cache.take_turn(key);
        if (!turn.exclusive()) ::_exit(2);
        if (!cache.publish(key, {.kernels = sample_kernels(), .code_object = code}).published) ::_exit(3);
      }
      ::_exit(0);
    }
    const int status = wait_for(child);
    survived = WIFEXITED(status);
    if (survived) {
      EXPECT_EQ(WEXITSTATUS(status), 0);
      EXPECT_TRUE(files_below(root).strangers.empty()) << "no lock is left";
    } else {
      ++kills;
    }
    Cache next({.layers = {{.name = "user", .root = root, .writable = true}},
                .lock_wait_nanoseconds = 60 * nanoseconds_per_second});
    const Turn turn = next.take_turn(key);
    ASSERT_TRUE(turn.exclusive() || turn.hit);
    if (turn.hit) EXPECT_TRUE(same_bytes(turn.hit->entry().code_object, code));
    EXPECT_EQ(next.counters().turns_waited, 0U);
    EXPECT_EQ(next.counters().damaged, 0U);
  }
  EXPECT_GE(kills, 15) << "lookup, lock, record, create, write, sync, close, rename, unlink, unlock at least";
}

// An evictor: every entry is whole or gone, and the next sweep ends its work.
TEST(KillTest, AtEverySystemCallOfASweep) {
  const ScratchDirectory scratch;
  const auto code = sample_code(2000);
  const auto nth_key = [](int i) { return sample_key(std::to_string(i)); };
  bool survived = false;
  int kills = 0;
  for (int nth = 1; !survived; ++nth) {
    ASSERT_LT(nth, 200);
    const std::string root = scratch / std::to_string(nth);
    for (int i = 0; i < 3; ++i) {
      ASSERT_TRUE(open_cache(root).publish(nth_key(i), {.kernels = sample_kernels(), .code_object = code}).published);
    }
    const auto options = [&](IoInterface* io) {
      return CacheOptions{
          .layers = {{.name = "user", .root = root, .writable = true}}, .io = io, .minimum_age_nanoseconds = 0};
    };
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      DyingIo io(nth);
      Cache cache(options(&io));
      ::_exit(cache.sweep(1).complete ? 0 : 1);
    }
    const int status = wait_for(child);
    survived = WIFEXITED(status);
    if (survived) EXPECT_EQ(WEXITSTATUS(status), 0);
    kills += survived ? 0 : 1;
    Cache next(options(nullptr));
    for (int i = 0; i < 3; ++i) {
      if (const auto hit = next.lookup(nth_key(i))) EXPECT_TRUE(same_bytes(hit->entry().code_object, code));
    }
    EXPECT_EQ(next.counters().damaged, 0U);
    const auto result = next.sweep(1);
    EXPECT_TRUE(result.complete) << result.reason;
    EXPECT_EQ(result.failures, 0U);
    EXPECT_TRUE(files_below(root).entries.empty());
  }
  EXPECT_GE(kills, 10);
}

// At any instruction: a writer that publishes without pause is killed after a few milliseconds, again and again.
TEST(KillTest, AtRandomMoments) {
  const ScratchDirectory scratch;
  const std::string root = scratch / "cache";
  const Key key = sample_key();
  const std::vector<std::vector<std::byte>> codes = {sample_code(40'000, 1), sample_code(70'000, 2)};
  std::uint32_t state = 7;
  for (int round = 0; round < 40; ++round) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Cache cache = open_cache(root);
      for (std::size_t i = 0;; ++i) {
        if (!cache.publish(key, {.kernels = sample_kernels(), .code_object = codes[i % 2]}).published) ::_exit(1);
      }
    }
    state = state * 1664525U + 1013904223U;
    std::this_thread::sleep_for(std::chrono::microseconds(500 + (state >> 16) % 8000));
    ::kill(child, SIGKILL);
    const int status = wait_for(child);
    ASSERT_TRUE(WIFSIGNALED(status)) << "the writer must not have failed";
    Cache cache = open_cache(root);
    const auto hit = cache.lookup(key);
    EXPECT_EQ(cache.counters().damaged + cache.counters().refused + cache.counters().read_faults, 0U);
    if (hit) {
      EXPECT_TRUE(same_bytes(hit->entry().code_object, codes[0]) || same_bytes(hit->entry().code_object, codes[1]));
    }
    EXPECT_TRUE(files_below(root).strangers.empty());
  }
  EXPECT_TRUE(open_cache(root).publish(key, {.kernels = sample_kernels(), .code_object = codes[0]}).published);
}

}  // namespace
}  // namespace wavejit::cache
