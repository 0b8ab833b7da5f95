// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The last layer: entries that could not be kept on disk, shared by the engines of one process.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "cache/digest.h"

namespace wavejit::cache {

// Safe from any thread. What is oldest goes first when there is no room.
class MemoryLayer {
 public:
  using Bytes = std::shared_ptr<const std::vector<std::byte>>;

  explicit MemoryLayer(std::size_t limit_bytes) : limit_bytes_(limit_bytes) {}

  // A serialised entry, or null.
  Bytes find(const std::string& target_id, const Digest& digest) const;
  // False if the entry is larger than the whole layer may be.
  bool keep(const std::string& target_id, const Digest& digest, std::vector<std::byte> entry);
  std::size_t entries() const;
  std::size_t bytes() const;

 private:
  using Name = std::pair<std::string, std::array<std::uint8_t, 32>>;

  const std::size_t limit_bytes_;
  mutable std::mutex mutex_;
  std::map<Name, Bytes> entries_;
  std::deque<Name> order_;
  std::size_t bytes_ = 0;
};

// The one of this process. Guess: 64 MiB are a thousand kernels and nobody's whole memory.
MemoryLayer& process_memory();

}  // namespace wavejit::cache
