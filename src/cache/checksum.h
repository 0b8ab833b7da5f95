// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Private to this folder: XXH3-128, seed 0, in XXH's canonical (big-endian) order.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace wavejit::cache {

using Checksum = std::array<unsigned char, 16>;

Checksum checksum_of(std::span<const std::byte> bytes);
// The checksum of the two, one after the other.
Checksum checksum_of(std::span<const std::byte> first, std::span<const std::byte> second);

}  // namespace wavejit::cache
