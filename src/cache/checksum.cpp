// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstring>

namespace wavejit::cache {

namespace {

Checksum canonical(XXH128_hash_t hash) {
  XXH128_canonical_t raw;
  XXH128_canonicalFromHash(&raw, hash);
  Checksum checksum;
  static_assert(sizeof raw == sizeof checksum);
  std::memcpy(checksum.data(), &raw, sizeof raw);
  return checksum;
}

}  // namespace

Checksum checksum_of(std::span<const std::byte> bytes) { return canonical(XXH3_128bits(bytes.data(), bytes.size())); }

Checksum checksum_of(std::span<const std::byte> first, std::span<const std::byte> second) {
  XXH3_state_t state;
  XXH3_INITSTATE(&state);
  (void)XXH3_128bits_reset(&state);
  (void)XXH3_128bits_update(&state, first.data(), first.size());
  (void)XXH3_128bits_update(&state, second.data(), second.size());
  return canonical(XXH3_128bits_digest(&state));
}

}  // namespace wavejit::cache
