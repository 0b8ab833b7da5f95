// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What stands at an entry's path when it is not the entry.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "cache/cache.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class LookupTest : public ::testing::Test {
 protected:
  void publish() { ASSERT_TRUE(cache_.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published); }

  // The thing in the entry's place is a miss of the given sort with one event, and publishing heals it.
  void expect_replaced(std::uint64_t CounterValues::* sort, const std::string& word) {
    std::vector<std::string> events;
    Cache cache({.layers = {{.name = "user", .root = root_, .writable = true}},
                 .mode = Mode::read_write,
                 .io = nullptr,
                 .on_event = [&](const Event& event) { events.push_back(event.what); }});
    EXPECT_FALSE(cache.lookup(key_));
    EXPECT_EQ(cache.counters().*sort, 1U);
    EXPECT_EQ(cache.counters().misses, 1U);
    EXPECT_THAT(events, ElementsAre(HasSubstr(word)));
    EXPECT_TRUE(cache.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
    const auto hit = cache.lookup(key_);
    ASSERT_TRUE(hit);
    EXPECT_TRUE(same_bytes(hit->entry().code_object, code_));
    EXPECT_EQ(cache.counters().hits, 1U);
    EXPECT_EQ(cache.counters().*sort, 1U);
    EXPECT_TRUE(files_below(root_).temporaries.empty());
  }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  Key key_ = sample_key();
  std::vector<std::byte> code_ = sample_code(64 << 10);
  Cache cache_ = open_cache(root_);
  std::string path_ = path_of(root_, key_);
};

TEST_F(LookupTest, FindsWhatWasPublished) {
  EXPECT_FALSE(cache_.lookup(key_));
  publish();
  const auto hit = cache_.lookup(key_);
  ASSERT_TRUE(hit);
  EXPECT_EQ(hit->entry().key_text, key_.text());
  EXPECT_EQ(hit->entry().target_id, "gfx950");
  EXPECT_EQ(hit->entry().kernels, sample_kernels());
  EXPECT_TRUE(same_bytes(hit->entry().code_object, code_));
  EXPECT_EQ(hit->path(), path_);
  EXPECT_EQ(hit->layer(), "user");
  const CounterValues counters = cache_.counters();
  EXPECT_EQ(counters,
            (CounterValues{
                .lookups = 2, .hits = 1, .user_hits = 1, .misses = 1, .absent = 1, .publishes = 1, .published = 1}));
}

TEST_F(LookupTest, AnotherProcessFindsIt) {
  publish();
  EXPECT_TRUE(open_cache(root_).lookup(key_));
}

TEST_F(LookupTest, FoldersAndFilesAreTheUsersOwn) {
  publish();
  const auto permissions = [](const std::string& path) {
    struct stat status{};
    ::stat(path.c_str(), &status);
    return status.st_mode & 07777U;
  };
  EXPECT_EQ(permissions(root_), 0700U);
  EXPECT_EQ(permissions(root_ + "/v1"), 0700U);
  EXPECT_EQ(permissions(path_), 0600U);
}

TEST_F(LookupTest, DamagedEntryIsAMissAndIsReplaced) {
  publish();
  auto bytes = read_bytes(path_);
  bytes[bytes.size() / 2] ^= std::byte{4};
  write_bytes(path_, bytes);
  expect_replaced(&CounterValues::damaged, "the checksum does not match");
}

TEST_F(LookupTest, TruncatedEntryIsAMissAndIsReplaced) {
  publish();
  std::filesystem::resize_file(path_, 100);
  expect_replaced(&CounterValues::damaged, "cut short");
}

TEST_F(LookupTest, EmptyFileIsAMissAndIsReplaced) {
  publish();
  std::filesystem::resize_file(path_, 0);
  expect_replaced(&CounterValues::damaged, "file size is 0");
}

