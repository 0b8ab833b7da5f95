// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Turns: across processes one compiles and the others take what it published; nobody waits longer than it said.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "cache/cache.h"
#include "cache/lock.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t millisecond = nanoseconds_per_millisecond;

class TurnTest : public ::testing::Test {
 protected:
  CacheOptions options(std::int64_t wait_ms, IoInterface* io = nullptr) {
    return {.layers = {{.name = "user", .root = root_, .writable = true}},
            .io = io,
            .on_event = [this](const Event& event) { told_.push_back(event.what); },
            .lock_wait_nanoseconds = wait_ms * millisecond};
  }
  std::string lock_path() const {
    return std::filesystem::path(path_of(root_, key_)).parent_path().string() + "/" + std::string(lock_prefix) +
           key_.hex();
  }
  static void expect_adds_up(const CounterValues& c) {
    EXPECT_EQ(c.turns, c.turns_taken + c.turns_answered + c.turns_timed_out + c.turns_unlocked);
    EXPECT_LE(c.turns_waited, c.turns);
  }
  // A holder in another process; it lives until the test closes its pipe.
  struct Holder {
    pid_t process = -1;
    int pipe = -1;
    void release() {
      ::close(pipe);
      int status = 0;
      ::waitpid(process, &status, 0);
    }
  };
  Holder hold() {
    int ready[2];
    int stop[2];
    EXPECT_EQ(::pipe(ready), 0);
    EXPECT_EQ(::pipe(stop), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      ::close(stop[1]);
      Cache cache(options(0));
      const Turn turn = cache.take_turn(key_);
      char byte = turn.exclusive() ? 'y' : 'n';
      (void)!::write(ready[1], &byte, 1);
      (void)!::read(stop[0], &byte, 1);
      ::_exit(0);
    }
    ::close(ready[1]);
    ::close(stop[0]);
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    EXPECT_EQ(byte, 'y');
    ::close(ready[0]);
    return {.process = child, .pipe = stop[1]};
  }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  Key key_ = sample_key();
  std::vector<std::byte> code_ = sample_code(1000);
  std::vector<std::string> told_;
};

TEST_F(TurnTest, AFreeTurnIsTakenAndLeavesNothingBehind) {
  Cache cache(options(1000));
  {
    const Turn turn = cache.take_turn(key_);
    EXPECT_TRUE(turn.exclusive());
    EXPECT_FALSE(turn.hit);
    const auto record = read_bytes(lock_path());
    const std::string text(reinterpret_cast<const char*>(record.data()), record.size());
    EXPECT_THAT(text, HasSubstr("process " + std::to_string(::getpid()) + " on "));
    EXPECT_THAT(text, HasSubstr(" since 2"));
    EXPECT_EQ(text.size(), lock_record_bytes);
  }
  EXPECT_FALSE(std::filesystem::exists(lock_path()));
  EXPECT_EQ(cache.counters(), (CounterValues{.turns = 1, .turns_taken = 1}));
}

