// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Every system call fails, in every way, once and from then on (reliability cases 20 to 22): a fault is a miss or an
// unpublished entry with one counter, never wrong bytes, an exception, a half-written entry or a hang.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "cache/cache.h"
#include "cache_test_support.h"
#include "every_call.h"

namespace wavejit::cache {
namespace {

class FaultTest : public EveryCall {
 protected:
  bool interruption_once() const { return std::get<0>(GetParam()).code == EINTR && !std::get<1>(GetParam()); }
  bool sticky() const { return std::get<1>(GetParam()); }

  PassingIo quick_;  // syncs nothing
  ScratchDirectory scratch_;
  Key key_ = sample_key();
  // Small: one-byte reads and writes make a call per byte.
  std::vector<std::byte> code_ = sample_code(150);
  std::vector<KernelFacts> kernels_ = {{.name = "k"}};
};

TEST_P(FaultTest, Lookup) {
  const std::string root = scratch_ / "cache";
  ASSERT_TRUE(
      open_cache(root, Mode::read_write, &quick_).publish(key_, {.kernels = kernels_, .code_object = code_}).published);
  for_every_call([&](FaultyIo& io, int n) {
    Cache cache = open_cache(root, Mode::read_write, &io);
    const auto hit = cache.lookup(key_);
    const CounterValues counters = cache.counters();
    ASSERT_EQ(counters.lookups, 1U);
    ASSERT_EQ(counters.hits + counters.misses, 1U);
    ASSERT_EQ(hit.has_value(), counters.hits == 1);
    if (hit) {
      ASSERT_TRUE(same_bytes(hit->entry().code_object, code_));
    } else {
      ASSERT_EQ(counters.absent + counters.damaged + counters.refused + counters.read_faults, 1U);
    }
    if (interruption_once() || io.calls() < n) ASSERT_TRUE(hit);
  });
  EXPECT_TRUE(open_cache(root).lookup(key_)) << "reading has changed nothing";
}

TEST_P(FaultTest, PublishIntoAnEmptyDirectory) {
  int round = 0;
  for_every_call([&](FaultyIo& io, int n) {
    const std::string root = scratch_ / std::to_string(++round);
    Cache cache = open_cache(root, Mode::read_write, &io);
    const auto result = cache.publish(key_, {.kernels = kernels_, .code_object = code_});
    const CounterValues counters = cache.counters();
    ASSERT_EQ(counters.publishes, 1U);
    ASSERT_EQ(counters.published, result.published ? 1U : 0U);
    ASSERT_EQ(counters.publish_failures, result.published ? 0U : 1U);
    ASSERT_EQ(result.reason.empty(), result.published);
    const FilesBelow files = files_below(root);
    ASSERT_EQ(files.entries.size(), result.published ? 1U : 0U);
    ASSERT_TRUE(files.strangers.empty());
    if (!sticky()) ASSERT_TRUE(files.temporaries.empty());
    ASSERT_LE(files.temporaries.size(), 1U);
    Cache after = open_cache(root);
    const auto hit = after.lookup(key_);
    ASSERT_EQ(hit.has_value(), result.published);
    if (hit) ASSERT_TRUE(same_bytes(hit->entry().code_object, code_));
    if (interruption_once() || io.calls() < n) ASSERT_TRUE(result.published) << result.reason;
    ASSERT_TRUE(after.publish(key_, {.kernels = kernels_, .code_object = code_}).published)
        << "it heals when the fault is gone";
  });
}

TEST_P(FaultTest, PublishOverAnOlderEntry) {
  const std::string root = scratch_ / "cache";
  const auto older = sample_code(90, 9);
  for_every_call([&](FaultyIo& io, int) {
    std::filesystem::remove_all(root);
    ASSERT_TRUE(open_cache(root, Mode::read_write, &quick_)
                    .publish(key_, {.kernels = kernels_, .code_object = older})
                    .published);
    Cache cache = open_cache(root, Mode::read_write, &io);
    const auto result = cache.publish(key_, {.kernels = kernels_, .code_object = code_});
    const auto hit = open_cache(root).lookup(key_);
    ASSERT_TRUE(hit) << "the old entry or the new one, whatever happened";
    ASSERT_TRUE(same_bytes(hit->entry().code_object, result.published ? code_ : older));
  });
}

TEST_P(FaultTest, DropAndVisit) {
  const std::string root = scratch_ / "cache";
  for_every_call([&](FaultyIo& io, int n) {
    ASSERT_TRUE(open_cache(root, Mode::read_write, &quick_)
                    .publish(key_, {.kernels = kernels_, .code_object = code_})
                    .published);
    Cache cache = open_cache(root, Mode::read_write, &io);
    int whole = 0;
    int damaged = 0;
    const bool complete = cache.visit([&](const Visited& visited) { ++(visited.damage.empty() ? whole : damaged); });
    ASSERT_LE(whole + damaged, 1);
    if (interruption_once()) ASSERT_TRUE(complete && whole == 1);
    if (cache.drop(key_)) ASSERT_FALSE(open_cache(root).lookup(key_));
    if (io.calls() < n) ASSERT_TRUE(complete && whole == 1 && cache.counters().dropped == 1);
  });
}

INSTANTIATE_TEST_SUITE_P(All, FaultTest, ::testing::Combine(::testing::ValuesIn(faults), ::testing::Bool()),
                         [](const auto& param) {
                           std::string name = std::get<0>(param.param).name;
                           std::erase(name, ' ');
                           return name + (std::get<1>(param.param) ? "FromThenOn" : "Once");
                         });

// Bytes that may not have reached the disk get no name.
TEST(SyncTest, EntryThatWasNotSyncedIsNotPublished) {
  class UnsyncedIo : public PassingIo {
   public:
    IoResult<void> fdatasync(int /*file*/) override { return std::unexpected(EIO); }
  };
  const ScratchDirectory scratch;
  UnsyncedIo io;
  Cache cache = open_cache(scratch / "cache", Mode::read_write, &io);
  const auto code = sample_code(100);
  EXPECT_FALSE(cache.publish(sample_key(), {.kernels = sample_kernels(), .code_object = code}).published);
  const FilesBelow files = files_below(scratch.path());
  EXPECT_TRUE(files.entries.empty() && files.temporaries.empty());
}

// The worst of luck: a process with our id on another host draws our random bits. Only the sequence still counts up.
class SameNameIo : public PassingIo {
 public:
  std::uint64_t random_bits() override { return 42; }
  std::int64_t process_id() override { return 1; }
  IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
    if ((flags & O_CREAT) != 0) created_ = path;
    return PassingIo::open(path, flags, mode);
  }
  const std::string& created() const { return created_; }

 private:
  std::string created_;
};

TEST(TemporaryNameTest, AnotherWritersTemporaryIsNeverWrittenTo) {
  const ScratchDirectory scratch;
  SameNameIo io;
  Cache cache = open_cache(scratch / "cache", Mode::read_write, &io);
  const auto code = sample_code(100);
  const Compiled compiled{.kernels = sample_kernels(), .code_object = code};
  ASSERT_TRUE(cache.publish(sample_key(), compiled).published);
  const std::string name = io.created();
  const std::size_t dash = name.rfind('-');
  const auto other_writers = sample_code(77, 3);
  const std::string next = name.substr(0, dash + 1) + std::to_string(std::stoull(name.substr(dash + 1)) + 1);
  write_bytes(next, other_writers);

  EXPECT_TRUE(cache.publish(sample_key(), compiled).published);
  EXPECT_NE(io.created(), next);
  EXPECT_TRUE(same_bytes(read_bytes(next), other_writers));
  EXPECT_TRUE(cache.lookup(sample_key()));
}

}  // namespace
}  // namespace wavejit::cache
