// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// How devices are written: "gfx950", "gfx950x4", "gfx942@6x38x2" (two boards), "gfx950x4:2" (the third of four).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace wavejit::simgpu {

struct NamedDevices {
  std::string_view target;  // of the text that was read: a target or a board
  int count = 1;
  // "gfx950x4:2" is how an engine of the runtime names one of four; a HIP program sees them all and chooses itself.
  std::optional<std::uint64_t> ordinal;
};

// Nothing for text that names no devices.
std::optional<NamedDevices> devices_named(std::string_view text);

// What is accepted, for messages: "a target of …, or a board of one …, and N from 1 to 64".
std::string accepted_devices();

// "12", "0x1f". Nothing for other text.
std::optional<std::uint64_t> number_in(std::string_view text);

}  // namespace wavejit::simgpu
