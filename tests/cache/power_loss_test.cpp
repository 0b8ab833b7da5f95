// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A power cut takes back what was not synced: files keep the bytes of their last fdatasync, or lose or garble the rest,
// while names stay (the worst that file systems with delayed allocation do). What is then found is an entry or a miss.
#include <fcntl.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "cache/cache.h"
#include "cache/transfer.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

class PowerIo : public PassingIo {
 public:
  enum class Loss : std::uint8_t { cut_short, zeros, garbage };

  explicit PowerIo(bool syncs) : syncs_(syncs) {}

  IoResult<int> open(const std::string& path, int flags, std::uint32_t mode) override {
    auto file = PassingIo::open(path, flags, mode);
    if (file && (flags & O_ACCMODE) != O_RDONLY) open_[*file] = path;
    return file;
  }
  IoResult<std::size_t> write(int file, const void* bytes, std::size_t size) override {
    unsynced_.insert(open_[file]);
    return PassingIo::write(file, bytes, size);
  }
  IoResult<void> fdatasync(int file) override {
    if (!syncs_) return {};  // a disk that says so and does not, or a program that forgot
    synced_[open_[file]] = size_of(open_[file]);
    unsynced_.erase(open_[file]);
    return PassingIo::fdatasync(file);
  }
  IoResult<void> rename(const std::string& from, const std::string& to) override {
    auto renamed = PassingIo::rename(from, to);
    if (renamed) {
      if (unsynced_.erase(from) != 0) unsynced_.insert(to);
      synced_[to] = synced_[from];
    }
    return renamed;
  }

  void cut(Loss loss) {
    for (const std::string& path : unsynced_) {
      if (!std::filesystem::exists(path)) continue;
      const std::uint64_t size = size_of(path);
      const std::uint64_t kept = synced_[path];
      std::filesystem::resize_file(path, kept);
      if (loss == Loss::cut_short) continue;
      auto bytes = read_bytes(path);
      const auto rest = loss == Loss::zeros ? std::vector<std::byte>(size - kept) : sample_code(size - kept, 77);
      bytes.insert(bytes.end(), rest.begin(), rest.end());
      write_bytes(path, bytes);
    }
  }
  std::size_t unsynced() const { return unsynced_.size(); }

 private:
  static std::uint64_t size_of(const std::string& path) {
    std::error_code none;
    const auto size = std::filesystem::file_size(path, none);
    return none ? 0 : size;
  }

  bool syncs_;
  std::map<int, std::string> open_;
  std::map<std::string, std::uint64_t> synced_;
  std::set<std::string> unsynced_;
};

class PowerLossTest : public ::testing::TestWithParam<PowerIo::Loss> {
 protected:
  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  std::vector<std::byte> code_ = sample_code(20'000);
};

TEST_P(PowerLossTest, WhatWasPublishedIsStillThere) {
  PowerIo io(true);
  Cache cache = open_cache(root_, Mode::read_write, &io);
  for (int i = 0; i < 10; ++i) {
    const Key key = sample_key(std::to_string(i));
    ASSERT_TRUE(cache.publish(key, {.kernels = sample_kernels(), .code_object = code_}).published);
  }
  EXPECT_EQ(io.unsynced(), 0U) << "every byte was synced before its file got its name";
  io.cut(GetParam());
  Cache after = open_cache(root_);
  for (int i = 0; i < 10; ++i) {
    const auto hit = after.lookup(sample_key(std::to_string(i)));
    ASSERT_TRUE(hit);
    EXPECT_TRUE(same_bytes(hit->entry().code_object, code_));
  }
}

// The oracle of the test above, and what a disk that lies about syncs does: damage is seen, and heals.
TEST_P(PowerLossTest, WhatWasNotSyncedIsAMissAndHeals) {
  PowerIo io(false);
  Cache cache = open_cache(root_, Mode::read_write, &io);
  const Key key = sample_key();
  ASSERT_TRUE(cache.publish(key, {.kernels = sample_kernels(), .code_object = code_}).published);
  EXPECT_EQ(io.unsynced(), 1U);
  io.cut(GetParam());
  Cache after = open_cache(root_);
  EXPECT_FALSE(after.lookup(key));
  EXPECT_EQ(after.counters().damaged, 1U);
  EXPECT_TRUE(after.publish(key, {.kernels = sample_kernels(), .code_object = code_}).published);
  EXPECT_TRUE(after.lookup(key));
}

TEST_P(PowerLossTest, AnArchiveIsWholeOrNotThere) {
  const std::string archive = scratch_ / "archive";
  for (const bool syncs : {true, false}) {
    PowerIo io(syncs);
    Cache cache = open_cache(root_, Mode::read_write, &io);
    ASSERT_TRUE(cache.publish(sample_key(), {.kernels = sample_kernels(), .code_object = code_}).published);
    ASSERT_TRUE(pack_entries(cache, archive, {}));
    io.cut(GetParam());
    Cache layer({.layers = {{.name = "image", .root = archive, .writable = false}}});
    EXPECT_EQ(layer.lookup(sample_key()).has_value(), syncs);
    EXPECT_EQ(layer.counters().damaged, syncs ? 0U : 1U);
  }
}

INSTANTIATE_TEST_SUITE_P(All, PowerLossTest,
                         ::testing::Values(PowerIo::Loss::cut_short, PowerIo::Loss::zeros, PowerIo::Loss::garbage));

}  // namespace
}  // namespace wavejit::cache
