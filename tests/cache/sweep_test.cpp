// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The size limit: what goes, what stays, when, and that nobody who reads is hurt.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "cache/cache.h"
#include "cache/files.h"
#include "cache/lock.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t second = nanoseconds_per_second;
constexpr std::int64_t start_of_time = 1'800'000'000 * second;

class ClockIo : public PassingIo {
 public:
  std::int64_t now = start_of_time;
  std::int64_t now_unix_nanoseconds() override { return now; }
};

class SweepTest : public ::testing::Test {
 protected:
  CacheOptions options(std::uint64_t limit, std::int64_t minimum_age = 60 * second) {
    return {.layers = {{.name = "user", .root = root_, .writable = true}},
            .io = &io_,
            .limit_bytes = limit,
            .minimum_age_nanoseconds = minimum_age};
  }
  static Key nth(int i) { return sample_key(" number " + std::to_string(i)); }
  // An entry of about 1 KB, published and last read this many seconds before now.
  void put(int i, std::int64_t published_ago, std::int64_t used_ago) {
    ASSERT_TRUE(open_cache(root_).publish(nth(i), {.kernels = sample_kernels(), .code_object = code_}).published);
    set_times(path_of(root_, nth(i)), published_ago, used_ago);
  }
  void set_times(const std::string& path, std::int64_t modified_ago, std::int64_t accessed_ago) {
    const auto time = [&](std::int64_t ago) { return timespec{(io_.now - ago * second) / second, 0}; };
    const timespec times[2] = {time(accessed_ago), time(modified_ago)};
    ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
  }
  bool there(int i) const { return std::filesystem::exists(path_of(root_, nth(i))); }
  std::uint64_t bytes_there() const {
    std::uint64_t bytes = 0;
    for (const auto& found : std::filesystem::recursive_directory_iterator(root_)) {
      std::error_code gone;
      const std::uintmax_t size = found.is_regular_file(gone) ? found.file_size(gone) : 0;
      if (!gone) bytes += size;
    }
    return bytes;
  }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  std::vector<std::byte> code_ = sample_code(1000);
  ClockIo io_;
};

TEST_F(SweepTest, WhatWasUsedLongestAgoGoesFirst) {
  put(0, 9000, 100);   // old, but read lately
  put(1, 5000, 5000);  // goes first
  put(2, 4000, 4000);  // second
  put(3, 300, 300);
  const std::uint64_t each = std::filesystem::file_size(path_of(root_, nth(0)));
  Cache cache(options(0));
  const auto result = cache.sweep(each * 5 / 2);
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.entries, 4U);
  EXPECT_EQ(result.bytes, 4 * each);
  EXPECT_EQ(result.evicted, 2U);
  EXPECT_EQ(result.evicted_bytes, 2 * each);
  EXPECT_TRUE(there(0) && !there(1) && !there(2) && there(3));
  EXPECT_EQ(cache.counters(), (CounterValues{.sweeps = 1, .evicted = 2, .evicted_bytes = 2 * each}));
}

TEST_F(SweepTest, BelowTheLimitNothingGoes) {
  for (int i = 0; i < 5; ++i) put(i, 1000, 1000);
  Cache cache(options(0));
  EXPECT_EQ(cache.sweep(bytes_there()).evicted, 0U);
  EXPECT_EQ(cache.sweep(0).evicted, 0U) << "no limit";
  EXPECT_EQ(files_below(root_).entries.size(), 5U);
}

TEST_F(SweepTest, WhatWasJustPublishedStaysWhateverTheLimit) {
  for (int i = 0; i < 5; ++i) put(i, 59, 59);
  put(5, 61, 61);
  Cache cache(options(0));
  EXPECT_EQ(cache.sweep(1).evicted, 1U);
  EXPECT_FALSE(there(5));
  EXPECT_EQ(files_below(root_).entries.size(), 5U);
  io_.now += 2 * second;
  EXPECT_EQ(cache.sweep(1).evicted, 5U);
}

// Clocks: a jump forward makes everything old, which evicts no more than the limit asks; entries from the future (a
// jump back, another host's clock) are not young for ever.
TEST_F(SweepTest, ClockJumpsEvictNoMoreThanTheLimitAsks) {
  for (int i = 0; i < 10; ++i) put(i, 100 + i, 100 + i);
  const std::uint64_t each = std::filesystem::file_size(path_of(root_, nth(0)));
  Cache cache(options(0));
  io_.now += 365 * 86'400 * second;
  EXPECT_EQ(cache.sweep(10 * each).evicted, 0U);
  EXPECT_EQ(cache.sweep(9 * each).evicted, 2U) << "a tenth more than needed";
  io_.now = start_of_time - 10 * 86'400 * second;
  EXPECT_EQ(cache.sweep(8 * each).evicted, 0U);
  EXPECT_EQ(cache.sweep(4 * each).evicted, 5U);
}

