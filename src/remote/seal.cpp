// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "remote/seal.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <utility>

#include "remote/hex.h"

namespace wavejit::remote {

namespace {

using namespace std::string_view_literals;

constexpr std::string_view magic = "WJREMOTE"sv;
constexpr std::string_view entry_domain = "wavejit remote entry\0"sv;
constexpr std::string_view key_id_domain = "wavejit remote key id\0"sv;

using Bytes = std::span<const unsigned char>;

Bytes bytes_of(std::string_view text) { return {reinterpret_cast<const unsigned char*>(text.data()), text.size()}; }

template <typename T>
std::array<unsigned char, sizeof(T)> little_endian(T value) {
  std::array<unsigned char, sizeof(T)> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<unsigned char>(value >> (8 * i));
  return bytes;
}

struct FreeContext {
  void operator()(EVP_MAC_CTX* context) const { EVP_MAC_CTX_free(context); }
};
using Context = std::unique_ptr<EVP_MAC_CTX, FreeContext>;

}  // namespace

// A library context of our own: no configuration file, no provider, no setting of anybody else counts.
struct Seal::Keyed {
  OSSL_LIB_CTX* library = OSSL_LIB_CTX_new();
  EVP_MAC* algorithm = library != nullptr ? EVP_MAC_fetch(library, OSSL_MAC_NAME_HMAC, nullptr) : nullptr;
  Context context{algorithm != nullptr ? EVP_MAC_CTX_new(algorithm) : nullptr};

  Keyed() = default;
  Keyed(const Keyed&) = delete;
  Keyed& operator=(const Keyed&) = delete;
  ~Keyed() {
    context.reset();
    EVP_MAC_free(algorithm);
    OSSL_LIB_CTX_free(library);
  }

  bool take(Bytes key) {
    if (context == nullptr) return false;
    std::string digest = "SHA256";
    const std::array parameters = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
                                   OSSL_PARAM_construct_end()};
    return EVP_MAC_init(context.get(), key.data(), key.size(), parameters.data()) == 1;
  }

  Result<Mac> mac_of(std::initializer_list<Bytes> parts) const {
    const Context running(EVP_MAC_CTX_dup(context.get()));
    bool good = running != nullptr;
    for (const Bytes part : parts) good = good && EVP_MAC_update(running.get(), part.data(), part.size()) == 1;
    Mac mac{};
    std::size_t written = 0;
    good = good && EVP_MAC_final(running.get(), mac.data(), &written, mac.size()) == 1 && written == mac.size();
    if (!good) return fault("libcrypto computes no HMAC-SHA256");
    return mac;
  }
};

Seal::Seal(std::unique_ptr<Keyed> keyed) : keyed_(std::move(keyed)) {}
Seal::Seal(Seal&&) noexcept = default;
Seal& Seal::operator=(Seal&&) noexcept = default;
Seal::~Seal() = default;

std::expected<Seal, std::string> Seal::make(Bytes key) {
  if (key.size() < min_key_bytes) {
    return std::unexpected("the key has " + std::to_string(key.size()) +
                           " bytes; accepted: " + std::to_string(min_key_bytes) + " at least");
  }
  // Ours alone, since this libcrypto is: no openssl.cnf, and nothing torn down at exit under a thread that still works.
  OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ATEXIT, nullptr);
  auto keyed = std::make_unique<Keyed>();
  if (!keyed->take(key)) return std::unexpected("libcrypto has no HMAC-SHA256");
  const auto id = keyed->mac_of({bytes_of(key_id_domain)});
  if (!id) return std::unexpected(id.error().what);
  Seal seal(std::move(keyed));
  seal.key_id_ = hex_of(std::span(*id).first<8>());
  return seal;
}

Result<Seal::Mac> Seal::mac_of(const Name& name, Bytes entry) const {
  const auto format = little_endian(seal_format);
  const auto entry_format = little_endian(name.entry_format);
  const auto target_bytes = little_endian(static_cast<std::uint32_t>(name.target_id.size()));
  const auto entry_bytes = little_endian(static_cast<std::uint64_t>(entry.size()));
  return keyed_->mac_of({bytes_of(entry_domain), format, entry_format, name.digest, target_bytes,
                         bytes_of(name.target_id), entry_bytes, entry});
}

Result<std::array<unsigned char, sealed_header_bytes>> Seal::header_of(const Name& name, Bytes entry) const {
  const auto mac = mac_of(name, entry);
  if (!mac) return std::unexpected(mac.error());
  std::array<unsigned char, sealed_header_bytes> header{};
  auto out = std::ranges::copy(bytes_of(magic), header.begin()).out;
  out = std::ranges::copy(little_endian(seal_format), out).out;
  out += 4;  // reserved
  std::ranges::copy(*mac, out);
  return header;
}

Result<Bytes> Seal::open(const Name& name, Bytes sealed) const {
  if (sealed.size() < sealed_header_bytes)
    return damaged("it has " + std::to_string(sealed.size()) + " bytes, fewer than a seal");
  const Bytes entry = sealed.subspan(sealed_header_bytes);
  const auto header = header_of(name, entry);
  if (!header) return std::unexpected(header.error());
  if (!std::ranges::equal(sealed.first(16), Bytes(*header).first(16)))
    return damaged("it does not begin as a sealed entry of format " + std::to_string(seal_format));
  // In a time that does not tell where the first difference is.
  if (CRYPTO_memcmp(sealed.data() + 16, header->data() + 16, mac_bytes) != 0)
    return damaged("its seal (HMAC-SHA256) does not fit: not written with this key, or not under this name");
  return entry;
}

}  // namespace wavejit::remote
