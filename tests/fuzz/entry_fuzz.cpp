// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Cache entries: what is accepted prints back to the very bytes it came from.
#include <cstdint>

#include "forge.h"

namespace {

void check(std::span<const std::byte> bytes) {
  const auto entry = wavejit::cache::parse(bytes);
  if (!entry) {
    wavejit::fuzz::require(!entry.error().empty());
    return;
  }
  const auto again = wavejit::cache::serialise(*entry);
  wavejit::fuzz::require(again.has_value());
  wavejit::fuzz::require(again->size() == bytes.size() && std::memcmp(again->data(), bytes.data(), bytes.size()) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  check(bytes);
  check(wavejit::fuzz::with_entry_checksum(bytes));
  return 0;
}
