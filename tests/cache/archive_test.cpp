// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Archives: what is written is found, what is damaged is refused, and a reader believes nothing.
#include "cache/archive.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>

#include "cache/checksum.h"
#include "cache/transfer.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;

Key nth_key(int i) { return {"kernel " + std::to_string(i), i % 3 == 0 ? "gfx942" : "gfx950"}; }

class ArchiveTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Cache cache = open_cache(root_, Mode::read_write, &quick_);
    for (int i = 0; i < entries; ++i) {
      const auto code = sample_code(500 + 37 * static_cast<std::size_t>(i), static_cast<std::uint32_t>(i));
      ASSERT_TRUE(cache.publish(nth_key(i), {.kernels = sample_kernels(), .code_object = code}).published);
    }
    const auto packed = pack_entries(cache, archive_, {});
    ASSERT_TRUE(packed) << packed.error();
    ASSERT_EQ(packed->copied, static_cast<std::uint64_t>(entries));
  }
  Cache open_layer(const std::string& path, IoInterface* io = nullptr) {
    return Cache({.layers = {{.name = "image", .root = path, .writable = false}},
                  .mode = Mode::read_write,
                  .io = io,
                  .on_event = [this](const Event& event) { told_.push_back(event.what); }});
  }
  void expect_unusable(std::uint64_t CounterValues::* counter, const std::string& why) {
    told_.clear();
    Cache cache = open_layer(archive_);
    EXPECT_FALSE(cache.lookup(nth_key(1)));
    EXPECT_FALSE(cache.lookup(nth_key(2)));
    EXPECT_EQ(cache.counters().*counter, 2U) << "one a lookup";
    EXPECT_EQ(cache.counters().misses, 2U);
    ASSERT_EQ(told_.size(), 1U) << "said once";
    EXPECT_THAT(told_[0], HasSubstr(why));
    EXPECT_THAT(told_[0], HasSubstr(archive_));
  }

  static constexpr int entries = 50;
  PassingIo quick_;  // syncs nothing
  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "cache";
  std::string archive_ = scratch_ / "kernels.wavejit-archive";
  std::vector<std::string> told_;
};

TEST_F(ArchiveTest, EveryEntryIsFoundAndOthersAreNot) {
  const auto before = picture_of(scratch_.path());
  Cache cache = open_layer(archive_);
  for (int i = 0; i < entries; ++i) {
    const auto hit = cache.lookup(nth_key(i));
    ASSERT_TRUE(hit) << i;
    EXPECT_EQ(hit->layer(), "image");
    EXPECT_TRUE(same_bytes(hit->entry().code_object,
                           sample_code(500 + 37 * static_cast<std::size_t>(i), static_cast<std::uint32_t>(i))));
  }
  for (int i = entries; i < 2 * entries; ++i) EXPECT_FALSE(cache.lookup(nth_key(i)));
  EXPECT_FALSE(cache.lookup(Key("kernel 1", "gfx942"))) << "it is there for gfx950";
  const CounterValues counters = cache.counters();
  EXPECT_EQ(counters.layer_hits, static_cast<std::uint64_t>(entries));
  EXPECT_EQ(counters.absent, static_cast<std::uint64_t>(entries) + 1);
  EXPECT_FALSE(cache.publish(nth_key(77), {.kernels = sample_kernels(), .code_object = sample_code(10)}).published);
  EXPECT_EQ(picture_of(scratch_.path()), before);
}

TEST_F(ArchiveTest, OneKeyTextForTwoTargets) {
  Cache cache = open_cache(root_);
  const Key other("kernel 1", "gfx942");
  const auto code = sample_code(99, 99);
  ASSERT_TRUE(cache.publish(other, {.kernels = sample_kernels(), .code_object = code}).published);
  ASSERT_TRUE(pack_entries(cache, archive_, {}));
  Cache layer = open_layer(archive_);
  EXPECT_EQ(layer.lookup(nth_key(1))->entry().target_id, "gfx950");
  EXPECT_TRUE(same_bytes(layer.lookup(other)->entry().code_object, code));
}

TEST_F(ArchiveTest, TheSameEntriesGiveTheSameBytes) {
  const std::string again = scratch_ / "again";
  Cache copied({.layers = {{.name = "user", .root = scratch_ / "copy", .writable = true}}});
  Cache source = open_cache(root_);
  ASSERT_TRUE(copy_entries(source, copied, {}));
  ASSERT_TRUE(pack_entries(copied, again, {}));
  EXPECT_TRUE(same_bytes(read_bytes(archive_), read_bytes(again)));
}

// Its entries are in the order of targets and keys, its index in that of keys: bytes had depended on where they came
// from.
TEST_F(ArchiveTest, AnArchiveOfAnArchiveHasItsBytes) {
  const std::string again = scratch_ / "again";
  Cache layer = open_layer(archive_);
  ASSERT_TRUE(pack_entries(layer, again, {}));
  EXPECT_TRUE(same_bytes(read_bytes(archive_), read_bytes(again)));
}

