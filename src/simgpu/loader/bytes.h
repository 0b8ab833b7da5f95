#pragma once
// Bounded reads from untrusted bytes.

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
  [[nodiscard]] size_t size() const { return data_.size(); }

  [[nodiscard]] bool holds(uint64_t offset, uint64_t bytes) const {
    return offset <= data_.size() && bytes <= data_.size() - offset;
  }
  /// Little-endian, as the host is (x86-64 only).
  template <typename T>
  [[nodiscard]] std::optional<T> read(uint64_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    if (!holds(offset, sizeof(T))) return std::nullopt;
    T value;
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return value;
  }
  [[nodiscard]] std::optional<Bytes> part(uint64_t offset, uint64_t bytes) const {
    if (!holds(offset, bytes)) return std::nullopt;
    return Bytes(data_.subspan(offset, bytes));
  }
  /// The zero-terminated text at `offset`, or nothing when it has no end.
  [[nodiscard]] std::optional<std::string_view> text(uint64_t offset) const {
    if (offset >= data_.size()) return std::nullopt;
    const auto* start = reinterpret_cast<const char*>(data_.data() + offset);
    const void* end = std::memchr(start, 0, data_.size() - offset);
    if (end == nullptr) return std::nullopt;
    return std::string_view(start, static_cast<const char*>(end) - start);
  }
  [[nodiscard]] std::span<const std::byte> data() const { return data_; }

 private:
  std::span<const std::byte> data_;
};

}  // namespace wavejit::simgpu
