// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// SHA256_Init and its kin are deprecated in favour of EVP since OpenSSL 3.0; EVP statically linked would bring
// OpenSSL's providers, configuration files and environment with it.
#define OPENSSL_API_COMPAT 0x10100000L
#include "cache/digest.h"

#include <openssl/sha.h>

namespace wavejit::cache {

namespace {
constexpr std::string_view hex_digits = "0123456789abcdef";
}  // namespace

std::string Digest::hex() const {
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const std::uint8_t byte : bytes) {
    text.push_back(hex_digits[byte >> 4]);
    text.push_back(hex_digits[byte & 15]);
  }
  return text;
}

Digest digest_of(std::string_view key_text) {
  Digest digest;
  SHA256_CTX context;
  SHA256_Init(&context);
  SHA256_Update(&context, key_text.data(), key_text.size());
  SHA256_Final(digest.bytes.data(), &context);
  return digest;
}

std::optional<Digest> parse_digest(std::string_view hex) {
  Digest digest;
  if (hex.size() != digest.bytes.size() * 2) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const std::size_t value = hex_digits.find(hex[i]);
    if (value == std::string_view::npos) return std::nullopt;
    digest.bytes[i / 2] = static_cast<std::uint8_t>(digest.bytes[i / 2] << 4 | value);
  }
  return digest;
}

}  // namespace wavejit::cache
