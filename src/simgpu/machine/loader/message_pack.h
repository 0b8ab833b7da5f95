// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// The subset of MessagePack that code object metadata uses, read into a tree. Depth and size are bounded.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "simgpu/machine/loader/bytes.h"

namespace wavejit::simgpu {

struct MessageValue {
  enum class Kind : std::uint8_t { nil, boolean, integer, real, text, array, map };
  Kind kind = Kind::nil;
  std::int64_t integer = 0;  // also booleans; unsigned values above 2⁶³ wrap
  double real = 0;
  std::string text;                    // strings and binary
  std::vector<MessageValue> elements;  // of an array, or the values of a map
  std::vector<std::string> keys;       // of a map, as many as elements

  // The entry of a map, or null.
  const MessageValue* find(std::string_view key) const;
  std::string_view text_of(std::string_view key, std::string_view otherwise = {}) const;
  std::uint64_t number_of(std::string_view key, std::uint64_t otherwise = 0) const;
};

std::optional<MessageValue> read_message_pack(const Bytes& bytes);

}  // namespace wavejit::simgpu
