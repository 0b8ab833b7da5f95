// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The format and its parser: whatever the bytes, an entry or a reason, and nothing read outside of them (the same tests
// run under AddressSanitizer, and `exact` puts the bytes at the very end of an allocation).
#include "cache/entry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>
#include <limits>

#include "cache_test_support.h"

namespace wavejit::cache {
namespace {

using ::testing::HasSubstr;

struct Sample {
  std::vector<std::byte> code = sample_code(5000);
  Entry entry{.key_text = sample_key().text(), .target_id = "gfx950", .kernels = sample_kernels(), .code_object = code};
  std::vector<std::byte> bytes = serialise(entry).value();
};

std::size_t header_bytes(const std::vector<std::byte>& bytes) {
  std::uint32_t size = 0;
  std::memcpy(&size, bytes.data() + 12, sizeof size);
  return size;
}

// A copy in an allocation of exactly that size.
std::expected<Entry, std::string> parse_exact(std::span<const std::byte> bytes) {
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  return parse(exact);
}

template <typename T>
std::vector<std::byte> with_field(std::vector<std::byte> bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
  return bytes;
}

// As a writer with wrong ideas would make it: the checksum is right.
std::vector<std::byte> resealed(std::vector<std::byte> bytes) {
  const std::size_t covered = bytes.size() - entry_checksum_bytes;
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), covered));
  std::memcpy(bytes.data() + covered, &canonical, sizeof canonical);
  return bytes;
}

TEST(EntryTest, RoundTrips) {
  const Sample sample;
  const auto parsed = parse(sample.bytes);
  ASSERT_TRUE(parsed) << parsed.error();
  EXPECT_EQ(parsed->key_text, sample.entry.key_text);
  EXPECT_EQ(parsed->target_id, sample.entry.target_id);
  EXPECT_EQ(parsed->kernels, sample.entry.kernels);
  EXPECT_TRUE(same_bytes(parsed->code_object, sample.code));
  EXPECT_EQ((parsed->code_object.data() - sample.bytes.data()) % entry_alignment, 0);
}

TEST(EntryTest, SameEntrySameBytes) {
  const Sample a;
  const Sample b;
  EXPECT_TRUE(same_bytes(a.bytes, b.bytes));
}

TEST(EntryTest, LimitsRoundTripAndOneMoreIsRefused) {
  const auto code = sample_code(1);
  Entry entry{.key_text = std::string(max_key_text_bytes, 'k'),
              .target_id = std::string(max_target_id_bytes, 't'),
              .kernels = {},
              .code_object = code};
  for (std::size_t i = 0; i < max_kernels; ++i)
    entry.kernels.push_back({.name = std::string(max_kernel_name_bytes, 'n')});
  const auto bytes = serialise(entry);
  ASSERT_TRUE(bytes) << bytes.error();
  ASSERT_TRUE(parse(*bytes));

  const auto refused = [&](auto change, const char* word) {
    Entry changed = entry;
    change(changed);
    const auto result = serialise(changed);
    ASSERT_FALSE(result) << word;
    EXPECT_THAT(result.error(), HasSubstr(word));
  };
  refused([](Entry& e) { e.key_text.push_back('k'); }, "key text bytes is 16385; 1 to 16384");
  refused([](Entry& e) { e.key_text.clear(); }, "key text bytes is 0");
  refused([](Entry& e) { e.target_id = "../escape"; }, "'../escape' is no folder name");
  refused([](Entry& e) { e.kernels.push_back({.name = "n"}); }, "kernel count is 17; 1 to 16");
  refused([](Entry& e) { e.kernels.clear(); }, "kernel count is 0");
  refused([](Entry& e) { e.kernels[3].name.push_back('n'); }, "kernel name bytes is 1025");
  refused([](Entry& e) { e.kernels[0].name.clear(); }, "kernel name bytes is 0");
  refused([](Entry& e) { e.key_text[5] = '\n'; }, "key text holds control characters");
  refused([](Entry& e) { e.kernels[0].name[0] = '\x1b'; }, "kernel name holds control characters");
  refused([](Entry& e) { e.code_object = {}; }, "code object bytes is 0");
  const std::vector<std::byte> huge(max_entry_bytes);
  refused([&](Entry& e) { e.code_object = huge; }, "code object bytes is 67108864");
}