TEST_F(SweepTest, EntriesFromTheFutureAndFromTheEpochGoToo) {
  put(0, -86'400, -86'400);
  put(1, start_of_time / second, start_of_time / second);
  put(2, 100, 100);
  const std::uint64_t each = std::filesystem::file_size(path_of(root_, nth(0)));
  Cache cache(options(0));
  EXPECT_EQ(cache.sweep(each * 5 / 2).evicted, 1U);
  EXPECT_FALSE(there(1)) << "of 1970";
  EXPECT_EQ(cache.sweep(each * 3 / 2).evicted, 1U);
  EXPECT_FALSE(there(2));
  EXPECT_EQ(cache.sweep(1).evicted, 1U);
  EXPECT_FALSE(there(0)) << "of tomorrow, last";
}

TEST_F(SweepTest, LeftoversOfTheKilledGoAfterAnHour) {
  put(0, 100, 100);
  const std::string shelf = parent_of(path_of(root_, nth(0)));
  const auto leave = [&](const std::string& name, std::int64_t ago) {
    write_bytes(shelf + "/" + name, code_);
    set_times(shelf + "/" + name, ago, ago);
  };
  leave(".tmp-old", 3601);
  leave(".tmp-new", 3500);
  leave(".lock-old", 3601);
  leave(".lock-new", 3500);
  leave("notes.txt", 999'999);
  leave(".lock-held", 3601);
  const int held = ::open((shelf + "/.lock-held").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_TRUE(posix_io().try_lock(held));
  Cache cache(options(0));
  const auto result = cache.sweep(0);
  EXPECT_EQ(result.leftovers_removed, 2U);
  EXPECT_EQ(result.failures, 0U);
  for (const char* stays : {".tmp-new", ".lock-new", "notes.txt", ".lock-held"})
    EXPECT_TRUE(std::filesystem::exists(shelf + "/" + stays)) << stays;
  for (const char* goes : {".tmp-old", ".lock-old"}) EXPECT_FALSE(std::filesystem::exists(shelf + "/" + goes)) << goes;
  EXPECT_TRUE(there(0));
  ::close(held);
}

// Only entries of this format's folder: not other versions', not strangers, not what a link leads to.
TEST_F(SweepTest, OnlyEntriesAreEvicted) {
  put(0, 1000, 1000);
  const std::string other = root_ + "/v0/gfx950/ab/" + nth(0).hex() + ".wavejit";
  std::filesystem::create_directories(parent_of(other));
  write_bytes(other, code_);
  const std::string outside = scratch_ / "outside";
  write_bytes(outside, code_);
  const std::string link = path_of(root_, nth(1));
  std::filesystem::create_directories(parent_of(link));
  std::filesystem::create_symlink(outside, link);
  Cache cache(options(0, 0));
  EXPECT_EQ(cache.sweep(1).evicted, 2U);
  EXPECT_TRUE(std::filesystem::exists(other));
  EXPECT_TRUE(std::filesystem::exists(outside));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(link)));
}

TEST_F(SweepTest, LayersAreNotSwept) {
  const std::string image = scratch_ / "image";
  ASSERT_TRUE(open_cache(image).publish(nth(0), {.kernels = sample_kernels(), .code_object = code_}).published);
  const auto before = picture_of(image);
  CacheOptions both = options(0, 0);
  both.layers.insert(both.layers.begin(), {.name = "image", .root = image, .writable = false});
  Cache cache(both);
  put(1, 100, 100);
  EXPECT_EQ(cache.sweep(1).evicted, 1U);
  EXPECT_EQ(picture_of(image), before);
}

TEST_F(SweepTest, TwoSweepsAtOnceAreOne) {
  put(0, 100, 100);
  const std::string lock = root_ + "/v1/.lock-sweep";
  const int held = ::open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_TRUE(posix_io().try_lock(held));
  class HurriedIo : public ClockIo {  // two seconds are over soon
    std::int64_t monotonic_nanoseconds() override { return 100 * PassingIo::monotonic_nanoseconds(); }
  } io;
  CacheOptions hurried = options(0);
  hurried.io = &io;
  Cache cache(hurried);
  const auto result = cache.sweep(1);
  EXPECT_FALSE(result.complete);
  EXPECT_THAT(result.reason, HasSubstr("another process sweeps"));
  EXPECT_TRUE(there(0));
  ::close(held);
}

