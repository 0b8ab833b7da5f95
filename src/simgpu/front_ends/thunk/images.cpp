// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/front_ends/thunk/images.h"

#include <link.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/machine/allocations/memory.h"

namespace wavejit::simgpu::thunk {
namespace {

std::atomic<const r_debug*>& debug_list() {
  static std::atomic<const r_debug*> list = nullptr;
  return list;
}

bool read_memory(const void* from, void* to, std::size_t bytes) {
  const iovec local{.iov_base = to, .iov_len = bytes};
  const iovec remote{.iov_base = const_cast<void*>(from), .iov_len = bytes};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == static_cast<ssize_t>(bytes);
}

// A zero-terminated text of up to a page, or nothing.
std::optional<std::string> read_text(const char* from) {
  constexpr std::size_t longest = 4096;
  std::string text;
  for (char letter = 0; text.size() < longest && read_memory(from + text.size(), &letter, 1); text += letter) {
    if (letter == 0) return text;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> number_behind(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + key.size());
  const int base = text.starts_with("0x") ? 16 : 10;
  if (base == 16) text.remove_prefix(2);
  std::uint64_t value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value, base).ec != std::errc{}) return std::nullopt;
  return value;
}

std::vector<std::byte> read_image(const ImagePlace& place) {
  constexpr std::uint64_t largest = std::uint64_t{1} << 32;
  if (place.bytes > largest) return {};
  std::vector<std::byte> bytes(place.bytes);
  if (place.file.empty()) {
    const bool read = read_memory(host_pointer<const void>(place.offset), bytes.data(), bytes.size());
    return read ? bytes : std::vector<std::byte>();
  }
  std::ifstream file(place.file, std::ios::binary | std::ios::ate);
  if (bytes.empty()) bytes.resize(file ? static_cast<std::size_t>(file.tellg()) : 0);
  file.seekg(static_cast<std::streamoff>(place.offset));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  return file ? bytes : std::vector<std::byte>();
}

}  // namespace

std::optional<ImagePlace> parse_image_uri(std::string_view uri) {
  ImagePlace place;
  const std::size_t hash = uri.find('#');
  const std::string_view where = uri.substr(0, hash);
  const std::string_view range = hash == std::string_view::npos ? std::string_view() : uri.substr(hash + 1);
  place.offset = number_behind(range, "offset=").value_or(0);
  place.bytes = number_behind(range, "size=").value_or(0);
  constexpr std::string_view in_file = "file://";
  if (where.starts_with(in_file)) {
    place.file = where.substr(in_file.size());
    return place.file.empty() ? std::nullopt : std::optional(place);
  }
  if (where.starts_with("memory://") && place.offset != 0 && place.bytes != 0) return place;
  return std::nullopt;
}

void set_debug_list(const void* list) { debug_list() = static_cast<const r_debug*>(list); }

std::optional<CodeImage> find_image(std::uint64_t address) {
  r_debug list{};
  if (!read_memory(debug_list(), &list, sizeof list)) return std::nullopt;
  link_map nearest{};
  const link_map* place = list.r_map;
  constexpr int most = 65536;
  for (int i = 0; place != nullptr && i < most; ++i) {
    link_map entry{};
    if (!read_memory(place, &entry, sizeof entry)) break;
    if (entry.l_addr <= address && entry.l_addr > nearest.l_addr) nearest = entry;
    place = entry.l_next;
  }
  if (nearest.l_name == nullptr) return std::nullopt;
  const auto uri = read_text(nearest.l_name);
  const auto image = uri ? parse_image_uri(*uri) : std::nullopt;
  if (!image) return std::nullopt;
  CodeImage found{.bytes = read_image(*image), .load_address = nearest.l_addr};
  if (found.bytes.empty()) return std::nullopt;
  return found;
}

}  // namespace wavejit::simgpu::thunk
