// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Threads and processes on one key and one directory: every hit is one writer's bytes, whole.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "cache/cache.h"
#include "cache_test_support.h"

namespace wavejit::cache {
namespace {

constexpr std::uint32_t writers = 16;
constexpr int rounds = 40;

// Each writer's code has its own length and bytes, so that a mixture of two is no writer's.
std::vector<std::byte> code_of(std::uint32_t writer) { return sample_code(3000 + writer * 1111, writer); }

bool some_writers_code(std::span<const std::byte> code) {
  for (std::uint32_t writer = 0; writer < writers; ++writer) {
    if (same_bytes(code, code_of(writer))) return true;
  }
  return false;
}

// True if every publish succeeded and, after the first, every lookup hit.
bool publish_and_look_up(Cache& cache, std::uint32_t writer) {
  const Key key = sample_key();
  const auto code = code_of(writer);
  for (int round = 0; round < rounds; ++round) {
    if (!cache.publish(key, {.kernels = sample_kernels(), .code_object = code}).published) return false;
    const auto hit = cache.lookup(key);
    if (!hit || !some_writers_code(hit->entry().code_object)) return false;
  }
  return true;
}

TEST(ConcurrencyTest, EightProcessesAndEightThreadsOnOneKey) {
  const ScratchDirectory scratch;
  const std::string root = scratch / "cache";
  std::vector<pid_t> children;
  for (std::uint32_t writer = 0; writer < 8; ++writer) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Cache cache = open_cache(root);
      ::_exit(publish_and_look_up(cache, writer) ? 0 : 1);
    }
    children.push_back(child);
  }
  Cache cache = open_cache(root);
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t writer = 8; writer < 16; ++writer) {
      threads.emplace_back([&, writer] { good += publish_and_look_up(cache, writer) ? 1 : 0; });
    }
  }
  EXPECT_EQ(good, 8);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  const std::uint64_t total = 8ULL * rounds;
  EXPECT_EQ(
      cache.counters(),
      (CounterValues{.lookups = total, .hits = total, .user_hits = total, .publishes = total, .published = total}));
  const FilesBelow files = files_below(root);
  EXPECT_EQ(files.entries.size(), 1U);
  EXPECT_TRUE(files.temporaries.empty());
  EXPECT_TRUE(files.strangers.empty());
}

// Somebody clears the directory all the time: misses and failed publishes, nothing worse.
TEST(ConcurrencyTest, DirectoryRemovedWhileInUse) {
  const ScratchDirectory scratch;
  const std::string root = scratch / "cache";
  Cache cache = open_cache(root);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  {
    const std::jthread remover([&] {
      while (!stop) {
        std::error_code ignored;
        std::filesystem::remove_all(root, ignored);
      }
    });
    std::vector<std::jthread> threads;
    for (std::uint32_t writer = 0; writer < 4; ++writer) {
      threads.emplace_back([&, writer] {
        const Key key = sample_key();
        const auto code = code_of(writer);
        for (int round = 0; round < rounds; ++round) {
          (void)cache.publish(key, {.kernels = sample_kernels(), .code_object = code});
          const auto hit = cache.lookup(key);
          if (hit && !some_writers_code(hit->entry().code_object)) ++wrong;
        }
      });
    }
    threads.clear();
    stop = true;
  }
  EXPECT_EQ(wrong, 0);
  const CounterValues counters = cache.counters();
  EXPECT_EQ(counters.damaged, 0U);
  EXPECT_EQ(counters.lookups, counters.hits + counters.misses);
  EXPECT_EQ(counters.publishes, counters.published + counters.publish_failures);
  EXPECT_TRUE(cache.publish(sample_key(), {.kernels = sample_kernels(), .code_object = code_of(0)}).published);
}

// Cold start of a large process: 64 threads, each the first to need its key, all of the path at once.
TEST(ConcurrencyTest, SixtyFourThreadsAndSixtyFourKeys) {
  const ScratchDirectory scratch;
  MemoryLayer memory(std::size_t{1} << 20);
  Cache cache({.layers = {{.name = "user", .root = scratch / "cache", .writable = true}},
               .memory = &memory,
               .lock_wait_nanoseconds = 300 * nanoseconds_per_second,
               .limit_bytes = 1'000'000,
               .minimum_age_nanoseconds = 60 * nanoseconds_per_second});
  constexpr int keys = 64;
  std::atomic<int> good{0};
  std::atomic<int> compiles{0};
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < keys; ++thread) {
      threads.emplace_back([&, thread] {
        for (int i = 0; i < keys; ++i) {
          const int number = (thread + i) % keys;
          const Key key = sample_key(std::to_string(number));
          const auto code = sample_code(1000 + static_cast<std::size_t>(number), static_cast<std::uint32_t>(number));
          auto hit = cache.lookup(key);
          if (!hit) {
            Turn turn = cache.take_turn(key);
            hit = std::move(turn.hit);
            if (!hit) {
              ++compiles;
              if (!cache.publish(key, {.kernels = sample_kernels(), .code_object = code}).published) return;
              hit = cache.lookup(key);
            }
          }
          if (!hit || !same_bytes(hit->entry().code_object, code)) return;
        }
        ++good;
      });
    }
  }
  EXPECT_EQ(good, keys);
  EXPECT_EQ(compiles, keys) << "each key once";
  const CounterValues c = cache.counters();
  EXPECT_EQ(c.lookups, c.hits + c.misses);
  EXPECT_EQ(c.hits, c.layer_hits + c.user_hits + c.memory_hits);
  EXPECT_EQ(c.turns, c.turns_taken + c.turns_answered + c.turns_timed_out + c.turns_unlocked);
  EXPECT_EQ(c.turns_taken, static_cast<std::uint64_t>(keys));
  EXPECT_EQ(c.published, static_cast<std::uint64_t>(keys));
}

}  // namespace
}  // namespace wavejit::cache
