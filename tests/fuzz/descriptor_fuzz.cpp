// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Problem descriptors: what is accepted prints back to a text that means the same; errors are one line.
#include <cstdint>
#include <string_view>

#include "forge.h"
#include "templates/attention_forward/call/problem/descriptor.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using wavejit::fuzz::require;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto descriptor = wavejit::attention_forward::parse_descriptor(text);
  if (!descriptor) {
    require(!descriptor.error().detail.empty());
    return 0;
  }
  const std::string canonical = to_text(*descriptor);
  const auto again = wavejit::attention_forward::parse_descriptor(canonical);
  require(again.has_value() && to_text(*again) == canonical);
  return 0;
}
