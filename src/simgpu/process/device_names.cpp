// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "simgpu/process/device_names.h"

#include <charconv>
#include <format>

#include "boards/board.h"
#include "boards/known_products.h"

namespace wavejit::simgpu {
namespace {

constexpr int most_devices = 64;

}  // namespace

std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t value = 0;
  int base = 10;
  if (text.starts_with("0x")) {
    base = 16;
    text.remove_prefix(2);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<NamedDevices> devices_named(std::string_view text) {
  NamedDevices named;
  if (const std::size_t colon = text.rfind(':'); colon != std::string_view::npos) {
    named.ordinal = number_in(text.substr(colon + 1));
    if (!named.ordinal) return std::nullopt;
    text = text.substr(0, colon);
  }
  // The whole text first: a board's name holds an x of its own.
  if (const std::size_t times = text.rfind('x'); times != std::string_view::npos && !boards::find_board(text)) {
    const auto parsed = number_in(text.substr(times + 1));
    if (!parsed || *parsed < 1 || *parsed > most_devices) return std::nullopt;
    named.count = static_cast<int>(*parsed);
    text = text.substr(0, times);
  }
  if (named.ordinal.value_or(0) >= static_cast<std::uint64_t>(named.count)) return std::nullopt;
  if (!boards::find_board(text)) return std::nullopt;
  named.target = text;
  return named;
}

std::string accepted_devices() {
  return std::format(
      "a target of {}, or a board of one as <target>@<dies>x<compute units of a die>, and N from 1 to {}",
      boards::known_products(), most_devices);
}

}  // namespace wavejit::simgpu