// A sparse gigabyte is refused by its size, without reading or allocating it.
TEST_F(LookupTest, SparseGigabyteIsNotRead) {
  publish();
  std::filesystem::resize_file(path_, std::uintmax_t{1} << 30);
  CountingIo io;
  Cache counted = open_cache(root_, Mode::read_write, &io);
  EXPECT_FALSE(counted.lookup(key_));
  EXPECT_EQ(io.calls(), 4) << "stat of the folder, open, fstat and close";
  expect_replaced(&CounterValues::damaged, "file size is 1073741824");
}

TEST_F(LookupTest, EntryOfAnotherKeyIsAMissAndIsReplaced) {
  const Key other = sample_key(" other");
  ASSERT_TRUE(cache_.publish(other, {.kernels = sample_kernels(), .code_object = code_}).published);
  publish();
  std::filesystem::copy_file(path_of(root_, other), path_, std::filesystem::copy_options::overwrite_existing);
  expect_replaced(&CounterValues::damaged, "another key");
}

// Same text, so the same file name, in another target's folder.
TEST_F(LookupTest, EntryOfAnotherTargetIsAMissAndIsReplaced) {
  const Key other(key_.text(), "gfx942");
  ASSERT_TRUE(cache_.publish(other, {.kernels = sample_kernels(), .code_object = code_}).published);
  publish();
  std::filesystem::copy_file(path_of(root_, other), path_, std::filesystem::copy_options::overwrite_existing);
  expect_replaced(&CounterValues::damaged, "for target 'gfx942', not 'gfx950'");
}

TEST_F(LookupTest, SymbolicLinkIsRefusedAndReplacedNotFollowed) {
  publish();
  const std::string elsewhere = scratch_ / "elsewhere";
  std::filesystem::rename(path_, elsewhere);
  std::filesystem::create_symlink(elsewhere, path_);
  const auto before = read_bytes(elsewhere);
  expect_replaced(&CounterValues::refused, "symbolic link");
  EXPECT_TRUE(same_bytes(read_bytes(elsewhere), before));
  EXPECT_TRUE(std::filesystem::is_regular_file(std::filesystem::symlink_status(path_)));
}

TEST_F(LookupTest, PipeDoesNotBlock) {
  publish();
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  expect_replaced(&CounterValues::refused, "not a regular file");
}

TEST_F(LookupTest, FolderInPlaceOfTheEntryIsAMissAndAFailedPublish) {
  std::filesystem::create_directories(path_);
  EXPECT_FALSE(cache_.lookup(key_));
  EXPECT_EQ(cache_.counters().refused, 1U);
  const auto result = cache_.publish(key_, {.kernels = sample_kernels(), .code_object = code_});
  EXPECT_FALSE(result.published);
  EXPECT_THAT(result.reason, HasSubstr("cannot rename"));
  EXPECT_EQ(cache_.counters().publish_failures, 1U);
  EXPECT_TRUE(files_below(root_).temporaries.empty());
}

