// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Local chunks: the positions of a sequence are cut into chunks of `keys`, and a row sees the keys of its own chunk up
// to its diagonal. Kernels find the chunk of a position without a division:
//
//   floor(x / keys) = floor(x · multiplier / 2³²) >> shift     for 0 ≤ x < 2³¹
//
// The number of keys and the multiplier are arguments of a launch; the shift follows from the first.
#pragma once

#include <bit>
#include <cstdint>

#include "templates/attention/kernel/types.h"

namespace wavejit::attention {

// A chunk of one key is a window of one, and has its kernel.
inline constexpr std::int64_t least_local_chunk = 2;
inline constexpr std::int64_t most_local_chunk = unlimited_window;

constexpr int local_chunk_shift(std::uint32_t keys) { return std::bit_width(keys - 1) - 1; }
// ⌈2^(32 + shift) / keys⌉, which fits into 32 bits. It is too large by less than 1, which x < 2³¹ does not show.
constexpr std::uint32_t local_chunk_multiplier(std::uint32_t keys) {
  const std::uint64_t power = std::uint64_t{1} << (32 + local_chunk_shift(keys));
  return static_cast<std::uint32_t>((power + keys - 1) / keys);
}

namespace detail {
constexpr bool finds_chunks_of(std::uint32_t keys) {
  const std::uint64_t multiplier = local_chunk_multiplier(keys);
  const auto chunk_of = [&](std::uint64_t x) { return (x * multiplier >> 32) >> local_chunk_shift(keys); };
  constexpr std::uint64_t end = std::uint64_t{1} << 31;
  const std::uint64_t last = (end - 1) / keys * keys;
  for (const std::uint64_t x :
       {std::uint64_t{0}, std::uint64_t{keys} - 1, std::uint64_t{keys}, last - 1, last, end - 1})
    if (chunk_of(x) != x / keys) return false;
  return true;
}
static_assert(finds_chunks_of(2) && finds_chunks_of(3) && finds_chunks_of(7) && finds_chunks_of(8192) &&
              finds_chunks_of(8191) && finds_chunks_of(1000003) && finds_chunks_of(most_local_chunk - 1) &&
              finds_chunks_of(most_local_chunk));
}  // namespace detail

}  // namespace wavejit::attention