// Somebody publishes an entry anew between our look and our knife.
TEST_F(SweepTest, AnEntryPublishedAnewMeanwhileStays) {
  class RepublishingIo : public ClockIo {
   public:
    std::function<void()> before_second_look;
    IoResult<FileStatus> lstat(const std::string& path) override {
      if (++looks_ == 2) before_second_look();
      return ClockIo::lstat(path);
    }

   private:
    int looks_ = 0;
  } io;
  put(0, 1000, 1000);
  io.before_second_look = [&] {
    ASSERT_TRUE(open_cache(root_).publish(nth(0), {.kernels = sample_kernels(), .code_object = code_}).published);
  };
  CacheOptions republishing = options(0);
  republishing.io = &io;
  Cache cache(republishing);
  EXPECT_EQ(cache.sweep(1).evicted, 0U);
  EXPECT_TRUE(there(0));
}

// A reader in the middle of a file that goes: POSIX keeps its bytes.
TEST_F(SweepTest, AnEntryUnlinkedUnderAReaderIsReadToItsEnd) {
  class SweepingIo : public ClockIo {
   public:
    std::function<void()> in_the_middle;
    IoResult<std::size_t> read(int file, void* bytes, std::size_t size) override {
      if (++reads_ == 2 && in_the_middle) in_the_middle();
      return ClockIo::read(file, bytes, std::min<std::size_t>(size, 300));
    }

   private:
    int reads_ = 0;
  } io;
  put(0, 1000, 1000);
  Cache sweeper(options(0, 0));
  io.in_the_middle = [&] { EXPECT_EQ(sweeper.sweep(1).evicted, 1U); };
  CacheOptions reading = options(0);
  reading.io = &io;
  Cache cache(reading);
  const auto hit = cache.lookup(nth(0));
  ASSERT_TRUE(hit);
  EXPECT_TRUE(same_bytes(hit->entry().code_object, code_));
  EXPECT_FALSE(there(0));
  EXPECT_FALSE(cache.lookup(nth(0)));
}

// The limit is kept behind publishes, in another thread than theirs.
TEST_F(SweepTest, PublishesKeepTheLimitAtRest) {
  constexpr std::uint64_t limit = 100'000;
  class ThreadIo : public PassingIo {
   public:
    std::thread::id publisher = std::this_thread::get_id();
    std::atomic<int> unlinked_by_publisher{0};
    IoResult<void> unlink(const std::string& path) override {
      if (std::this_thread::get_id() == publisher && path.ends_with(entry_suffix)) ++unlinked_by_publisher;
      return PassingIo::unlink(path);
    }
  } io;
  CacheOptions bounded = options(limit, 0);
  bounded.io = &io;
  {
    Cache cache(bounded);
    for (int i = 0; i < 300; ++i) {
      ASSERT_TRUE(cache.publish(nth(i), {.kernels = sample_kernels(), .code_object = code_}).published);
    }
    const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while ((bytes_there() > limit + limit / 10 || cache.counters().evicted < 100) &&
           std::chrono::steady_clock::now() < give_up)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    EXPECT_LE(bytes_there(), limit + limit / 10);
    EXPECT_GE(cache.counters().sweeps, 2U);
    EXPECT_GE(cache.counters().evicted, 100U);
  }
  EXPECT_EQ(io.unlinked_by_publisher, 0);
  EXPECT_FALSE(files_below(root_).entries.empty());
}

// A sweep under way does not hold up the end of a process.
TEST_F(SweepTest, TheEndOfACacheWaitsAQuarterOfASecondAtMost) {
  class SlowIo : public PassingIo {
   public:
    IoResult<FileStatus> lstat(const std::string& path) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return PassingIo::lstat(path);
    }
  } io;
  for (int i = 0; i < 200; ++i) put(i, 1000, 1000);
  CacheOptions slow = options(1'000'000, 0);
  slow.io = &io;
  const auto begin = std::chrono::steady_clock::now();
  {
    Cache cache(slow);
    ASSERT_TRUE(cache.publish(nth(1000), {.kernels = sample_kernels(), .code_object = code_}).published);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

TEST_F(SweepTest, WithoutAFolderThereIsNothingToSweep) {
  Cache nowhere({.layers = {}, .io = &io_});
  EXPECT_THAT(nowhere.sweep(1).reason, HasSubstr("no folder"));
  CacheOptions reading = options(0);
  reading.mode = Mode::read_only;
  put(0, 1000, 1000);
  EXPECT_FALSE(Cache(reading).sweep(1).complete);
  EXPECT_TRUE(there(0));
  std::filesystem::remove_all(root_);
  Cache empty(options(0));
  EXPECT_TRUE(empty.sweep(1).complete);
  EXPECT_FALSE(std::filesystem::exists(root_));
}

}  // namespace
}  // namespace wavejit::cache
