// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Layers besides the happy path: folders that must not be used, disks that cannot be written, memory.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cache/cache.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;

class LayersTest : public ::testing::Test {
 protected:
  CacheOptions options(IoInterface* io = nullptr) {
    return {.layers = {{.name = "user", .root = root_, .writable = true}},
            .mode = Mode::read_write,
            .io = io,
            .on_event = [this](const Event& event) { told_.push_back(event.what); },
            .memory = &memory_};
  }
  PublishResult publish(Cache& cache) {
    return cache.publish(key_, {.kernels = sample_kernels(), .code_object = code_});
  }
  // Nothing of the folder is believed or touched; kernels live in memory; one line says why.
  void expect_memory_only(IoInterface* io, const std::string& why) {
    const auto before = picture_of(root_);
    Cache cache(options(io));
    EXPECT_FALSE(cache.lookup(key_));
    const auto result = publish(cache);
    EXPECT_FALSE(result.published);
    EXPECT_TRUE(result.kept_in_memory);
    EXPECT_THAT(result.reason, HasSubstr(why));
    const auto hit = cache.lookup(key_);
    ASSERT_TRUE(hit);
    EXPECT_EQ(hit->layer(), "memory");
    EXPECT_TRUE(same_bytes(hit->entry().code_object, code_));
    EXPECT_FALSE(cache.take_turn(key_).exclusive());
    EXPECT_FALSE(cache.drop(key_));
    EXPECT_FALSE(cache.sweep(1).complete);
    EXPECT_EQ(picture_of(root_), before);
    const CounterValues counters = cache.counters();
    EXPECT_EQ(counters.memory_hits, 1U);
    EXPECT_EQ(counters.kept_in_memory, 1U);
    EXPECT_EQ(counters.publish_failures, 1U);
    EXPECT_GE(told_.size(), 1U);
    EXPECT_THAT(told_.front(), HasSubstr(why));
    EXPECT_THAT(told_.front(), HasSubstr("in this process"));
  }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "user";
  Key key_ = sample_key();
  std::vector<std::byte> code_ = sample_code(1000);
  MemoryLayer memory_{std::size_t{1} << 20};
  std::vector<std::string> told_;
};

