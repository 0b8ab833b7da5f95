// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Where a remote layer is, and the key that its entries are sealed with: what is accepted, and what refused with why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cache/remote_address.h"
#include "cache/remote_key.h"
#include "cache/settings.h"
#include "cache_test_support.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RemoteAddress address_of(const std::string& text) {
  const auto address = parse_remote(text);
  EXPECT_TRUE(address) << text << ": " << address.error();
  return address.value_or(RemoteAddress{});
}

TEST(RemoteAddressTest, ReadsEveryPart) {
  EXPECT_EQ(address_of("redis://kernels"),
            (RemoteAddress{.host = "kernels", .socket_path = {}, .user = {}, .password = {}}));
  const RemoteAddress all = address_of("rediss://reader:se%3Acret%40%2F@kernels.example.org:7000/12");
  EXPECT_EQ(all.host, "kernels.example.org");
  EXPECT_EQ(all.port, 7000);
  EXPECT_EQ(all.user, "reader");
  EXPECT_EQ(all.password, "se:cret@/");
  EXPECT_EQ(all.database, 12);
  EXPECT_TRUE(all.tls);
  EXPECT_EQ(address_of("rediss://:word@host").user, std::nullopt);
  EXPECT_EQ(address_of("rediss://:word@host").password, "word");
  EXPECT_EQ(address_of("redis://[::1]:6380/").host, "::1");
  EXPECT_EQ(address_of("redis://[::1]:6380/").port, 6380);
  EXPECT_EQ(address_of("unix:///run/valkey/socket").socket_path, "/run/valkey/socket");
}

TEST(RemoteAddressTest, TextsReadBackAndHideThePassword) {
  for (const char* text : {"redis://kernels:6379/0", "redis://[fe80::1]:7000/3", "unix:///run/socket"})
    EXPECT_EQ(to_text(address_of(text)), text);
  EXPECT_EQ(to_text(address_of("rediss://reader:hidden@kernels")), "rediss://reader:***@kernels:6379/0");
  EXPECT_EQ(to_text(address_of("redis://:hidden@localhost")), "redis://:***@localhost:6379/0");
}

// A listener on the wire learns no password, unless its owner says that this is fine.
TEST(RemoteAddressTest, APasswordDoesNotTravelInClearUnlessAsked) {
  for (const char* host : {"kernels", "10.0.0.1", "127.example.org", "[fe80::1]", "1270.0.0.1"}) {
    const auto refused = parse_remote("redis://reader:word@" + std::string(host) + ":7000/1");
    ASSERT_FALSE(refused) << host;
    EXPECT_THAT(refused.error(), HasSubstr("would travel in clear to another machine; rediss:// encrypts it"));
    EXPECT_EQ(address_of("rediss://reader:word@" + std::string(host)).password, "word");
    const RemoteAddress asked = address_of("redis://reader:word@" + std::string(host) + ":7000/1?password=clear");
    EXPECT_TRUE(asked.clear_password);
    EXPECT_EQ(asked.database, 1);
    EXPECT_THAT(to_text(asked), ::testing::EndsWith(":7000/1?password=clear"));
    EXPECT_FALSE(address_of("redis://" + std::string(host)).clear_password) << "no password, nothing to hide";
  }
  for (const char* host : {"localhost", "127.0.0.1", "127.8.9.10", "[::1]"})
    EXPECT_EQ(address_of("redis://reader:word@" + std::string(host)).password, "word") << host;
}

TEST(RemoteAddressTest, WhatIsWrongIsSaidWithoutTheText) {
  const std::vector<std::pair<const char*, const char*>> wrong = {
      {"", "redis://"},
      {"kernels:6379", "begins neither"},
      {"http://kernels", "begins neither"},
      {"rediss://:word@kernels?password=clear", "asks for it"},
      {"rediss://", "no host"},
      {"redis://", "no host"},
      {"redis://:6379", "no host"},
      {"redis://user@host", "without a password"},
      {"redis://user:@host", "password is empty"},
      {"redis://user:a%zz@host", "percent"},
      {"redis://user:a%0@host", "percent"},
      {"redis://user:a%00@host", "percent"},
      {"redis://host:0", "port"},
      {"redis://host:65536", "port"},
      {"redis://host:port", "port"},
      {"redis://host:", "port"},
      {"redis://[::1", "bracket"},
      {"redis://[::1]6379", "port"},
      {"redis://host/minus", "database"},
      {"redis://host/-1", "database"},
      {"redis://host/99999999999", "database"},
      {"redis://ho st", "blank"},
      {"redis://ho\nst", "blank"},
      {"redis://ho;st", "no host"},
      {"unix://relative", "absolute"},
  };
  for (const auto& [text, what] : wrong) {
    const auto address = parse_remote(text);
    ASSERT_FALSE(address) << text;
    EXPECT_THAT(address.error(), HasSubstr(what)) << text;
  }
  EXPECT_FALSE(parse_remote("unix:///" + std::string(200, 'x')));
  EXPECT_FALSE(parse_remote("redis://" + std::string(300, 'x')));
  EXPECT_THAT(parse_remote("redis://user:hunter2@host:0").error(), Not(HasSubstr("hunter2")));
}

