// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Bounded reads from untrusted bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>

namespace wavejit::simgpu {

class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> data) : data_(data) {}
  std::size_t size() const { return data_.size(); }

  bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= data_.size() && bytes <= data_.size() - offset;
  }
  // Little-endian, as the host is (x86-64 only).
  template <typename T>
  std::optional<T> read(std::uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!holds(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return value;
  }
  std::optional<Bytes> part(std::uint64_t offset, std::uint64_t bytes) const {
    if (!holds(offset, bytes)) return std::nullopt;
    return Bytes(data_.subspan(offset, bytes));
  }
  // The zero-terminated text at `offset`, or nothing when it has no end.
  std::optional<std::string_view> text(std::uint64_t offset) const {
    if (offset >= data_.size()) return std::nullopt;
    const auto* start = reinterpret_cast<const char*>(data_.data() + offset);
    const void* end = std::memchr(start, 0, data_.size() - offset);
    if (end == nullptr) return std::nullopt;
    return std::string_view(start, static_cast<const char*>(end) - start);
  }
  std::span<const std::byte> data() const { return data_; }

 private:
  std::span<const std::byte> data_;
};

}  // namespace wavejit::simgpu
