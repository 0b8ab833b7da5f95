// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/directory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/entry.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;

TEST(DirectoryTest, ExplicitThenXdgThenHome) {
  EXPECT_EQ(resolve_directory({.directory = "here/cache", .xdg_cache_home = "/x", .home = "/h"}), "here/cache");
  EXPECT_EQ(resolve_directory({.directory = "", .xdg_cache_home = "/x", .home = "/h"}), "/x/wavejit");
  EXPECT_EQ(resolve_directory({.directory = nullptr, .xdg_cache_home = "", .home = "/h"}), "/h/.cache/wavejit");
  EXPECT_EQ(resolve_directory({.directory = nullptr, .xdg_cache_home = "not/absolute", .home = "/h"}),
            "/h/.cache/wavejit");
}

TEST(DirectoryTest, NothingToGoByIsAnErrorThatSaysSo) {
  const auto none = resolve_directory({});
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), HasSubstr("HOME is not set"));
  const auto relative = resolve_directory({.directory = nullptr, .xdg_cache_home = "a", .home = "b"});
  ASSERT_FALSE(relative);
  EXPECT_THAT(relative.error(), HasSubstr("XDG_CACHE_HOME is 'a' and HOME is 'b'"));
}

TEST(DirectoryTest, EntryPath) {
  EXPECT_EQ(entry_path("/root", "gfx942:xnack-", digest_of("abc")),
            "/root/v1/gfx942:xnack-/ba/ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad.wavejit");
}

TEST(DirectoryTest, TargetIdsAreFolderNames) {
  for (const char* good : {"gfx950", "gfx942:sramecc+:xnack-", "gfx9-4-generic", "gfx1201"})
    EXPECT_TRUE(is_target_id(good)) << good;
  for (const char* bad : {"", ".", "..", ".hidden", "a/b", "gfx 950", "gfx950\n"})
    EXPECT_FALSE(is_target_id(bad)) << bad;
  EXPECT_TRUE(is_target_id(std::string(max_target_id_bytes, 'a')));
  EXPECT_FALSE(is_target_id(std::string(max_target_id_bytes + 1, 'a')));
}

}  // namespace
}  // namespace wavejit::cache
