// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "cache/settings.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace wavejit::cache {

namespace {

constexpr std::size_t max_layers = 64;
constexpr std::uint64_t smallest_limit = std::uint64_t{1} << 20;
constexpr std::array<std::pair<std::string_view, int>, 4> units = {
    {{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}}};

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// "512MiB", whatever it is enough for.
std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  int shift = 0;
  for (const auto& [name, bits] : units) {
    if (!text.ends_with(name)) continue;
    text.remove_suffix(name.size());
    shift = bits;
  }
  const auto value = parse_number(text);
  if (!value || *value > UINT64_MAX >> (shift + 1)) return std::nullopt;  // a bit to spare for sums
  return *value << shift;
}

}  // namespace

std::optional<std::vector<std::string>> parse_layers(std::string_view text) {
  if (std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }))
    return std::nullopt;
  std::vector<std::string> layers;
  for (;;) {
    const std::size_t colon = std::min(text.find(':'), text.size());
    if (colon != 0) {
      if (text.front() != '/' || layers.size() == max_layers) return std::nullopt;
      layers.emplace_back(text.substr(0, colon));
    }
    if (colon == text.size()) return layers;
    text.remove_prefix(colon + 1);
  }
}

std::expected<std::uint64_t, std::string_view> parse_limit(std::string_view text) {
  if (text == "none") return 0;
  const auto bytes = parse_bytes(text);
  if (!bytes) return std::unexpected("not known");
  if (*bytes < smallest_limit) return std::unexpected("too small");
  return *bytes;
}

std::string limit_text(std::uint64_t bytes) {
  if (bytes == 0) return "none";
  for (const auto& [name, bits] : units) {
    const std::uint64_t unit = std::uint64_t{1} << bits;
    if (bytes % unit == 0) return std::to_string(bytes / unit) + std::string(name);
  }
  return std::to_string(bytes);
}

std::optional<std::int64_t> parse_lock_wait(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || *value > 3'600'000) return std::nullopt;
  return static_cast<std::int64_t>(*value) * 1'000'000;
}

std::optional<std::int64_t> parse_remote_timeout(std::string_view text) {
  const auto value = parse_number(text);
  if (!value || *value == 0 || *value > 60'000) return std::nullopt;
  return static_cast<std::int64_t>(*value) * 1'000'000;
}

}  // namespace wavejit::cache
