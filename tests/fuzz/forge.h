// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// A fuzzer never guesses a checksum: these put the right one where it belongs, so that what lies behind is reached.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "cache/archive.h"
#include "cache/checksum.h"
#include "cache/entry.h"

namespace wavejit::fuzz {

inline std::vector<std::byte> with_entry_checksum(std::span<const std::byte> bytes) {
  std::vector<std::byte> forged(bytes.begin(), bytes.end());
  if (forged.size() < cache::entry_checksum_bytes) return forged;
  const std::size_t covered = forged.size() - cache::entry_checksum_bytes;
  const cache::Checksum checksum = cache::checksum_of(std::span<const std::byte>(forged).first(covered));
  std::memcpy(forged.data() + covered, checksum.data(), checksum.size());
  return forged;
}

// Also the fields of the foot that must agree with the size.
inline std::vector<std::byte> with_archive_checksum(std::span<const std::byte> bytes) {
  std::vector<std::byte> forged(bytes.begin(), bytes.end());
  if (forged.size() < cache::archive_head_bytes + cache::archive_foot_bytes) return forged;
  std::byte* foot = forged.data() + forged.size() - cache::archive_foot_bytes;
  std::uint64_t count = 0;
  std::memcpy(&count, foot, sizeof count);
  const std::uint64_t room =
      (forged.size() - cache::archive_head_bytes - cache::archive_foot_bytes) / cache::archive_record_bytes;
  count = room == 0 ? 0 : count % (room + 1);
  const std::uint64_t size = forged.size();
  const std::uint64_t index = size - cache::archive_foot_bytes - count * cache::archive_record_bytes;
  std::memcpy(foot, &count, sizeof count);
  std::memcpy(foot + 8, &index, sizeof index);
  std::memcpy(foot + 16, &size, sizeof size);
  const auto covered = std::span<const std::byte>(forged).subspan(index, size - index - sizeof(cache::Checksum));
  const cache::Checksum checksum = cache::checksum_of(covered);
  std::memcpy(forged.data() + size - checksum.size(), checksum.data(), checksum.size());
  return forged;
}

// An assertion that fuzzing stops at, in every build type.
inline void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace wavejit::fuzz
