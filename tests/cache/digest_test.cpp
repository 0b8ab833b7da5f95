// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/digest.h"

#include <gtest/gtest.h>

namespace wavejit::cache {
namespace {

// FIPS 180-4's examples: anybody can check a file's name with sha256sum.
TEST(DigestTest, IsSha256) {
  EXPECT_EQ(digest_of("").hex(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(digest_of("abc").hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(digest_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq").hex(),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(digest_of(std::string(1'000'000, 'a')).hex(),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(DigestTest, HexRoundTrips) {
  const Digest digest = digest_of("a kernel");
  EXPECT_EQ(parse_digest(digest.hex()), digest);
}

TEST(DigestTest, RefusesOtherHex) {
  const std::string hex = digest_of("a kernel").hex();
  EXPECT_FALSE(parse_digest(""));
  EXPECT_FALSE(parse_digest(hex.substr(1)));
  EXPECT_FALSE(parse_digest(hex + "0"));
  std::string upper = hex;
  upper[3] = 'A';
  EXPECT_FALSE(parse_digest(upper));
  std::string odd = hex;
  odd[63] = 'g';
  EXPECT_FALSE(parse_digest(odd));
  std::string nul = hex;
  nul[10] = '\0';
  EXPECT_FALSE(parse_digest(nul));
}

}  // namespace
}  // namespace wavejit::cache
