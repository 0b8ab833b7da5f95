// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Modes and layers: who is read, who is written, and that the others are not touched.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/cache.h"
#include "cache_test_support.h"
#include "faulty_io.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;

class ModesTest : public ::testing::Test {
 protected:
  PublishResult publish(Cache& cache, const Key& key) {
    return cache.publish(key, {.kernels = sample_kernels(), .code_object = code_});
  }

  ScratchDirectory scratch_;
  std::string root_ = scratch_ / "user";
  Key key_ = sample_key();
  std::vector<std::byte> code_ = sample_code(1000);
};

TEST_F(ModesTest, Names) {
  for (const Mode mode : {Mode::off, Mode::read_only, Mode::read_write}) EXPECT_EQ(parse_mode(to_text(mode)), mode);
  for (const char* other : {"", "on", "RW", "rw ", "readonly"}) EXPECT_FALSE(parse_mode(other)) << other;
}

TEST_F(ModesTest, ReadOnlyReadsAndWritesNothing) {
  Cache writer = open_cache(root_);
  ASSERT_TRUE(publish(writer, key_).published);
  const Key damaged = sample_key(" damaged");
  ASSERT_TRUE(publish(writer, damaged).published);
  std::filesystem::resize_file(path_of(root_, damaged), 77);

  const auto before = picture_of(scratch_.path());
  Cache cache = open_cache(root_, Mode::read_only);
  EXPECT_TRUE(cache.lookup(key_));
  EXPECT_FALSE(cache.lookup(damaged));
  EXPECT_FALSE(cache.lookup(sample_key(" absent")));
  for (const Key& key : {key_, damaged, sample_key(" absent")}) {
    const auto result = publish(cache, key);
    EXPECT_FALSE(result.published);
    EXPECT_EQ(result.reason, "the cache is ro");
    EXPECT_FALSE(cache.drop(key));
  }
  EXPECT_TRUE(cache.visit([](const Visited&) {}));
  EXPECT_EQ(picture_of(scratch_.path()), before);
  EXPECT_EQ(cache.counters(), (CounterValues{.lookups = 3,
                                             .hits = 1,
                                             .layer_hits = 0,
                                             .user_hits = 1,
                                             .misses = 2,
                                             .absent = 1,
                                             .damaged = 1,
                                             .publishes = 3,
                                             .publishes_skipped = 3}));
}

TEST_F(ModesTest, ReadOnlyOfNothingMakesNoFolder) {
  Cache cache = open_cache(root_, Mode::read_only);
  EXPECT_FALSE(cache.lookup(key_));
  EXPECT_FALSE(publish(cache, key_).published);
  EXPECT_FALSE(std::filesystem::exists(root_));
}

TEST_F(ModesTest, OffMakesNoSystemCall) {
  Cache writer = open_cache(root_);
  ASSERT_TRUE(publish(writer, key_).published);
  CountingIo io;
  Cache cache = open_cache(root_, Mode::off, &io);
  EXPECT_FALSE(cache.lookup(key_));
  EXPECT_FALSE(publish(cache, key_).published);
  EXPECT_FALSE(cache.drop(key_));
  EXPECT_TRUE(cache.visit([](const Visited&) { FAIL(); }));
  EXPECT_EQ(io.calls(), 0);
}

TEST_F(ModesTest, FirstLayerWinsAndOnlyTheWritableOneIsWritten) {
  const std::string image = scratch_ / "image";
  const std::string package = scratch_ / "package";
  Cache image_writer = open_cache(image);
  Cache package_writer = open_cache(package);
  const auto other_code = sample_code(2000, 5);
  ASSERT_TRUE(publish(image_writer, key_).published);
  ASSERT_TRUE(package_writer.publish(key_, {.kernels = sample_kernels(), .code_object = other_code}).published);
  const Key in_package = sample_key(" package");
  ASSERT_TRUE(publish(package_writer, in_package).published);
  const auto image_before = picture_of(image);
  const auto package_before = picture_of(package);

  Cache cache({.layers = {{.name = "image", .root = image, .writable = false},
                          {.name = "package", .root = package, .writable = false},
                          {.name = "user", .root = root_, .writable = true}},
               .mode = Mode::read_write,
               .io = nullptr,
               .on_event = {}});
  const auto first = cache.lookup(key_);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->layer(), "image");
  EXPECT_TRUE(same_bytes(first->entry().code_object, code_));
  EXPECT_EQ(cache.lookup(in_package)->layer(), "package");
  const Key fresh = sample_key(" fresh");
  EXPECT_FALSE(cache.lookup(fresh));
  EXPECT_TRUE(publish(cache, fresh).published);
  EXPECT_EQ(cache.lookup(fresh)->layer(), "user");
  EXPECT_FALSE(cache.drop(key_)) << "a read-only layer's entry is not ours to remove";
  EXPECT_TRUE(cache.lookup(key_));
  EXPECT_EQ(picture_of(image), image_before);
  EXPECT_EQ(picture_of(package), package_before);
}

// A damaged packaged entry must not hide the good one that the user's layer has, or will have.
TEST_F(ModesTest, GoodUserEntryBehindADamagedPackagedOne) {
  const std::string image = scratch_ / "image";
  Cache image_writer = open_cache(image);
  ASSERT_TRUE(publish(image_writer, key_).published);
  std::filesystem::resize_file(path_of(image, key_), 200);
  Cache cache({.layers = {{.name = "image", .root = image, .writable = false},
                          {.name = "user", .root = root_, .writable = true}},
               .mode = Mode::read_write,
               .io = nullptr,
               .on_event = {}});
  EXPECT_FALSE(cache.lookup(key_));
  EXPECT_TRUE(publish(cache, key_).published);
  EXPECT_EQ(cache.lookup(key_)->layer(), "user");
  const CounterValues counters = cache.counters();
  EXPECT_EQ(counters.damaged, 2U);
  EXPECT_EQ(counters.lookups, counters.hits + counters.misses);
}

TEST_F(ModesTest, NoWritableLayer) {
  Cache cache({.layers = {{.name = "image", .root = root_, .writable = false}},
               .mode = Mode::read_write,
               .io = nullptr,
               .on_event = {}});
  const auto result = publish(cache, key_);
  EXPECT_FALSE(result.published);
  EXPECT_THAT(result.reason, HasSubstr("no writable layer"));
  EXPECT_FALSE(std::filesystem::exists(root_));
}

}  // namespace
}  // namespace wavejit::cache
