// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The key that a fleet seals its entries with, from a file that nobody else can change or read.
//
// Never from an environment variable: those are handed to every child process, stand in /proc, in crash reports and in
// what container tools print, and whoever has this key and the server can run code on our GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

#include "cache/io.h"

namespace wavejit::cache {

inline constexpr std::size_t min_remote_key_bytes = 32;
inline constexpr std::size_t max_remote_key_bytes = 64;
inline constexpr const char* accepted_remote_keys =
    "64 to 128 hexadecimal digits in a file of this user with mode 0600, or of root with mode 0640 at most: "
    "`(umask 077; openssl rand -hex 32 > FILE)` makes one";

// The error is "<path>: <what is wrong>". A symbolic link is followed, because mounted secrets are links. The owner and
// the mode of the file that it leads to count: nobody else may have been able to write it.
std::expected<std::vector<std::uint8_t>, std::string> read_remote_key(IoInterface& io, const std::string& path);
// The digits, with blanks and line ends around them.
std::expected<std::vector<std::uint8_t>, std::string> parse_remote_key(std::string_view text);

}  // namespace wavejit::cache
