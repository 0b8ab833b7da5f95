// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/cache.h"
#include "cache_test_support.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;

struct Seen {
  std::string path;
  std::string key_hex;
  std::string target_id;
  std::string key_text;
  std::string damage;
  std::uint64_t file_bytes;
};

std::vector<Seen> visit_all(Cache& cache) {
  std::vector<Seen> seen;
  EXPECT_TRUE(cache.visit([&](const Visited& visited) {
    seen.push_back({.path = std::string(visited.path),
                    .key_hex = std::string(visited.key_hex),
                    .target_id = std::string(visited.target_id),
                    .key_text = visited.entry != nullptr ? visited.entry->key_text : "",
                    .damage = std::string(visited.damage),
                    .file_bytes = visited.file_bytes});
    EXPECT_EQ(visited.entry == nullptr, !visited.damage.empty());
  }));
  return seen;
}

TEST(VisitTest, EmptyAndMissingDirectories) {
  const ScratchDirectory scratch;
  Cache cache = open_cache(scratch / "nothing");
  EXPECT_TRUE(visit_all(cache).empty());
}

TEST(VisitTest, SeesEveryEntryOnceInOrderAndNothingElse) {
  const ScratchDirectory scratch;
  const std::string root = scratch / "cache";
  Cache cache = open_cache(root);
  const auto code = sample_code(3000);
  for (int i = 0; i < 40; ++i) {
    const Key key("kernel " + std::to_string(i), i % 2 == 0 ? "gfx950" : "gfx942");
    ASSERT_TRUE(cache.publish(key, {.kernels = sample_kernels(), .code_object = code}).published);
  }
  const std::string shelf = std::filesystem::path(path_of(root, Key("kernel 0", "gfx950"))).parent_path().string();
  write_bytes(shelf + "/" + std::string(temporary_prefix) + "left-over", code);
  write_bytes(shelf + "/notes.txt", code);
  write_bytes(root + "/v1/README", code);
  write_bytes(root + "/v1/gfx950/stray", code);
  std::filesystem::create_directories(root + "/v2/gfx950/00");

  const auto seen = visit_all(cache);
  ASSERT_EQ(seen.size(), 40U);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].damage, "");
    EXPECT_EQ(seen[i].key_hex, digest_of(seen[i].key_text).hex());
    EXPECT_EQ(seen[i].file_bytes, std::filesystem::file_size(seen[i].path));
    if (i > 0)
      EXPECT_LT(std::pair(seen[i - 1].target_id, seen[i - 1].key_hex), std::pair(seen[i].target_id, seen[i].key_hex));
  }
  EXPECT_EQ(cache.counters().lookups, 0U);
}

TEST(VisitTest, NamesEachDamage) {
  const ScratchDirectory scratch;
  const std::string root = scratch / "cache";
  Cache cache = open_cache(root);
  const auto code = sample_code(3000);
  const auto publish = [&](const Key& key) {
    ASSERT_TRUE(cache.publish(key, {.kernels = sample_kernels(), .code_object = code}).published);
  };
  const auto only_damage = [&](const std::string& path) {
    std::string damage;
    for (const Seen& seen : visit_all(cache)) {
      if (seen.path == path) damage = seen.damage;
    }
    return damage;
  };
  const Key whole("whole", "gfx950");
  publish(whole);

  const Key flipped("flipped", "gfx950");
  publish(flipped);
  auto bytes = read_bytes(path_of(root, flipped));
  bytes[bytes.size() - 100] ^= std::byte{1};
  write_bytes(path_of(root, flipped), bytes);
  EXPECT_THAT(only_damage(path_of(root, flipped)), HasSubstr("checksum"));

  const Key renamed("renamed", "gfx950");
  std::filesystem::create_directories(std::filesystem::path(path_of(root, renamed)).parent_path());
  std::filesystem::copy_file(path_of(root, whole), path_of(root, renamed));
  EXPECT_THAT(only_damage(path_of(root, renamed)), HasSubstr("SHA-256"));

  const Key moved("whole", "gfx942");
  std::filesystem::create_directories(std::filesystem::path(path_of(root, moved)).parent_path());
  std::filesystem::copy_file(path_of(root, whole), path_of(root, moved));
  EXPECT_THAT(only_damage(path_of(root, moved)), HasSubstr("another target"));

  const Key link("link", "gfx950");
  std::filesystem::create_directories(std::filesystem::path(path_of(root, link)).parent_path());
  std::filesystem::create_symlink(path_of(root, whole), path_of(root, link));
  EXPECT_THAT(only_damage(path_of(root, link)), HasSubstr("symbolic link"));

  EXPECT_EQ(only_damage(path_of(root, whole)), "");
}

}  // namespace
}  // namespace wavejit::cache
