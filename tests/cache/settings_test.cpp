// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace wavejit::cache {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SettingsTest, Layers) {
  EXPECT_THAT(*parse_layers("/a:/b c/d.wavejit-archive"), ElementsAre("/a", "/b c/d.wavejit-archive"));
  EXPECT_THAT(*parse_layers("::/a::"), ElementsAre("/a"));
  EXPECT_THAT(*parse_layers(""), IsEmpty());
  for (const char* wrong : {"a", "/a:b", "./a", "/a\n", "/a\x7f"}) EXPECT_FALSE(parse_layers(wrong)) << wrong;
  std::string many;
  for (int i = 0; i < 64; ++i) many += "/x:";
  EXPECT_EQ(parse_layers(many)->size(), 64U);
  EXPECT_FALSE(parse_layers(many + "/x"));
}

TEST(SettingsTest, LimitsAndTheirTexts) {
  for (const auto& [text, bytes] :
       std::initializer_list<std::pair<const char*, std::uint64_t>>{{"none", 0},
                                                                    {"1MiB", 1U << 20},
                                                                    {"1024KiB", 1U << 20},
                                                                    {"1048576", 1U << 20},
                                                                    {"3GiB", 3ULL << 30},
                                                                    {"2TiB", 2ULL << 40},
                                                                    {"1048577", (1U << 20) + 1}}) {
    ASSERT_TRUE(parse_limit(text)) << text;
    EXPECT_EQ(*parse_limit(text), bytes);
    EXPECT_EQ(*parse_limit(limit_text(bytes)), bytes);
  }
  for (const char* wrong :
       {"", "MiB", "-1GiB", "1 GiB", "1gib", "1.5GiB", "18446744073709551616", "8388608TiB", "0x10MiB", "1MiBMiB"})
    EXPECT_EQ(parse_limit(wrong).error(), "not known") << wrong;
  for (const char* few : {"0", "1", "1023KiB", "1048575"}) EXPECT_EQ(parse_limit(few).error(), "too small") << few;
}

TEST(SettingsTest, LockWaits) {
  EXPECT_EQ(parse_lock_wait("0"), 0);
  EXPECT_EQ(parse_lock_wait("250"), 250'000'000);
  EXPECT_EQ(parse_lock_wait("3600000"), 3'600'000'000'000);
  for (const char* wrong : {"", "-1", "3600001", "1s", "1.0", " 1"}) EXPECT_FALSE(parse_lock_wait(wrong)) << wrong;
}

}  // namespace
}  // namespace wavejit::cache
