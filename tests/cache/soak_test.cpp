// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Random readers, writers and evictors, threads and processes, on one folder with a small limit and no minimum age:
// what is found is right, the folder stays small, the counters add up.
//
//   cache_soak_tests --operations=1000000     (20000 unless told)
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <random>
#include <string_view>
#include <thread>

#include "cache/cache.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

std::uint64_t operations = 20'000;

constexpr std::uint64_t limit = std::uint64_t{1} << 20;
constexpr int processes = 4;
constexpr int threads = 4;
constexpr int keys = 300;  // several limits' worth

std::vector<std::byte> code_of(int key) {
  return sample_code(2000 + 53 * static_cast<std::size_t>(key), static_cast<std::uint32_t>(key));
}
Key nth_key(int key) { return sample_key(" number " + std::to_string(key)); }

bool adds_up(const CounterValues& c) {
  return c.lookups == c.hits + c.misses && c.hits == c.layer_hits + c.user_hits + c.memory_hits &&
         c.misses == c.absent && c.publishes == c.published &&
         c.turns == c.turns_taken + c.turns_answered + c.turns_timed_out + c.turns_unlocked &&
         c.damaged + c.refused + c.read_faults + c.publish_failures + c.turns_timed_out + c.turns_unlocked +
                 c.sweep_faults ==
             0;
}

// 0 if nothing was ever wrong, else the number of what was.
int one_process(const std::string& root, std::uint32_t seed, std::uint64_t share) {
  PassingIo quick;  // syncs nothing: a million operations would mostly wait for a disk
  Cache cache({.layers = {{.name = "user", .root = root, .writable = true}},
               .io = &quick,
               .lock_wait_nanoseconds = 30 * nanoseconds_per_second,
               .limit_bytes = limit,
               .minimum_age_nanoseconds = 0});
  std::atomic<int> wrong{0};
  {
    std::vector<std::jthread> pool;
    for (int thread = 0; thread < threads; ++thread) {
      pool.emplace_back([&, thread] {
        std::minstd_rand random(seed * 31 + static_cast<std::uint32_t>(thread));
        for (std::uint64_t i = 0; i < share / threads && wrong == 0; ++i) {
          const int number = static_cast<int>(random() % keys);
          const Key key = nth_key(number);
          const std::uint32_t what = random() % 100;
          if (what < 70) {
            const auto hit = cache.lookup(key);
            if (hit && !same_bytes(hit->entry().code_object, code_of(number))) wrong = 1;
          } else if (what < 90) {
            Turn turn = cache.take_turn(key);
            if (turn.hit) {
              if (!same_bytes(turn.hit->entry().code_object, code_of(number))) wrong = 2;
            } else if (!cache.publish(key, {.kernels = sample_kernels(), .code_object = code_of(number)}).published) {
              wrong = 3;
            }
          } else if (what < 99) {
            if (!cache.publish(key, {.kernels = sample_kernels(), .code_object = code_of(number)}).published) wrong = 4;
          } else {
            const auto swept = cache.sweep(limit);
            if (swept.complete && swept.failures != 0) wrong = 5;
          }
        }
      });
    }
  }
  if (wrong == 0 && !adds_up(cache.counters())) wrong = 6;
  return wrong;
}

TEST(SoakTest, ReadersWritersAndEvictors) {
  const ScratchDirectory scratch;
  const std::string root = scratch / "cache";
  std::vector<pid_t> children;
  for (std::uint32_t process = 1; process <= processes; ++process) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(one_process(root, process, operations / processes));
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  const FilesBelow files = files_below(root);
  EXPECT_TRUE(files.temporaries.empty());
  EXPECT_TRUE(files.strangers.empty());
  Cache after({.layers = {{.name = "user", .root = root, .writable = true}}, .minimum_age_nanoseconds = 0});
  std::uint64_t bytes = 0;
  EXPECT_TRUE(after.visit([&](const Visited& visited) {
    EXPECT_EQ(visited.damage, "");
    bytes += visited.file_bytes;
  }));
  // A process that ends does not wait for its last sweep; all the keys would be three limits.
  EXPECT_LE(bytes, 2 * limit);
  const auto swept = after.sweep(limit);
  EXPECT_TRUE(swept.complete);
  EXPECT_LE(swept.bytes - swept.evicted_bytes, limit);
  EXPECT_GT(swept.entries - swept.evicted, 0U);
}

}  // namespace
}  // namespace wavejit::cache

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    constexpr std::string_view option = "--operations=";
    if (argument.starts_with(option)) wavejit::cache::operations = std::strtoull(argv[i] + option.size(), nullptr, 10);
  }
  return RUN_ALL_TESTS();
}
