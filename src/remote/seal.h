// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// What makes an entry from a shared server as good as one from our own disk: HMAC-SHA256 (libcrypto's) under a key that
// the fleet shares and the server does not know.
//
//   sealed  := magic 8 bytes "WJREMOTE"   format u32   reserved u32 (0)   mac 32 bytes   entry
//   mac     := HMAC-SHA256(key, "wavejit remote entry\0"  format u32  entry_format u32  digest 32 bytes
//                               target_id_bytes u32  target_id  entry_bytes u64  entry)
//   key id  := the first 8 bytes of HMAC-SHA256(key, "wavejit remote key id\0"), in hex
//
// Integers are little-endian. Every part has a fixed size or is preceded by its own, so that no two names and entries
// feed the same bytes. Digest and target id are what is asked for, not what the answer says: an entry that was moved to
// another name, another target, or another format does not verify.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "remote/failure.h"

namespace wavejit::remote {

inline constexpr std::uint32_t seal_format = 1;
inline constexpr std::size_t mac_bytes = 32;
inline constexpr std::size_t sealed_header_bytes = 16 + mac_bytes;
inline constexpr std::size_t digest_bytes = 32;
inline constexpr std::size_t min_key_bytes = 32;  // as many as the MAC has

struct Name {
  std::array<unsigned char, digest_bytes> digest{};
  std::string target_id;
  std::uint32_t entry_format = 0;
};

class Seal {
 public:
  // Fails only when libcrypto does, or for a key that is too short.
  static std::expected<Seal, std::string> make(std::span<const unsigned char> key);
  Seal(Seal&&) noexcept;
  Seal& operator=(Seal&&) noexcept;
  ~Seal();

  const std::string& key_id() const { return key_id_; }
  // What stands before the entry's bytes on the server.
  Result<std::array<unsigned char, sealed_header_bytes>> header_of(const Name& name,
                                                                   std::span<const unsigned char> entry) const;
  // The entry within `sealed`, verified for `name`; points into it.
  Result<std::span<const unsigned char>> open(const Name& name, std::span<const unsigned char> sealed) const;

 private:
  using Mac = std::array<unsigned char, mac_bytes>;
  struct Keyed;  // libcrypto's side

  explicit Seal(std::unique_ptr<Keyed> keyed);
  Result<Mac> mac_of(const Name& name, std::span<const unsigned char> entry) const;

  std::unique_ptr<Keyed> keyed_;
  std::string key_id_;
};

}  // namespace wavejit::remote