// Reliability case 1: all bits of the header and the checksum, one bit in each 64 bytes of the code object.
TEST(EntryTest, EveryFlippedBitIsFound) {
  const Sample sample;
  const std::size_t header = header_bytes(sample.bytes);
  const std::size_t payload_end = sample.bytes.size() - entry_checksum_bytes;
  std::size_t flips = 0;
  std::vector<std::byte> bytes = sample.bytes;
  const auto flip = [&](std::size_t at, unsigned bit) {
    bytes[at] ^= static_cast<std::byte>(1U << bit);
    EXPECT_FALSE(parse(bytes)) << "byte " << at << " bit " << bit;
    bytes[at] ^= static_cast<std::byte>(1U << bit);
    ++flips;
  };
  for (std::size_t at = 0; at < header; ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) flip(at, bit);
  }
  for (std::size_t at = header; at < payload_end; at += 64) flip(at + at / 64 % 64 % (payload_end - at), at / 64 % 8);
  for (std::size_t at = payload_end; at < bytes.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) flip(at, bit);
  }
  EXPECT_TRUE(parse(bytes));
  EXPECT_GT(flips, header * 8);
}

// Case 2.
TEST(EntryTest, EveryTruncationIsFound) {
  const Sample sample;
  const std::size_t header = header_bytes(sample.bytes);
  for (std::size_t size = 0; size < sample.bytes.size(); size += size < header + 8 ? 1 : 97) {
    EXPECT_FALSE(parse_exact(std::span(sample.bytes).first(size))) << size;
  }
  EXPECT_FALSE(parse_exact(std::span(sample.bytes).first(sample.bytes.size() - 1)));
}

// Case 3.
TEST(EntryTest, AppendedBytesAreFound) {
  const Sample sample;
  for (const std::size_t more : {std::size_t{1}, std::size_t{16}, std::size_t{64}, std::size_t{1} << 20}) {
    std::vector<std::byte> bytes = sample.bytes;
    bytes.resize(bytes.size() + more);
    EXPECT_FALSE(parse_exact(bytes)) << more;
  }
}

// Cases 3 and 4, with a checksum that is right: the parser does not lean on it.
TEST(EntryTest, WrongSizesWithARightChecksumAreFound) {
  const Sample sample;
  for (const std::size_t offset : {std::size_t{12}, std::size_t{24}, std::size_t{28}, std::size_t{32}, std::size_t{36},
                                   entry_fixed_bytes, entry_fixed_bytes + entry_kernel_bytes}) {
    for (const std::uint32_t value : {0U, 1U, 15U, 17U, 63U, 64U, 1U << 16, 1U << 31, ~0U, ~0U - 15}) {
      std::uint32_t old = 0;
      std::memcpy(&old, sample.bytes.data() + offset, sizeof old);
      if (value == old) continue;
      EXPECT_FALSE(parse_exact(resealed(with_field(sample.bytes, offset, value)))) << offset << " = " << value;
    }
  }
  for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1} << 31, std::uint64_t{1} << 63, ~std::uint64_t{0},
                                    ~std::uint64_t{0} - 200, std::uint64_t{4999}, std::uint64_t{5001}}) {
    EXPECT_FALSE(parse_exact(resealed(with_field(sample.bytes, 16, value)))) << value;
  }
  // Header and payload shifted against each other: the sum is right.
  const auto header = static_cast<std::uint32_t>(header_bytes(sample.bytes));
  for (const std::uint32_t shift : {1U, 64U, 128U}) {
    auto bytes = with_field(sample.bytes, 12, header - shift);
    EXPECT_FALSE(parse_exact(resealed(with_field(bytes, 16, std::uint64_t{5000} + shift)))) << shift;
    bytes = with_field(sample.bytes, 12, header + shift);
    EXPECT_FALSE(parse_exact(resealed(with_field(bytes, 16, std::uint64_t{5000} - shift)))) << shift;
  }
}

// The first numbers in a key text and target id traded against each other: the sum is right, the texts are not.
TEST(EntryTest, ShiftedTextsDoNotPassAsThisKey) {
  const Sample sample;
  const auto key = static_cast<std::uint32_t>(sample.entry.key_text.size());
  auto bytes = with_field(sample.bytes, 24, key - 1);
  bytes = resealed(with_field(bytes, 28, std::uint32_t{7}));
  const auto parsed = parse_exact(bytes);
  if (parsed) EXPECT_NE(parsed->key_text, sample.entry.key_text);
}

