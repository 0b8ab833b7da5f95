// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/memory_layer.h"

namespace wavejit::cache {

MemoryLayer::Bytes MemoryLayer::find(const std::string& target_id, const Digest& digest) const {
  const std::scoped_lock lock(mutex_);
  const auto found = entries_.find({target_id, digest.bytes});
  return found == entries_.end() ? nullptr : found->second;
}

bool MemoryLayer::keep(const std::string& target_id, const Digest& digest, std::vector<std::byte> entry) {
  if (entry.size() > limit_bytes_) return false;
  const std::size_t size = entry.size();
  auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(entry));
  const std::scoped_lock lock(mutex_);
  auto& slot = entries_[{target_id, digest.bytes}];
  if (slot == nullptr) {
    order_.emplace_back(target_id, digest.bytes);
  } else {
    bytes_ -= slot->size();
  }
  slot = std::move(bytes);
  bytes_ += size;
  while (bytes_ > limit_bytes_) {
    const auto oldest = entries_.find(order_.front());
    bytes_ -= oldest->second->size();
    entries_.erase(oldest);
    order_.pop_front();
  }
  return true;
}

std::size_t MemoryLayer::entries() const {
  const std::scoped_lock lock(mutex_);
  return entries_.size();
}

std::size_t MemoryLayer::bytes() const {
  const std::scoped_lock lock(mutex_);
  return bytes_;
}

MemoryLayer& process_memory() {
  // Never destroyed: engines may outlive main().
  static MemoryLayer& memory = *new MemoryLayer(std::size_t{64} << 20);
  return memory;
}

}  // namespace wavejit::cache
