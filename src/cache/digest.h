// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The 256-bit name of a key text: SHA-256, so that `printf %s "$key_text" | sha256sum` gives an entry's file name on
// any machine. The digest only names files; identity is the key text itself, which every lookup compares.
//
// From OpenSSL's libcrypto.a: kept by many, in Debian 12 and 13, with SHA-NI and AVX2 chosen at run time. Its low-level
// SHA256_* functions link to 29 KB without the provider machinery; static, so that libwavejit.so depends on nothing.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wavejit::cache {

struct Digest {
  std::array<std::uint8_t, 32> bytes{};

  bool operator==(const Digest&) const = default;
  // 64 lower-case hexadecimal digits.
  std::string hex() const;
};

Digest digest_of(std::string_view key_text);
// The inverse of hex(): exactly 64 lower-case digits.
std::optional<Digest> parse_digest(std::string_view hex);

}  // namespace wavejit::cache