TEST_F(LookupTest, FileInPlaceOfAFolderIsAMissAndAFailedPublish) {
  const auto noise = sample_code(10);
  std::filesystem::create_directories(scratch_.path());
  write_bytes(root_, noise);
  EXPECT_FALSE(cache_.lookup(key_));
  EXPECT_FALSE(cache_.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
  EXPECT_TRUE(same_bytes(read_bytes(root_), noise));
}

TEST_F(LookupTest, FileThatEverybodyMayWriteToIsRefusedAndReplaced) {
  publish();
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  expect_replaced(&CounterValues::refused, "everybody may write");
}

class OtherOwnerIo : public PassingIo {
 public:
  explicit OtherOwnerIo(std::uint32_t owner) : owner_(owner) {}
  IoResult<FileStatus> fstat(int file) override {
    auto status = PassingIo::fstat(file);
    if (status) status->owner = owner_;
    return status;
  }
  // The folder is ours.
  IoResult<FileStatus> stat(const std::string& path) override {
    auto status = PassingIo::stat(path);
    if (status) status->owner = effective_user();
    return status;
  }
  std::uint32_t effective_user() override { return 1000; }

 private:
  std::uint32_t owner_;
};

TEST_F(LookupTest, OnlyOursAndRootsFilesAreTrusted) {
  publish();
  for (const auto& [owner, trusted] : {std::pair{0U, true}, std::pair{1000U, true}, std::pair{1001U, false}}) {
    OtherOwnerIo io(owner);
    Cache cache = open_cache(root_, Mode::read_write, &io);
    EXPECT_EQ(cache.lookup(key_).has_value(), trusted) << owner;
    EXPECT_EQ(cache.counters().refused, trusted ? 0U : 1U);
  }
}

// As nobody when the tests run as root, for whom no folder is unreadable.
TEST_F(LookupTest, UnreadableFolderIsAMissAndAFailedPublish) {
  publish();
  const std::string target_folder = target_directory(root_, "gfx950");
  ASSERT_EQ(::chmod(target_folder.c_str(), 0), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::geteuid() == 0 && (::setgid(65534) != 0 || ::setuid(65534) != 0)) ::_exit(9);
    Cache cache = open_cache(root_);
    if (cache.lookup(key_)) ::_exit(1);
    if (cache.counters().read_faults != 1) ::_exit(2);
    if (cache.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published) ::_exit(3);
    if (cache.counters().publish_failures != 1) ::_exit(4);
    if (cache.visit([](const Visited&) {})) ::_exit(5);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  ASSERT_EQ(::chmod(target_folder.c_str(), 0700), 0);
  EXPECT_TRUE(cache_.lookup(key_));
}

TEST_F(LookupTest, DropRemovesTheEntry) {
  publish();
  EXPECT_TRUE(cache_.drop(key_));
  EXPECT_FALSE(cache_.lookup(key_));
  EXPECT_FALSE(cache_.drop(key_));
  EXPECT_EQ(cache_.counters().dropped, 1U);
  EXPECT_EQ(cache_.counters().absent, 1U);
}

TEST_F(LookupTest, FolderRemovedFromOutsideIsMadeAgain) {
  publish();
  std::filesystem::remove_all(root_);
  EXPECT_FALSE(cache_.lookup(key_));
  publish();
  EXPECT_TRUE(cache_.lookup(key_));
}

TEST_F(LookupTest, OddRootsWork) {
  for (const std::string& name :
       {std::string("with space"), std::string("ünïcode"), std::string("deep/er/and/deeper"), std::string(255, 'n')}) {
    const std::string root = scratch_ / name;
    Cache cache = open_cache(root);
    EXPECT_TRUE(cache.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published) << name;
    EXPECT_TRUE(cache.lookup(key_)) << name;
  }
}

TEST_F(LookupTest, RootThatIsTooLongIsAMissAndAFailedPublish) {
  std::string root = scratch_.path();
  while (root.size() < 5000) root += "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
  Cache cache = open_cache(root);
  EXPECT_FALSE(cache.lookup(key_));
  EXPECT_EQ(cache.counters().read_faults, 1U);
  EXPECT_FALSE(cache.publish(key_, {.kernels = sample_kernels(), .code_object = code_}).published);
}

// A target id comes from a driver or a user: it must not name a folder elsewhere.
TEST_F(LookupTest, TargetIdCannotLeaveTheCache) {
  const Key escape(key_.text(), "../../outside");
  CountingIo io;
  Cache cache = open_cache(root_, Mode::read_write, &io);
  EXPECT_FALSE(cache.lookup(escape));
  EXPECT_FALSE(cache.publish(escape, {.kernels = sample_kernels(), .code_object = code_}).published);
  EXPECT_FALSE(cache.drop(escape));
  EXPECT_EQ(io.calls(), 0);
  EXPECT_TRUE(picture_of(scratch_.path()).size() == 1);
}

TEST_F(LookupTest, UnpublishableEntryIsAFailureWithAReason) {
  const auto result = cache_.publish(key_, {.kernels = {}, .code_object = code_});
  EXPECT_FALSE(result.published);
  EXPECT_THAT(result.reason, HasSubstr("kernel count is 0"));
  EXPECT_EQ(cache_.counters().publish_failures, 1U);
}

}  // namespace
}  // namespace wavejit::cache