TEST(RemoteSettingsTest, TimeoutsHaveBounds) {
  EXPECT_EQ(parse_remote_timeout("1"), 1'000'000);
  EXPECT_EQ(parse_remote_timeout("60000"), 60'000'000'000);
  for (const char* text : {"", "0", "60001", "-1", "1s", "1.5", "99999999999999999999"})
    EXPECT_EQ(parse_remote_timeout(text), std::nullopt) << text;
}

TEST(RemoteKeyTest, IsHexadecimalAndLongEnough) {
  const std::string digits = "000102030405060708090a0b0c0d0e0f101112131415161718191A1B1C1D1E1F";
  const auto key = parse_remote_key(" \n" + digits + "\r\n");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->size(), 32U);
  EXPECT_EQ(key->back(), 0x1f);
  EXPECT_TRUE(parse_remote_key(digits + digits));
  EXPECT_THAT(parse_remote_key("").error(), HasSubstr("empty"));
  EXPECT_THAT(parse_remote_key(digits.substr(2)).error(), HasSubstr("62 digits"));
  EXPECT_THAT(parse_remote_key(digits + "0").error(), HasSubstr("65 digits"));
  EXPECT_FALSE(parse_remote_key(digits + digits + "00"));
  std::string wrong = digits;
  wrong[10] = 'x';
  const auto refused = parse_remote_key(wrong);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error(), HasSubstr("character 11"));
  EXPECT_THAT(refused.error(), Not(HasSubstr("0001"))) << "a key is not for logs, not even a broken one";
}

class RemoteKeyFileTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text, int mode = 0600) {
    const std::string path = scratch_ / "key";
    std::ofstream(path, std::ios::trunc) << text;
    EXPECT_EQ(::chmod(path.c_str(), static_cast<mode_t>(mode)), 0);
    return path;
  }
  static std::string refusal(const std::string& path) {
    const auto key = read_remote_key(posix_io(), path);
    return key ? "it was read" : key.error();
  }
  const std::string digits_ = std::string(64, 'a') + "\n";
  ScratchDirectory scratch_;
};

TEST_F(RemoteKeyFileTest, OnlyAFileThatOthersCannotTouchIsRead) {
  for (const int mode : {0600, 0400}) EXPECT_TRUE(read_remote_key(posix_io(), file(digits_, mode))) << mode;
  for (const int mode : {0604, 0602, 0601, 0660, 0620, 0644, 0666, 0777}) {
    const std::string refused = refusal(file(digits_, mode));
    EXPECT_THAT(refused, HasSubstr("lets others in")) << mode;
    EXPECT_THAT(refused, HasSubstr("chmod 600"));
  }
  // Mounted secrets are root's and readable by a group; a user's own file is the user's alone.
  EXPECT_EQ(read_remote_key(posix_io(), file(digits_, 0640)).has_value(), ::geteuid() == 0);
}

TEST_F(RemoteKeyFileTest, SomebodyElsesFileIsNotRead) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  const std::string path = file(digits_);
  ASSERT_EQ(::chown(path.c_str(), 12345, 12345), 0);
  EXPECT_THAT(refusal(path), HasSubstr("belongs to user 12345"));
}

TEST_F(RemoteKeyFileTest, StrangeFilesAreRefusedAtOnce) {
  EXPECT_THAT(refusal(scratch_ / "nothing"), HasSubstr("No such file"));
  EXPECT_THAT(refusal(scratch_.path()), HasSubstr("no regular file"));
  const std::string pipe = scratch_ / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(refusal(pipe), HasSubstr("no regular file"));
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("no regular file"));
  EXPECT_THAT(refusal(file("")), HasSubstr("empty"));
  EXPECT_THAT(refusal(file(std::string(5000, 'a'))), HasSubstr("5000 bytes"));
  EXPECT_THAT(refusal(file("correct horse battery staple\n")), HasSubstr("digits"));
}

TEST_F(RemoteKeyFileTest, ALinkIsJudgedByWhereItLeads) {
  const std::string path = file(digits_, 0600);
  std::filesystem::create_symlink(path, scratch_ / "link");
  EXPECT_TRUE(read_remote_key(posix_io(), scratch_ / "link"));
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_THAT(refusal(scratch_ / "link"), HasSubstr("lets others in"));
}

}  // namespace
}  // namespace wavejit::cache
