// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The seal: what it covers, what breaks it, and that it is the one that docs/cache-format.md describes.
#include "remote/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

namespace wavejit::remote {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<unsigned char>;

Bytes key_of(unsigned char first) {
  Bytes key(32);
  std::iota(key.begin(), key.end(), first);
  return key;
}

Seal seal_with(unsigned char first) { return *Seal::make(key_of(first)); }

Name some_name() {
  Name name{.digest = {}, .target_id = "gfx950", .entry_format = 1};
  name.digest.fill(0xab);
  return name;
}

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

Bytes sealed(const Seal& seal, const Name& name, const Bytes& entry) {
  const auto header = seal.header_of(name, entry);
  Bytes bytes(header->begin(), header->end());
  bytes.insert(bytes.end(), entry.begin(), entry.end());
  return bytes;
}

std::string hex(std::span<const unsigned char> bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(SealTest, IsTheHmacOfTheDocumentedBytes) {
  // Python's hmac over the grammar in seal.h, key 00 01 … 1f.
  const Seal seal = seal_with(0);
  const auto header = seal.header_of(some_name(), bytes_of("an entry"));
  ASSERT_TRUE(header);
  EXPECT_EQ(hex(*header), hex(bytes_of("WJREMOTE")) + "0100000000000000" +
                              "74e0f94cf43bf87eb18ded5fee92855eaa1c4307676097c76e03420822bd1f41");
  EXPECT_EQ(seal.key_id(), "5aa010bdf88e7dab");
}

TEST(SealTest, OpensWhatItSealed) {
  const Seal seal = seal_with(1);
  for (const std::size_t size : {0U, 1U, 63U, 64U, 70'000U}) {
    const Bytes entry(size, 0x5a);
    const Bytes bytes = sealed(seal, some_name(), entry);
    const auto opened = seal.open(some_name(), bytes);
    ASSERT_TRUE(opened) << size;
    EXPECT_TRUE(std::ranges::equal(*opened, entry));
  }
}

TEST(SealTest, EveryFlippedBitAndEveryLengthIsSeen) {
  const Seal seal = seal_with(1);
  const Bytes good = sealed(seal, some_name(), bytes_of("the bytes of an entry"));
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<unsigned char>(1U << bit % 8);
    const auto opened = seal.open(some_name(), bad);
    ASSERT_FALSE(opened) << "bit " << bit;
    EXPECT_EQ(opened.error().status, WAVEJIT_REMOTE_DAMAGED);
  }
  for (std::size_t length = 0; length < good.size(); ++length)
    ASSERT_FALSE(seal.open(some_name(), std::span(good).first(length))) << length;
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_FALSE(seal.open(some_name(), longer));
}

TEST(SealTest, AnEntryCannotBeMoved) {
  const Seal seal = seal_with(1);
  const Bytes bytes = sealed(seal, some_name(), bytes_of("entry"));
  Name other = some_name();
  other.digest[31] ^= 1;
  EXPECT_FALSE(seal.open(other, bytes));
  other = some_name();
  other.target_id = "gfx942";
  EXPECT_FALSE(seal.open(other, bytes));
  other = some_name();
  other.entry_format = 2;
  const auto opened = seal.open(other, bytes);
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().what, HasSubstr("HMAC-SHA256"));
}

// Where one part ends and the next begins is sealed too.
TEST(SealTest, PartsDoNotRunIntoEachOther) {
  const Seal seal = seal_with(1);
  Name longer = some_name();
  longer.target_id = "gfx950x";
  const auto one = seal.header_of(some_name(), bytes_of("xentry"));
  const auto two = seal.header_of(longer, bytes_of("entry"));
  EXPECT_NE(hex(*one), hex(*two));
}

TEST(SealTest, AnotherKeyOpensNothing) {
  const Bytes bytes = sealed(seal_with(1), some_name(), bytes_of("entry"));
  const Seal other = seal_with(2);
  EXPECT_FALSE(other.open(some_name(), bytes));
  EXPECT_NE(seal_with(1).key_id(), other.key_id());
}

TEST(SealTest, AShortKeyIsRefused) {
  const auto seal = Seal::make(Bytes(31, 1));
  ASSERT_FALSE(seal);
  EXPECT_THAT(seal.error(), HasSubstr("31 bytes"));
}

}  // namespace
}  // namespace wavejit::remote