TEST_F(LayersTest, AFolderThatItsGroupMayWriteToIsNotUsed) {
  ASSERT_TRUE(open_cache(root_).publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
  ASSERT_EQ(::chmod(root_.c_str(), 0770), 0);
  expect_memory_only(nullptr, "its group may write to it");
}

TEST_F(LayersTest, AFolderThatEverybodyMayWriteToIsNotUsed) {
  ASSERT_TRUE(open_cache(root_).publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
  ASSERT_EQ(::chmod(root_.c_str(), 01777), 0);
  expect_memory_only(nullptr, "everybody may write to it");
}

class OwnedIo : public PassingIo {
 public:
  IoResult<FileStatus> stat(const std::string& path) override {
    auto status = PassingIo::stat(path);
    if (status) status->owner = 1001;
    return status;
  }
  std::uint32_t effective_user() override { return 1000; }
};

TEST_F(LayersTest, SomebodyElsesFolderIsNotUsed) {
  std::filesystem::create_directories(root_);
  OwnedIo io;
  expect_memory_only(&io, "it belongs to user 1001");
}

// The line is said once a cache, not once a lookup or publish.
TEST_F(LayersTest, TheReasonIsSaidOnce) {
  std::filesystem::create_directories(root_);
  ASSERT_EQ(::chmod(root_.c_str(), 0777), 0);
  Cache cache(options());
  for (int i = 0; i < 5; ++i) EXPECT_FALSE(cache.lookup(sample_key(std::to_string(i))));
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_THAT(told_[0], HasSubstr(root_));
}

class ReadOnlyDiskIo : public PassingIo {
 public:
  IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
    if ((flags & O_ACCMODE) != O_RDONLY) return std::unexpected(EROFS);
    return PassingIo::open(path, flags, mode);
  }
  IoResult<void> mkdir(const std::string&, std::uint32_t) override { return std::unexpected(EROFS); }
  IoResult<void> unlink(const std::string&) override { return std::unexpected(EROFS); }
};

TEST_F(LayersTest, AReadOnlyDiskIsReadAndWhatIsNewStaysInMemory) {
  ASSERT_TRUE(open_cache(root_).publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
  ReadOnlyDiskIo io;
  Cache cache(options(&io));
  EXPECT_EQ(cache.lookup(key_)->layer(), "user");
  for (int i = 0; i < 3; ++i) {
    const Key fresh = sample_key(" fresh " + std::to_string(i));
    EXPECT_FALSE(cache.take_turn(fresh).exclusive());
    const auto result = cache.publish(fresh, {.kernels = sample_kernels(), .code_object = code_});
    EXPECT_TRUE(result.kept_in_memory);
    EXPECT_EQ(cache.lookup(fresh)->layer(), "memory");
  }
  EXPECT_EQ(cache.counters().turns_unlocked, 3U);
  EXPECT_EQ(cache.counters().publish_failures, 3U);
  // One line for the locks, one for the publishes.
  ASSERT_EQ(told_.size(), 2U) << ::testing::PrintToString(told_);
  EXPECT_THAT(told_[1], HasSubstr("Read-only file system"));
  EXPECT_THAT(told_[1], HasSubstr("memory"));
}

// The real thing, where the test may mount: a small tmpfs that runs full, then one that is read-only.
TEST_F(LayersTest, AFullAndAReadOnlyFileSystem) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::filesystem::create_directories(root_);
    if (::mount("none", root_.c_str(), "tmpfs", 0, "size=64k,mode=0700") != 0) ::_exit(77);
    int kept = 0;
    int published = 0;
    {
      Cache cache(options());
      for (int i = 0; i < 20; ++i) {
        const auto code = sample_code(8000, static_cast<std::uint32_t>(i));
        const auto result =
            cache.publish(sample_key(std::to_string(i)), {.kernels = sample_kernels(), .code_object = code});
        published += result.published ? 1 : 0;
        kept += result.kept_in_memory ? 1 : 0;
        const auto hit = cache.lookup(sample_key(std::to_string(i)));
        if (!hit || !same_bytes(hit->entry().code_object, code)) ::_exit(2);
      }
      if (cache.counters().damaged != 0 || told_.size() != 1) ::_exit(3);
    }
    if (!files_below(root_).temporaries.empty()) ::_exit(4);
    if (::mount("none", root_.c_str(), "tmpfs", MS_REMOUNT | MS_RDONLY, "") != 0) ::_exit(5);
    {
      Cache cache(options());
      if (!cache.lookup(sample_key("0"))) ::_exit(6);
      if (publish(cache).published) ::_exit(7);
    }
    ::umount(root_.c_str());
    ::_exit(published >= 2 && kept >= 2 && published + kept == 20 ? 0 : 8);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ::umount2(root_.c_str(), MNT_DETACH);
  if (WEXITSTATUS(status) == 77) GTEST_SKIP() << "mounting is not allowed here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST_F(LayersTest, EnginesOfAProcessShareItsMemory) {
  CacheOptions one = options();
  one.layers.clear();
  Cache first(one);
  Cache second(one);
  EXPECT_FALSE(first.lookup(key_));
  const auto result = publish(first);
  EXPECT_EQ(result.reason, "the cache has no writable layer");
  EXPECT_TRUE(result.kept_in_memory);
  EXPECT_TRUE(second.lookup(key_));
  EXPECT_FALSE(second.lookup(Key(key_.text(), "gfx942")));
  EXPECT_EQ(first.counters().publishes_skipped, 1U);
  one.mode = Mode::off;
  Cache off(one);
  EXPECT_FALSE(off.lookup(key_));
  EXPECT_FALSE(publish(off).kept_in_memory);
}

TEST_F(LayersTest, MemoryIsBounded) {
  MemoryLayer memory(10'000);
  std::vector<Digest> names;
  for (int i = 0; i < 100; ++i) {
    names.push_back(digest_of(std::to_string(i)));
    EXPECT_TRUE(memory.keep("gfx950", names.back(), sample_code(1000)));
    EXPECT_LE(memory.bytes(), 10'000U);
  }
  EXPECT_EQ(memory.entries(), 10U);
  EXPECT_EQ(memory.find("gfx950", names[89]), nullptr);
  EXPECT_NE(memory.find("gfx950", names[90]), nullptr);
  EXPECT_TRUE(memory.keep("gfx950", names[99], sample_code(2000)));
  EXPECT_EQ(memory.bytes(), 10'000U);
  EXPECT_FALSE(memory.keep("gfx950", names[0], sample_code(10'001)));
}

// A read-only layer's entry that passed every check and that a driver refuses: the user's own comes next.
TEST_F(LayersTest, LookupGoesOnBehindALayerThatWasOfNoUse) {
  const std::string image = scratch_ / "image";
  Cache image_writer = open_cache(image);
  ASSERT_TRUE(publish(image_writer).published);
  CacheOptions both = options();
  both.layers.insert(both.layers.begin(), {.name = "image", .root = image, .writable = false});
  Cache cache(both);
  const auto first = cache.lookup(key_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->layer(), "image");
  EXPECT_FALSE(cache.lookup(key_, first->layer_index() + 1));
  ASSERT_TRUE(publish(cache).published);
  const auto second = cache.lookup(key_, first->layer_index() + 1);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->layer(), "user");
  EXPECT_FALSE(cache.lookup(key_, second->layer_index() + 1));
}

}  // namespace
}  // namespace wavejit::cache
