// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/remote_key.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <array>
#include <charconv>
#include <optional>

#include "cache/files.h"

namespace wavejit::cache {

namespace {

constexpr std::size_t max_file_bytes = 4096;
constexpr std::string_view blanks = " \t\r\n";

// Gone from memory when they were read.
struct Digits {
  Digits() = default;
  Digits(const Digits&) = delete;
  Digits& operator=(const Digits&) = delete;
  ~Digits() { ::explicit_bzero(bytes.data(), bytes.size()); }

  std::array<char, max_file_bytes + 1> bytes{};
};

std::string octal(std::uint32_t permissions) {
  std::string text(4, '0');
  for (int i = 3; i >= 0; --i, permissions >>= 3U)
    text[static_cast<std::size_t>(i)] = static_cast<char>('0' + (permissions & 7U));
  return text;
}

std::optional<std::string> distrust_of(const FileStatus& status, std::uint32_t user) {
  if (status.type != FileType::regular) return "it is no regular file";
  if (status.owner != user && status.owner != 0)
    return "it belongs to user " + std::to_string(status.owner) + "; only a file of user " + std::to_string(user) +
           " or of root is trusted";
  // A group that may read root's file is how secrets are mounted; a file of our own needs no group.
  const std::uint32_t others = status.owner == user && user != 0 ? S_IRWXG | S_IRWXO : S_IWGRP | S_IXGRP | S_IRWXO;
  if ((status.permissions & others) != 0)
    return "its mode " + octal(status.permissions) + " lets others in; chmod 600 makes it usable";
  if (status.size > max_file_bytes) return "it has " + std::to_string(status.size) + " bytes, more than a key";
  return std::nullopt;
}

}  // namespace

std::expected<std::vector<std::uint8_t>, std::string> parse_remote_key(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return std::unexpected("it is empty");
  text = text.substr(begin, text.find_last_not_of(blanks) + 1 - begin);
  if (text.size() % 2 != 0 || text.size() < 2 * min_remote_key_bytes || text.size() > 2 * max_remote_key_bytes)
    return std::unexpected("it holds " + std::to_string(text.size()) + " digits instead of 64 to 128, in pairs");
  std::vector<std::uint8_t> key(text.size() / 2);
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto [end, error] = std::from_chars(text.data() + 2 * i, text.data() + 2 * i + 2, key[i], 16);
    if (error != std::errc{} || end != text.data() + 2 * i + 2)
      return std::unexpected("character " + std::to_string(2 * i + 1) + " or the next is no hexadecimal digit");
  }
  return key;
}

std::expected<std::vector<std::uint8_t>, std::string> read_remote_key(IoInterface& io, const std::string& path) {
  const auto because = [&](const std::string& what) { return std::unexpected(path + ": " + what); };
  const auto number = uninterrupted([&] { return io.open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0); });
  if (!number) return because(errno_text(number.error()));
  const FileHandle file(io, *number);
  const auto status = io.fstat(file.number());
  if (!status) return because(errno_text(status.error()));
  if (const auto distrust = distrust_of(*status, io.effective_user())) return because(*distrust);
  Digits text;
  std::size_t size = 0;
  while (size < text.bytes.size()) {
    const auto read =
        uninterrupted([&] { return io.read(file.number(), text.bytes.data() + size, text.bytes.size() - size); });
    if (!read) return because(errno_text(read.error()));
    if (*read == 0) break;
    size += *read;
  }
  auto key = parse_remote_key(std::string_view(text.bytes.data(), size));
  if (!key) return because(key.error());
  return key;
}

}  // namespace wavejit::cache
