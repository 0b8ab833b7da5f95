// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/settings/device_choice.h"

#include <charconv>
#include <cstddef>
#include <system_error>

#include "boards/board.h"
#include "boards/known_products.h"
#include "vocabulary/gpus.h"

namespace wavejit::runtime {
namespace {

std::optional<int> small_number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

std::string accepted_devices() {
  return "accepted: hip, hip:<ordinal>, sim:<target>, sim:<target>x<count up to " +
         std::to_string(max_simulated_devices) +
         ">, the latter with :<ordinal below the count>; targets: " + boards::known_products() +
         ", and boards of them: <target>@<dies>x<compute units of a die>";
}

}  // namespace

std::expected<DeviceChoice, std::string> parse_device(std::string_view text) {
  DeviceChoice device;
  if (text == "hip") return device;
  if (text.starts_with("hip:")) {
    device.ordinal = small_number(text.substr(4));
    if (!device.ordinal) return std::unexpected(accepted_devices());
    return device;
  }
  if (!text.starts_with("sim:")) return std::unexpected(accepted_devices());
  device.simulated = true;
  std::string_view target = text.substr(4);
  if (const std::size_t colon = target.rfind(':'); colon != std::string_view::npos) {
    device.ordinal = small_number(target.substr(colon + 1));
    if (!device.ordinal) return std::unexpected(accepted_devices());
    target = target.substr(0, colon);
  }
  // A board's own name holds an x: the whole text first, then what stands before the last x.
  const auto known = [](std::string_view name) { return boards::find_board(name).has_value(); };
  if (!known(target)) {
    if (const auto why = boards::why_no_kernels(target))
      return std::unexpected(std::string(target) + " " + *why + "; " + accepted_devices());
    if (const auto told = vocabulary::target_of_named_gpu(target))
      return std::unexpected(*told + "; " + accepted_devices());
    const std::size_t times = target.rfind('x');
    if (times == std::string_view::npos || !known(target.substr(0, times))) return std::unexpected(accepted_devices());
    const auto count = small_number(target.substr(times + 1));
    if (!count || *count < 1 || *count > max_simulated_devices) return std::unexpected(accepted_devices());
    device.count = *count;
    target = target.substr(0, times);
  }
  if (device.ordinal.value_or(0) >= device.count) return std::unexpected(accepted_devices());
  device.target = target;
  return device;
}

std::string to_text(const DeviceChoice& device) {
  if (!device.simulated) return device.ordinal ? "hip:" + std::to_string(*device.ordinal) : "hip";
  return "sim:" + device.target + (device.count == 1 ? "" : "x" + std::to_string(device.count)) +
         (device.ordinal ? ":" + std::to_string(*device.ordinal) : "");
}

}  // namespace wavejit::runtime