TEST_F(ArchiveTest, PackTakesChosenTargetsAndLeavesDamageBehind) {
  std::filesystem::resize_file(path_of(root_, nth_key(1)), 300);
  Cache cache = open_cache(root_);
  const auto packed = pack_entries(cache, archive_, {"gfx950"});
  ASSERT_TRUE(packed);
  EXPECT_EQ(packed->damaged, 1U);
  EXPECT_EQ(packed->copied, 32U);
  Cache layer = open_layer(archive_);
  EXPECT_FALSE(layer.lookup(nth_key(0)));
  EXPECT_FALSE(layer.lookup(nth_key(1)));
  EXPECT_TRUE(layer.lookup(nth_key(2)));
}

TEST_F(ArchiveTest, UnpackedEntriesAreTheSameFiles) {
  Cache from = open_layer(archive_);
  const std::string unpacked = scratch_ / "unpacked";
  Cache to({.layers = {{.name = "to", .root = unpacked, .writable = true}}, .readable_by_all = true});
  const auto copied = copy_entries(from, to, {});
  ASSERT_TRUE(copied);
  EXPECT_EQ(copied->copied, static_cast<std::uint64_t>(entries));
  for (int i = 0; i < entries; ++i) {
    EXPECT_TRUE(same_bytes(read_bytes(path_of(root_, nth_key(i))), read_bytes(path_of(unpacked, nth_key(i)))));
    struct stat status{};
    ASSERT_EQ(::stat(path_of(unpacked, nth_key(i)).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0400U, 0400U);
  }
  const auto again = copy_entries(from, to, {});
  EXPECT_EQ(again->present, static_cast<std::uint64_t>(entries));
  EXPECT_EQ(again->copied, 0U);
}

TEST_F(ArchiveTest, VisitVerifiesEachEntry) {
  Cache cache = open_layer(archive_);
  int whole = 0;
  EXPECT_TRUE(cache.visit([&](const Visited& visited) {
    EXPECT_EQ(visited.damage, "");
    EXPECT_THAT(std::string(visited.path), HasSubstr(archive_ + "#" + std::string(visited.key_hex)));
    ++whole;
  }));
  EXPECT_EQ(whole, entries);
}

// Every bit of head, index and foot; one bit in each 61 bytes of the entries, whose own checksum sees it.
TEST_F(ArchiveTest, EveryFlippedBitIsSeen) {
  const auto good = read_bytes(archive_);
  const auto records = parse_archive(good);
  ASSERT_TRUE(records) << records.error();
  const std::size_t index = good.size() - archive_foot_bytes - entries * archive_record_bytes;
  for (std::size_t byte = 0; byte < good.size(); byte += byte < archive_head_bytes || byte >= index ? 1 : 61) {
    auto bad = good;
    bad[byte] ^= static_cast<std::byte>(1U << (byte % 8));
    if (byte < archive_head_bytes || byte >= index) {
      EXPECT_FALSE(parse_archive(bad)) << byte;
      continue;
    }
    ASSERT_TRUE(parse_archive(bad));
    for (const ArchiveRecord& record : *records) {
      if (byte < record.offset || byte >= record.offset + record.bytes) continue;
      EXPECT_FALSE(parse(std::span<const std::byte>(bad).subspan(record.offset, record.bytes))) << byte;
    }
  }
}

TEST_F(ArchiveTest, EveryTruncationAndAppendixIsSeen) {
  const auto good = read_bytes(archive_);
  for (std::size_t size = 0; size < good.size(); size += size < 200 || size + 300 > good.size() ? 1 : 97)
    EXPECT_FALSE(parse_archive(std::span(good).first(size))) << size;
  auto longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(parse_archive(longer));
}

TEST_F(ArchiveTest, ADamagedArchiveIsACountedMissAndSaidOnce) {
  std::filesystem::resize_file(archive_, std::filesystem::file_size(archive_) - 1);
  expect_unusable(&CounterValues::damaged, "cut short");
  Cache cache = open_layer(archive_);
  int damaged = 0;
  EXPECT_TRUE(cache.visit([&](const Visited& visited) { damaged += visited.damage.empty() ? 0 : 1; }));
  EXPECT_EQ(damaged, 1);
}

TEST_F(ArchiveTest, FutureVersionsAreRefused) {
  auto bytes = read_bytes(archive_);
  bytes[8] = std::byte{2};
  write_bytes(archive_, bytes);
  expect_unusable(&CounterValues::damaged, "format version is 2; this program reads 1");
}

TEST_F(ArchiveTest, SomethingElseIsNoArchive) {
  write_bytes(archive_, sample_code(5000));
  expect_unusable(&CounterValues::damaged, "magic");
  write_bytes(archive_, sample_code(5));
  expect_unusable(&CounterValues::damaged, "file size is 5");
}

TEST_F(ArchiveTest, AnArchiveThatEverybodyMayWriteToIsRefused) {
  ASSERT_EQ(::chmod(archive_.c_str(), 0666), 0);
  expect_unusable(&CounterValues::refused, "everybody may write");
}

TEST_F(ArchiveTest, ASymbolicLinkToAnArchiveIsRefused) {
  const std::string real = scratch_ / "real";
  std::filesystem::rename(archive_, real);
  std::filesystem::create_symlink(real, archive_);
  expect_unusable(&CounterValues::refused, "symbolic link");
}

TEST_F(ArchiveTest, OnlyOursAndRootsArchivesAreTrusted) {
  class OtherOwnerIo : public PassingIo {
   public:
    IoResult<FileStatus> fstat(int file) override {
      auto status = PassingIo::fstat(file);
      if (status) status->owner = 4711;
      return status;
    }
  };
  OtherOwnerIo io;
  Cache cache = open_layer(archive_, &io);
  EXPECT_FALSE(cache.lookup(nth_key(1)));
  EXPECT_EQ(cache.counters().refused, 1U);
}

TEST_F(ArchiveTest, AMissingLayerIsAbsentUntilItIsThere) {
  const std::string later = scratch_ / "later";
  Cache cache = open_layer(later);
  EXPECT_FALSE(cache.lookup(nth_key(1)));
  EXPECT_FALSE(cache.lookup(nth_key(1)));
  EXPECT_EQ(cache.counters().absent, 2U);
  EXPECT_EQ(told_.size(), 1U);
  std::filesystem::rename(archive_, later);
  EXPECT_TRUE(cache.lookup(nth_key(1)));
}

// A network file system forgets an open file: a miss, then the archive is opened anew.
TEST_F(ArchiveTest, AStaleHandleIsAMissAndIsReopened) {
  class StaleIo : public PassingIo {
   public:
    bool stale = false;
    IoResult<std::size_t> pread(int file, void* bytes, std::size_t size, std::uint64_t offset) override {
      if (stale) return std::unexpected(ESTALE);
      return PassingIo::pread(file, bytes, size, offset);
    }
  };
  StaleIo io;
  Cache cache = open_layer(archive_, &io);
  EXPECT_TRUE(cache.lookup(nth_key(1)));
  io.stale = true;
  EXPECT_FALSE(cache.lookup(nth_key(1)));
  io.stale = false;
  EXPECT_TRUE(cache.lookup(nth_key(1)));
  EXPECT_EQ(cache.counters().read_faults, 1U);
}

// An archive replaced or removed while it is open goes on serving what was opened.
TEST_F(ArchiveTest, AnUnlinkedArchiveIsStillRead) {
  Cache cache = open_layer(archive_);
  EXPECT_TRUE(cache.lookup(nth_key(1)));
  std::filesystem::remove(archive_);
  EXPECT_TRUE(cache.lookup(nth_key(2)));
}

// An index whose records lead astray, under a right checksum.
TEST_F(ArchiveTest, RecordsThatLeadOutsideAreRefused) {
  const auto records = *parse_archive(read_bytes(archive_));
  for (int what = 0; what < 5; ++what) {
    const std::string path = scratch_ / "crafted";
    auto temporary = create_temporary(posix_io(), scratch_.path());
    ASSERT_TRUE(temporary);
    ArchiveWriter writer(posix_io(), temporary->file.number(), temporary->path);
    ASSERT_TRUE(writer.begin());
    const auto entry = sample_code(100);
    ASSERT_TRUE(writer.add(records[0].digest, entry));
    ASSERT_TRUE(writer.finish());
    auto bytes = read_bytes(temporary->path);
    discard(posix_io(), *temporary);
    ASSERT_TRUE(parse_archive(bytes));
    const std::size_t record = bytes.size() - archive_foot_bytes - archive_record_bytes;
    const std::uint64_t values[] = {~0ULL, 1ULL << 63U, 0, 65, bytes.size()};
    std::memcpy(bytes.data() + record + 32 + (what == 1 ? 8 : 0), &values[what], 8);
    // The checksum as a forger would make it.
    const auto covered = std::span<const std::byte>(bytes).subspan(record, archive_record_bytes + 48);
    const Checksum checksum = checksum_of(covered);
    std::memcpy(bytes.data() + bytes.size() - 16, checksum.data(), checksum.size());
    const auto parsed = parse_archive(bytes);
    ASSERT_FALSE(parsed) << what;
    EXPECT_THAT(parsed.error(), HasSubstr("leads outside")) << what;
  }
}

}  // namespace
}  // namespace wavejit::cache
