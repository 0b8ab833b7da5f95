// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Sealed entries: no bytes open but those that were sealed, as they were sealed and under their own name.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "forge.h"
#include "remote/seal.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace wavejit::remote;
  using wavejit::fuzz::require;
  static const Seal seal = *Seal::make(std::vector<unsigned char>(32, 7));
  static const Name name = {.digest = {1, 2, 3}, .target_id = "gfx950", .entry_format = 1};
  const std::span<const unsigned char> bytes(data, size);
  require(!seal.open(name, bytes));

  const auto header = seal.header_of(name, bytes);
  require(header.has_value());
  std::vector<unsigned char> sealed(header->begin(), header->end());
  sealed.insert(sealed.end(), bytes.begin(), bytes.end());
  const auto opened = seal.open(name, sealed);
  require(opened && std::ranges::equal(*opened, bytes));
  // One bit elsewhere, one byte less, or another name.
  if (size < 3) return 0;
  const std::size_t at = (data[0] | data[1] << 8) % sealed.size();
  sealed[at] ^= static_cast<unsigned char>(1U << (data[2] % 8U));
  require(!seal.open(name, sealed));
  sealed[at] ^= static_cast<unsigned char>(1U << (data[2] % 8U));
  require(!seal.open(name, std::span(sealed).first(sealed.size() - 1)));
  Name other = name;
  other.target_id.assign(reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 16));
  require(other.target_id == name.target_id || !seal.open(other, sealed));
  return 0;
}
