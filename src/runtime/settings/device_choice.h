// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Which device an engine is asked to use, as text and as values.
#pragma once

#include <expected>
#include <optional>
#include <string>
#include <string_view>

namespace wavejit::runtime {

// "hip", "hip:<ordinal>", "sim:<target>", "sim:<target>x<count>", "sim:<target>x<count>:<ordinal>"
struct DeviceChoice {
  bool simulated = false;
  std::optional<int> ordinal;  // without: hip: the calling thread's current device; sim: the first
  std::string target;          // sim only: a row of the target table, or a board of one
  int count = 1;               // sim only: identical devices
  bool operator==(const DeviceChoice&) const = default;
};
inline constexpr int max_simulated_devices = 64;
// The error says what is accepted.
std::expected<DeviceChoice, std::string> parse_device(std::string_view text);
std::string to_text(const DeviceChoice& device);

}  // namespace wavejit::runtime