TEST_F(TurnTest, WhatSomebodyPublishedSinceTheLookupNeedsNoCompile) {
  Cache cache(options(1000));
  EXPECT_FALSE(cache.lookup(key_));
  ASSERT_TRUE(open_cache(root_).publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
  const Turn turn = cache.take_turn(key_);
  ASSERT_TRUE(turn.hit);
  EXPECT_TRUE(same_bytes(turn.hit->entry().code_object, code_));
  EXPECT_FALSE(turn.exclusive());
  EXPECT_EQ(cache.counters().turns_answered, 1U);
}

// The holder publishes while we wait: no wait for its lock to be given back.
TEST_F(TurnTest, AWaiterTakesWhatTheHolderPublishes) {
  Cache holder(options(0));
  Cache waiter(options(20'000));
  const Turn held = holder.take_turn(key_);
  ASSERT_TRUE(held.exclusive());
  std::jthread publisher([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    EXPECT_TRUE(holder.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
  });
  const Turn turn = waiter.take_turn(key_);
  EXPECT_TRUE(turn.hit);
  EXPECT_EQ(waiter.counters().turns_answered, 1U);
  EXPECT_EQ(waiter.counters().turns_waited, 1U);
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_[0], HasSubstr("process " + std::to_string(::getpid())));
  EXPECT_THAT(told_[0], HasSubstr("waiting for it, 20 s at most"));
}

TEST_F(TurnTest, AHolderThatGivesUpPassesTheTurnOn) {
  Cache holder(options(0));
  Cache waiter(options(20'000));
  auto held = std::make_unique<Turn>(holder.take_turn(key_));
  std::jthread leaver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    held.reset();
  });
  const Turn turn = waiter.take_turn(key_);
  EXPECT_FALSE(turn.hit);
  EXPECT_TRUE(turn.exclusive());
}

// Stopped as by SIGSTOP or a debugger: the kernel keeps its lock, we do not keep waiting.
TEST_F(TurnTest, AStoppedHolderIsWaitedForAsLongAsWeSaidAndNamed) {
  Holder holder = hold();
  ASSERT_EQ(::kill(holder.process, SIGSTOP), 0);
  Cache cache(options(80));
  const auto start = Clock::now();
  const Turn turn = cache.take_turn(key_);
  const auto waited = Clock::now() - start;
  EXPECT_GE(waited, std::chrono::milliseconds(80));
  EXPECT_LT(waited, std::chrono::seconds(5));
  EXPECT_FALSE(turn.hit || turn.exclusive());
  EXPECT_EQ(cache.counters().turns_timed_out, 1U);
  ASSERT_EQ(told_.size(), 2U);
  EXPECT_THAT(told_[1], HasSubstr("process " + std::to_string(holder.process)));
  EXPECT_THAT(told_[1], HasSubstr("still holds"));
  // It published in the end, all the same.
  EXPECT_TRUE(cache.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
  ::kill(holder.process, SIGCONT);
  holder.release();
  expect_adds_up(cache.counters());
}

TEST_F(TurnTest, AWaitOfNothingNeverWaits) {
  Holder holder = hold();
  Cache cache(options(0));
  EXPECT_FALSE(cache.take_turn(key_).exclusive());
  EXPECT_EQ(cache.counters().turns_timed_out, 1U);
  EXPECT_EQ(cache.counters().turns_waited, 0U);
  holder.release();
}

TEST_F(TurnTest, AKilledHolderIsNotWaitedFor) {
  Holder holder = hold();
  ASSERT_EQ(::kill(holder.process, SIGKILL), 0);
  holder.release();
  EXPECT_TRUE(std::filesystem::exists(lock_path())) << "it could not tidy up";
  Cache cache(options(60'000));
  EXPECT_TRUE(cache.take_turn(key_).exclusive());
  EXPECT_EQ(cache.counters().turns_waited, 0U);
  EXPECT_FALSE(std::filesystem::exists(lock_path()));
}

// A child of fork() has the parent's lock open; the parent's end of turn counts all the same.
TEST_F(TurnTest, AForkedChildDoesNotKeepTheLock) {
  Cache cache(options(0));
  auto turn = std::make_unique<Turn>(cache.take_turn(key_));
  ASSERT_TRUE(turn->exclusive());
  int stop[2];
  ASSERT_EQ(::pipe(stop), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    ::close(stop[1]);
    char byte = 0;
    (void)!::read(stop[0], &byte, 1);
    turn.reset();  // must not remove a lock that is by now somebody else's
    ::_exit(0);
  }
  ::close(stop[0]);
  turn.reset();
  const Turn next = cache.take_turn(key_);
  EXPECT_TRUE(next.exclusive());
  ::close(stop[1]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(std::filesystem::exists(lock_path()));
}

// Whatever lies in the lock's place: work without it, at once, never through it.
TEST_F(TurnTest, AStrangeLockFileIsNoLock) {
  std::filesystem::create_directories(std::filesystem::path(lock_path()).parent_path());
  for (const char* kind : {"folder", "link", "pipe", "unreadable"}) {
    SCOPED_TRACE(kind);
    std::filesystem::remove_all(lock_path());
    const std::string elsewhere = scratch_ / "elsewhere";
    const std::string text = kind;
    if (text == "folder") std::filesystem::create_directory(lock_path());
    if (text == "link") std::filesystem::create_symlink(elsewhere, lock_path());
    if (text == "pipe") ASSERT_EQ(::mkfifo(lock_path().c_str(), 0600), 0);
    class UnreadableIo : public PassingIo {
      IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
        if (path.contains(lock_prefix)) return std::unexpected(EACCES);
        return PassingIo::open(path, flags, mode);
      }
    } unreadable;
    Cache cache(options(60'000, text == "unreadable" ? &unreadable : nullptr));
    const Turn turn = cache.take_turn(key_);
    EXPECT_FALSE(turn.exclusive());
    EXPECT_EQ(cache.counters().turns_unlocked, 1U);
    EXPECT_FALSE(std::filesystem::exists(elsewhere));
  }
}

TEST_F(TurnTest, AnEmptyOrForeignRecordIsShownHarmlessly) {
  EXPECT_EQ(holder_text(""), "an unknown process (the lock file names none)");
  EXPECT_EQ(holder_text("  \n rest"), "an unknown process (the lock file names none)");
  EXPECT_EQ(holder_text("a\x1b[31mb\xff \n"), "a?[31mb?");
  EXPECT_LE(holder_text(std::string(10'000, 'x')).size(), lock_record_bytes);
}

TEST_F(TurnTest, AFileSystemWithoutLocksOnlyLosesTheSaving) {
  class UnlockableIo : public PassingIo {
    IoResult<void> try_lock(int) override { return std::unexpected(ENOLCK); }
  } io;
  Cache cache(options(60'000, &io));
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(cache.take_turn(sample_key(std::to_string(i))).exclusive());
  EXPECT_EQ(cache.counters().turns_unlocked, 3U);
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(TurnTest, ReadOnlyAndOffTakeNoLocks) {
  for (const Mode mode : {Mode::read_only, Mode::off}) {
    CacheOptions quiet = options(1000);
    quiet.mode = mode;
    Cache cache(quiet);
    EXPECT_FALSE(cache.take_turn(key_).exclusive());
    EXPECT_FALSE(std::filesystem::exists(root_));
  }
}

// The cold start of a service: many processes need one key at the same moment. `compile` is a wait and a publish.
struct Storm {
  int compiles = 0;
  int different = 0;
  int failures = 0;
};

Storm storm(const std::string& root, int processes, bool locks) {
  struct Shared {
    std::atomic<int> ready{0};
    std::atomic<int> compiles{0};
    std::atomic<int> different{0};
  };
  auto* shared =
      static_cast<Shared*>(::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  new (shared) Shared;
  const auto code = sample_code(60'000);
  std::vector<pid_t> children;
  for (int i = 0; i < processes; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      class UnlockableIo : public PassingIo {
        IoResult<void> try_lock(int) override { return std::unexpected(ENOLCK); }
      } unlockable;
      Cache cache({.layers = {{.name = "user", .root = root, .writable = true}},
                   .io = locks ? nullptr : &unlockable,
                   .lock_wait_nanoseconds = 60'000 * millisecond});
      const Key key = sample_key();
      ++shared->ready;
      while (shared->ready < processes) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      auto hit = cache.lookup(key);
      if (!hit) {
        Turn turn = cache.take_turn(key);
        hit = std::move(turn.hit);
        if (!hit) {
          ++shared->compiles;
          std::this_thread::sleep_for(std::chrono::milliseconds(30));
          if (!cache.publish(key, {.kernels = sample_kernels(), .code_object = code}).published) ::_exit(1);
        }
      }
      if (hit && !same_bytes(hit->entry().code_object, code)) ++shared->different;
      ::_exit(0);
    }
    children.push_back(child);
  }
  Storm result;
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    result.failures += WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : 1;
  }
  result.compiles = shared->compiles;
  result.different = shared->different;
  ::munmap(shared, sizeof(Shared));
  return result;
}

TEST_F(TurnTest, SixtyFourProcessesCompileOnce) {
  const Storm result = storm(root_, 64, true);
  EXPECT_EQ(result.failures, 0);
  EXPECT_EQ(result.different, 0);
  EXPECT_EQ(result.compiles, 1);
}

TEST_F(TurnTest, SixtyFourProcessesWithoutLocksCompileAtMostOnceEach) {
  const Storm result = storm(root_, 64, false);
  EXPECT_EQ(result.failures, 0);
  EXPECT_EQ(result.different, 0);
  EXPECT_GE(result.compiles, 1);
  EXPECT_LE(result.compiles, 64);
}

}  // namespace
}  // namespace wavejit::cache
