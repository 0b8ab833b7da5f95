// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The texts that say how a cache is set up, as values. This folder reads no environment itself.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace wavejit::cache {

// "/image/kernels:/opt/extra.wavejit-archive": folders and archives, separated by colons; empty places are skipped.
// Paths are absolute, since a relative one would be another place in every process; one with a colon cannot be said.
std::optional<std::vector<std::string>> parse_layers(std::string_view text);

// "512MiB", "2GiB", "1048576" (bytes), "none" (0: no limit); at least 1 MiB. The error: "not known" or "too small".
std::expected<std::uint64_t, std::string_view> parse_limit(std::string_view text);
std::string limit_text(std::uint64_t bytes);
inline constexpr std::uint64_t standard_limit_bytes = std::uint64_t{1} << 30;

// Milliseconds, 0 (do not wait) to an hour; as nanoseconds.
std::optional<std::int64_t> parse_lock_wait(std::string_view text);
// Far more than a compile takes on a busy machine, less than the patience of those who wait for a first answer.
inline constexpr std::int64_t standard_lock_wait_nanoseconds = 10'000'000'000;

// Milliseconds, 1 to a minute; as nanoseconds.
std::optional<std::int64_t> parse_remote_timeout(std::string_view text);
// Guesses: a server in the same building answers a hundred times faster; a compile takes as long.
inline constexpr std::int64_t standard_remote_connect_nanoseconds = 200'000'000;
inline constexpr std::int64_t standard_remote_answer_nanoseconds = 500'000'000;

}  // namespace wavejit::cache