// Each limit by itself: two lengths traded against each other, so that everything else adds up.
TEST(EntryTest, LimitsHoldWithARightChecksum) {
  const auto code = sample_code(500);
  Entry entry{.key_text = std::string(max_key_text_bytes, 'k'),
              .target_id = std::string(max_target_id_bytes, 't'),
              .kernels = {},
              .code_object = code};
  for (std::size_t i = 0; i < max_kernels; ++i)
    entry.kernels.push_back({.name = std::string(max_kernel_name_bytes, 'n')});
  const auto bytes = serialise(entry).value();
  const auto refused = [&](std::size_t field, std::uint32_t value, std::size_t other, std::uint32_t other_value,
                           const char* word) {
    const auto parsed = parse_exact(resealed(with_field(with_field(bytes, field, value), other, other_value)));
    ASSERT_FALSE(parsed) << word;
    EXPECT_THAT(parsed.error(), HasSubstr(word));
  };
  refused(24, 16385, 28, 127, "key_text_bytes is 16385; 1 to 16384");
  refused(24, 16383, 28, 129, "target_id_bytes is 129; 1 to 128");
  refused(40, 1025, 72, 1023, "name_bytes is 1025; 1 to 1024");
  refused(32, 17, 36, 0, "kernel_count is 17; 1 to 16");
  refused(36, 1, 36, 1, "reserved is 1");
}

// A header that claims a line more than it needs, where the code object begins with zeros.
TEST(EntryTest, HeaderHasOneLengthOnly) {
  std::vector<std::byte> code(500);
  Entry entry{.key_text = "key", .target_id = "gfx950", .kernels = sample_kernels(), .code_object = code};
  const auto bytes = serialise(entry).value();
  const auto header = static_cast<std::uint32_t>(header_bytes(bytes));
  const auto parsed =
      parse_exact(resealed(with_field(with_field(bytes, 12, header + 64), 16, std::uint64_t{500 - 64})));
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error(), HasSubstr("its parts need " + std::to_string(header)));
}

TEST(EntryTest, PaddingMustBeZero) {
  Sample sample;
  const std::size_t header = header_bytes(sample.bytes);
  ASSERT_EQ(sample.bytes[header - 1], std::byte{0}) << "choose a sample with padding";
  const auto parsed = parse_exact(resealed(with_field(sample.bytes, header - 1, std::uint8_t{1})));
  ASSERT_FALSE(parsed);
  EXPECT_THAT(parsed.error(), HasSubstr("padding"));
}

TEST(EntryTest, WrongMagicAndVersionAreNamed) {
  const Sample sample;
  const auto magic = parse_exact(resealed(with_field(sample.bytes, 0, std::uint8_t{'X'})));
  ASSERT_FALSE(magic);
  EXPECT_THAT(magic.error(), HasSubstr("magic"));
  for (const std::uint32_t version : {entry_format_version - 1, entry_format_version + 1, entry_format_version << 24}) {
    const auto other = parse_exact(resealed(with_field(sample.bytes, 8, version)));
    ASSERT_FALSE(other);
    EXPECT_THAT(other.error(), HasSubstr("format version is " + std::to_string(version) + "; this program reads 1"));
  }
}

TEST(EntryTest, EmptyZerosAndNoiseAreNoEntries) {
  EXPECT_FALSE(parse({}));
  for (const std::size_t size : {std::size_t{1}, std::size_t{39}, std::size_t{56}, std::size_t{4096}}) {
    EXPECT_FALSE(parse_exact(std::vector<std::byte>(size)));
    EXPECT_FALSE(parse_exact(sample_code(size, 7)));
  }
  EXPECT_FALSE(parse(std::vector<std::byte>(max_entry_bytes + 1)));
}

// Noise behind an honest beginning: the parser's own arithmetic, not the magic, has to hold.
TEST(EntryTest, NoiseBehindTheMagicNeverReadsOutside) {
  const Sample sample;
  for (std::uint32_t seed = 0; seed < 20'000; ++seed) {
    std::vector<std::byte> bytes = sample_code(56 + seed % 300, seed);
    std::memcpy(bytes.data(), sample.bytes.data(), 12);
    if (seed % 2 == 0) {
      // Sizes that add up, counts that stay small: deeper into the parser.
      const std::uint64_t payload = 1 + seed % 16;
      bytes = with_field(bytes, 12, static_cast<std::uint32_t>(bytes.size() - payload - entry_checksum_bytes));
      bytes = with_field(bytes, 16, payload);
      bytes = with_field(bytes, 24, seed % 97);
      bytes = with_field(bytes, 28, seed % 31);
      bytes = with_field(bytes, 32, seed % 18);
      bytes = with_field(bytes, 36, std::uint32_t{0});
    }
    EXPECT_FALSE(parse_exact(resealed(bytes))) << seed;
  }
}

}  // namespace
}  // namespace wavejit::cache
